//! The contract between control plane and data plane: one self-contained value per server, named by its SHA-256.
//!
//! A sidecar needs nothing else: no Kubernetes API, no key fetching, no policy fetching. The only thing that does not travel here is
//! the credential for a remote server: it is a file beside the sidecar, named by [`Credentials::file`].

mod sealed;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use sealed::{Digest, SealError, Sealed};

use crate::{
    decision::Approval,
    drift::Class,
    effect::Effect,
    fingerprint::{Fingerprint, Ignore, Scheme},
    grant::Grant,
    name::{Audience, Issuer, Namespace, Scope, ServerRef, Tenant, ToolName},
};

/// The form of this value. A sidecar refuses a snapshot of a form that it does not know.
pub const VERSION: &str = "cotter.snapshot/v1";

/// Everything that a sidecar enforces for one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// [`VERSION`].
    pub version: String,
    /// The server.
    pub server: ServerRef,
    /// The server's labels, for policy.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// `metadata.generation` of the McpServer that it was compiled from.
    pub generation: i64,
    /// How the server is reached.
    pub upstream: Upstream,
    /// What may be spoken.
    pub protocol: Protocol,
    /// Who may call.
    pub access: Access,
    /// The declared tools.
    pub tools: BTreeMap<ToolName, ToolRule>,
    /// What to do with declared tools where there is no pin.
    pub pinning: Enforcement,
    /// What was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// Accepted delegations to this server, active or not, sorted by name.
    pub grants: Vec<Grant>,
    /// User policy modules, by name.
    pub policies: BTreeMap<String, String>,
    /// Bounds.
    pub limits: Limits,
    /// How the catalogue is re-read.
    pub verify: Verify,
    /// What happens without contact to the operator.
    pub stale: Stale,
}

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Upstream {
    /// Over Streamable HTTP.
    Http {
        /// The endpoint, with its path.
        url: String,
        /// What the sidecar itself presents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credentials: Option<Credentials>,
        /// File with the certificates that the endpoint's chain ends in; the public roots where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca_file: Option<String>,
    },
    /// A child process of the sidecar, on a laptop.
    Child {
        /// The program and its arguments.
        command: Vec<String>,
        /// Environment, on top of a small fixed one.
        env: BTreeMap<String, String>,
        /// Whether sessions share the child.
        sessions: Sessions,
    },
    /// A process behind `cotter-shim`, over a Unix socket.
    Socket {
        /// The socket's path.
        path: String,
        /// Whether sessions share the process.
        sessions: Sessions,
    },
}

/// Whether the sessions of callers share one server process over stdio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Sessions {
    /// One process for each session.
    #[default]
    PerSession,
    /// One process for all.
    Shared,
}

/// What the sidecar presents to a remote server. The secret itself is a file and never in the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credentials {
    /// The file that holds the secret.
    pub file: String,
    /// The header it goes into.
    pub header: String,
    /// What stands before it, such as `Bearer `.
    pub prefix: String,
}

/// What may be spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Protocol {
    /// Revisions that clients may speak.
    pub revisions: BTreeSet<String>,
}

/// Who may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// What tokens have to be minted for.
    pub audience: Audience,
    /// The URL that clients use, also accepted as audience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// Accepted Host values (host, or host and port), beside loopback.
    pub hosts: BTreeSet<String>,
    /// Accepted Origin values.
    pub origins: BTreeSet<String>,
    /// Who may mint tokens.
    pub issuers: Vec<TrustedIssuer>,
    /// Who may be here; `*` admits every tenant and tokens without one.
    pub tenants: BTreeSet<String>,
    /// What a caller is told that lacks a scope.
    pub insufficient_scope: InsufficientScope,
    /// Scopes that challenges and metadata name.
    pub advertised_scopes: Vec<Scope>,
}

/// What a caller is told that calls a declared tool without its scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InsufficientScope {
    /// As if the tool did not exist.
    #[default]
    Hide,
    /// 403 with all scopes that the operation needs.
    Challenge,
}

/// Somebody who may mint tokens, with keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedIssuer {
    /// Its name in the manifest.
    pub name: String,
    /// What `iss` has to be.
    pub issuer: Issuer,
    /// Its public keys: an RFC 7517 JWK set. Empty where none could be had; then nobody can authenticate with it.
    pub jwks: Value,
    /// Which claims hold what.
    pub claims: ClaimNames,
    /// Set where it is this cluster's own issuer: how the namespace of a service account becomes a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_accounts: Option<ServiceAccounts>,
}

/// How service accounts become tenants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccounts {
    /// Namespace to tenant; a namespace that is not here is its own tenant.
    pub tenants: BTreeMap<Namespace, Tenant>,
}

/// Which claims of a token hold what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimNames {
    /// The tenant.
    pub tenant: String,
    /// The scopes.
    pub scopes: String,
    /// The groups.
    pub groups: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self { tenant: "tenant".to_owned(), scopes: "scope".to_owned(), groups: "groups".to_owned() }
    }
}

/// What one declared tool demands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRule {
    /// The scope.
    pub scope: Scope,
    /// The effect.
    pub effect: Effect,
    /// JSON pointer to the idempotency key in the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Whether a person has to agree.
    #[serde(default)]
    pub approval: Approval,
    /// Deadline, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Bound on the result, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Bound on calls, all callers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// Refilled with this many...
    pub tokens: u32,
    /// ...in this many milliseconds.
    pub per_ms: u64,
    /// Holds at most this many.
    pub burst: u32,
}

/// What is done about a difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// Not listed, not callable.
    #[default]
    Quarantine,
    /// Reported only.
    Audit,
}

/// What is done about one class of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnDrift {
    /// Not listed, not callable.
    Quarantine,
    /// Served as observed, and reported.
    Report,
}

/// What was approved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The ToolPin's name.
    pub name: String,
    /// The scheme of its fingerprints.
    #[schemars(with = "String")]
    pub scheme: Scheme,
    /// Whether differences are enforced at all.
    pub enforcement: Enforcement,
    /// What is done about each class.
    pub on_drift: BTreeMap<Class, OnDrift>,
    /// SHA-256 of the approved instructions; instructions that nobody approved never reach a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub instructions: Option<Digest>,
    /// The approved tools.
    pub tools: BTreeMap<ToolName, PinnedTool>,
}

/// One approved tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PinnedTool {
    /// What it hashes to.
    pub fingerprint: Fingerprint,
    /// The approved object; without it a difference cannot be classed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Value>,
    /// Members left out of the fingerprint.
    #[serde(default, skip_serializing_if = "Ignore::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub ignore: Ignore,
    /// Set where the definition does not hash to the fingerprint: the entry matches nothing, whatever the server offers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mismatched: bool,
}

/// Bounds. Each has a default in the McpServer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a result.
    pub result_bytes: u64,
    /// Deadline of a call, in milliseconds.
    pub timeout_ms: u64,
    /// Requests in flight.
    pub concurrent: u32,
    /// Requests of one principal.
    pub rate_per_principal: Rate,
    /// Open sessions.
    pub sessions: u32,
}

/// How the catalogue is re-read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    /// How often, in milliseconds.
    pub interval_ms: u64,
    /// How long the last verified catalogue serves when it cannot be read, in milliseconds.
    pub grace_ms: u64,
}

/// What happens without contact to the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stale {
    /// After how long, in milliseconds.
    pub after_ms: u64,
    /// What then.
    pub action: StaleAction,
}

/// What a sidecar does whose snapshot is stale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StaleAction {
    /// Goes on and says so.
    #[default]
    Report,
    /// Refuses every request.
    Refuse,
}
