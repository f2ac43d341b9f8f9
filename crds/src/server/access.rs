//! Who may call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    reference::KeysRef,
    rule,
    schema::{self, rules},
};

/// Who may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Access {
    /// The URL that clients use, where it is not the Service's own: it is named in the metadata of RFC 9728, gives the host of the links in challenges, and is accepted as audience beside spec.audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::public_url")]
    pub public_url: Option<String>,

    /// Values of the Host header that are accepted beside the names of the Service, the host of publicUrl and loopback. Any other is refused (421).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::hosts")]
    pub hosts: Vec<String>,

    /// Web pages that may call: values of the Origin header that are accepted. None by default; a request without an Origin is not from a web page and is fine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::origins")]
    pub origins: Vec<String>,

    /// Who may mint tokens for callers. Keys are fetched by the operator; the sidecars never ask anybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub issuers: Vec<Issuer>,

    /// Whether tokens of this cluster's service accounts, minted for spec.audience, are accepted.
    pub service_accounts: ServiceAccounts,

    /// Who may be here at all: the tenants whose callers are admitted. Empty (the default) is nobody; ["*"] is anybody, also a token that names no tenant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::admitted_tenants")]
    pub tenants: Vec<String>,

    /// What a caller without the scope of a declared tool is told when it calls it. `Hide` (the default): that there is no such tool. `Challenge`: which scopes the operation needs (403), so that a client can ask for them. Lists leave the tool out either way.
    pub insufficient_scope: InsufficientScope,

    /// Scopes that challenges (401) and the metadata name for clients to ask for. None by default, since they tell strangers what there is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::scopes")]
    pub advertised_scopes: Vec<String>,
}

/// Somebody who mints tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Issuer {
    /// A name of your own for it, which conditions and audit records use.
    #[schemars(schema_with = "schema::label")]
    pub name: String,

    /// The issuer as its tokens name it in `iss`, compared byte for byte (a trailing slash counts).
    #[schemars(schema_with = "schema::issuer")]
    pub issuer: String,

    /// Where its keys are: exactly one of uri, secretRef and configMapRef. By default they are discovered from the issuer (RFC 8414, OpenID Connect Discovery).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Jwks>,

    /// Under which names its tokens state what Cotter needs.
    #[serde(default)]
    pub claims: Claims,
}

/// Where keys are: exactly one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::KEYS_UNION])))]
pub struct Jwks {
    /// A URL that serves the key set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::key_url")]
    pub uri: Option<String>,

    /// A Secret in the same namespace that holds the key set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<KeysRef>,

    /// A ConfigMap in the same namespace that holds the key set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<KeysRef>,
}

/// Under which names tokens state what Cotter needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Claims {
    /// The claim that names the caller's tenant, `tenant` by default. It must be one string.
    #[schemars(schema_with = "schema::claim")]
    pub tenant: String,

    /// The claim that states the scopes, `scope` by default: one string with spaces between, or an array of strings.
    #[schemars(schema_with = "schema::claim")]
    pub scopes: String,

    /// The claim that states the caller's groups, `groups` by default, for policies of your own.
    #[schemars(schema_with = "schema::claim")]
    pub groups: String,
}

impl Default for Claims {
    fn default() -> Self {
        Self { tenant: "tenant".to_owned(), scopes: "scope".to_owned(), groups: "groups".to_owned() }
    }
}

/// Callers that are service accounts of this cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServiceAccounts {
    /// Accept tokens that this cluster minted for spec.audience. Such tokens state no scopes, so their bearers act only under an AgentDelegation. false by default.
    pub enabled: bool,

    /// Which tenant the service accounts of a namespace belong to, where it is not named like the namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace"]))]
    pub tenants: Vec<NamespaceTenant>,
}

/// The tenant of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceTenant {
    /// The namespace of the service accounts.
    #[schemars(schema_with = "schema::label")]
    pub namespace: String,

    /// Their tenant.
    #[schemars(schema_with = "schema::tenant")]
    pub tenant: String,
}

/// What a caller without the scope of a declared tool is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InsufficientScope {
    /// That there is no such tool.
    #[default]
    Hide,
    /// Which scopes the operation needs.
    Challenge,
}
