//! `ToolPin`: what was approved.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    reference::NameRef,
    rule,
    schema::{self, rules},
    server::ServerInfo,
};

mod status;

pub use status::{DriftEntry, PinSummary, ToolPinStatus};

/// What was approved of one McpServer: which tools, and exactly which definition of each.
///
/// What a server offers is compared with it, member by member, on every list that passes; what differs is quarantined or reported as onDrift says.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cotter.dev",
    version = "v1alpha1",
    kind = "ToolPin",
    plural = "toolpins",
    singular = "toolpin",
    shortname = "tpin",
    category = "cotter",
    namespaced,
    status = "ToolPinStatus",
    derive = "PartialEq",
    doc = "What was approved of one McpServer: which tools, and exactly which definition of each.",
    printcolumn(name = "Server", type_ = "string", json_path = ".spec.serverRef.name"),
    printcolumn(name = "InSync", type_ = "string", json_path = r#".status.conditions[?(@.type=="InSync")].status"#),
    printcolumn(name = "Matched", type_ = "string", json_path = ".status.summary.matchedOfPinned"),
    printcolumn(name = "Drift", type_ = "integer", json_path = ".status.summary.drifted"),
    printcolumn(name = "Verified", type_ = "date", json_path = ".status.lastVerified"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="InSync")].reason"#,
        priority = 1
    ),
    printcolumn(name = "Enforcement", type_ = "string", json_path = ".spec.enforcement", priority = 1),
    printcolumn(name = "Scheme", type_ = "string", json_path = ".spec.scheme", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::PIN_SCHEME])))]
pub struct ToolPinSpec {
    /// The McpServer whose tools these are, in the same namespace. One pin for a server is the rule; two are a conflict, shown on both.
    pub server_ref: NameRef,

    /// How the fingerprints in tools were made. `cotter.tool/v1` (the default) covers the whole tool as the server gave it. `name-description-schema/v0` covers only name, description and input schema; it exists to import pins that were made elsewhere.
    #[serde(default)]
    pub scheme: Scheme,

    /// What the pin does. `Quarantine` (the default): what onDrift quarantines is not listed and not callable. `Audit`: everything goes on, and is reported; every Quarantine in onDrift counts as Report.
    #[serde(default)]
    pub enforcement: Enforcement,

    /// What is done about each class of difference. By default everything but Cosmetic and Removed is quarantined.
    #[serde(default)]
    pub on_drift: OnDrift,

    /// What was approved of the server beside its tools. Each member is compared where it is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Surface>,

    /// The approved tools. A declared tool that the server offers and this list does not name has class Added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub tools: Vec<Pinned>,

    /// The approved prompts, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-validations" = rules(&[rule::PROMPT_SCHEME])))]
    pub prompts: Vec<Pinned>,

    /// The approved resource templates, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-validations" = rules(&[rule::TEMPLATE_SCHEME])))]
    pub resource_templates: Vec<Pinned>,

    /// The approved resources that hosts render (`ui://`), by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-validations" = rules(&[rule::UI_SCHEME])))]
    pub ui_resources: Vec<Pinned>,
}

/// How fingerprints are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Scheme {
    /// The whole tool.
    #[default]
    #[serde(rename = "cotter.tool/v1")]
    ToolV1,
    /// Name, description and input schema only.
    #[serde(rename = "name-description-schema/v0")]
    NameDescriptionSchemaV0,
}

impl Scheme {
    /// The name as fingerprints begin with it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolV1 => "cotter.tool/v1",
            Self::NameDescriptionSchemaV0 => "name-description-schema/v0",
        }
    }
}

/// What a pin does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// What onDrift says.
    #[default]
    Quarantine,
    /// Report only.
    Audit,
}

/// What is done about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DriftAction {
    /// Callable, and reported.
    Report,
    /// Not listed and not callable, and reported.
    Quarantine,
}

/// What is done about each class of difference: `Report` (callable, and reported) or `Quarantine` (not listed and not callable, and reported).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "PascalCase")]
pub struct OnDrift {
    /// Only what neither a model nor a host acts on changed. `Report` by default.
    pub cosmetic: DriftAction,

    /// The tool takes an optional argument more, or its result has more in it. `Quarantine` by default.
    pub additive: DriftAction,

    /// Only prose or order changed: titles, descriptions, examples. `Quarantine` by default, because models act on prose; with `Report` a rewritten description reaches them.
    pub text: DriftAction,

    /// The tool takes less, or its result has less in it. `Quarantine` by default.
    pub narrowing: DriftAction,

    /// The tool can do more than was approved, or it cannot be told. `Quarantine` by default.
    pub authority_expanding: DriftAction,

    /// A declared tool is offered that this pin does not name. `Quarantine` by default.
    pub added: DriftAction,

    /// A pinned tool is no longer offered. `Report` by default.
    pub removed: DriftAction,
}

impl Default for OnDrift {
    fn default() -> Self {
        use DriftAction::{Quarantine, Report};
        Self {
            cosmetic: Report,
            additive: Quarantine,
            text: Quarantine,
            narrowing: Quarantine,
            authority_expanding: Quarantine,
            added: Quarantine,
            removed: Report,
        }
    }
}

/// What was approved of the server beside its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Surface {
    /// Digest of the server's instructions: sha256: and 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::digest")]
    pub instructions: Option<String>,

    /// The revisions of the protocol that may be spoken to the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::revisions")]
    pub protocol: Vec<String>,

    /// Name and version as the server states them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::pinned_server_info")]
    pub server_info: Option<ServerInfo>,

    /// Digest of the image that the server's container runs: sha256: and 64 hex digits.
    #[serde(rename = "imageID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::digest")]
    pub image_id: Option<String>,
}

/// One approved definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::DEFINITION_NAME])))]
pub struct Pinned {
    /// The name as the server offers it.
    #[schemars(schema_with = "schema::item_name")]
    pub name: String,

    /// The approved fingerprint, whole, as `cotter fingerprint` and status.drift write it: cotter.tool/v1:sha256: and 64 hex digits.
    #[schemars(schema_with = "schema::fingerprint")]
    pub fingerprint: String,

    /// The approved definition as the server gave it, so that a review shows the change and not two fingerprints. It must hash to the fingerprint. Without it every change is still seen, but counts as AuthorityExpanding. Quote keys and values that YAML reads as something else, such as "y", "on" and "no".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::definition")]
    pub definition: Option<Map<String, Value>>,

    /// JSON pointers to members that are left out of the fingerprint, because the server does not always give them alike, such as /description. A caller gets the approved value of such a member, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::pointers")]
    pub ignore: Vec<String>,

    /// Who approved this, when, and why. For people; nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
}

/// Who approved a definition, when, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::line")]
    pub by: Option<String>,

    /// When, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub at: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,

    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::line")]
    pub reason: Option<String>,
}
