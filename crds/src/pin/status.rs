//! How what is offered compares with what was approved.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// How what is offered compares with what was approved, as the sidecars report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolPinStatus {
    /// The metadata.generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,

    /// `Accepted`: the pin can be used. `Observed`: the server's list was read. `InSync`: it is what was approved; Unknown where it could not be told. `Enforced`: every live sidecar compares with this generation of the pin. `Ready`: all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// How many tools are in which state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<PinSummary>,

    /// What differs, sorted by name; the first 256.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub drift: Vec<DriftEntry>,

    /// When the server's list was last compared as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_verified: Option<Time>,

    /// The scheme by which the comparison was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub scheme: Option<String>,

    /// Digest of this pin as the sidecars enforce it, so that a change of the pin does not look like a change of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub policy: Option<String>,
}

/// How many tools are in which state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PinSummary {
    /// Tools that the pin names.
    #[schemars(range(min = 0))]
    pub pinned: i32,

    /// Pinned tools that are what was approved.
    #[schemars(range(min = 0))]
    pub matched: i32,

    /// Pinned tools that are offered and are not what was approved.
    #[schemars(range(min = 0))]
    pub drifted: i32,

    /// Pinned tools that are not offered.
    #[schemars(range(min = 0))]
    pub removed: i32,

    /// Declared tools that are offered and not pinned.
    #[schemars(range(min = 0))]
    pub added: i32,

    /// Pinned tools of which another server, visible to the same tenants, offers one of the same name.
    #[schemars(range(min = 0))]
    pub shadowed: i32,

    /// `matched/pinned`, for the table.
    #[schemars(schema_with = "schema::status_string")]
    pub matched_of_pinned: String,
}

impl PinSummary {
    /// The same counts with their column written.
    #[must_use]
    pub fn with_column(mut self) -> Self {
        self.matched_of_pinned = format!("{}/{}", self.matched, self.pinned);
        self
    }
}

/// One difference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DriftEntry {
    /// Name of the tool, escaped.
    #[schemars(schema_with = "schema::status_string")]
    pub tool: String,

    /// Class of the difference, a key of spec.onDrift, or Ambiguous where two tools cannot be told apart or one cannot be hashed.
    #[schemars(schema_with = "schema::status_string")]
    pub class: String,

    /// JSON pointers to the members that differ, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::status_strings")]
    pub fields: Vec<String>,

    /// The approved fingerprint, whole. Absent for class Added.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub approved: Option<String>,

    /// The fingerprint of what is offered, whole. Absent for class Removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub observed: Option<String>,

    /// How many sidecars see it.
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub since: Option<Time>,

    /// What is done about it: Quarantined or Reported.
    #[schemars(schema_with = "schema::status_string")]
    pub action: String,

    /// What the scan of its text found: Phrase, InvisibleCodePoints, BidiControls, ZeroWidth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::status_strings")]
    pub findings: Vec<String>,
}
