//! What is so, as the sidecars report it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What is enforced, as the sidecars report it; never what was intended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct McpServerStatus {
    /// The metadata.generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,

    /// `Accepted`: the spec can be served. `KeysReady`: every issuer has usable keys. `PoliciesReady`: every Rego module is in force. `Available`: a sidecar serves and, in a cluster, its Service leads to it. `Programmed`: every live sidecar enforces the snapshot of this generation. `InSync`: the tools are what was approved. `Ready`: callers are served as declared; a tool in quarantine makes InSync False, and Ready only where none is left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The URL of the MCP endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub endpoint: Option<String>,

    /// Where the definitions are that the sidecars see, for `kubectl cotter pin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,

    /// Which snapshot is wanted, and how many sidecars enforce exactly it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotStatus>,

    /// What the server says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceStatus>,

    /// How many tools are in which state. declared = callable + quarantined + missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolCounts>,
}

/// Where the definitions are that the sidecars see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Observed {
    /// A ConfigMap in the same namespace.
    #[schemars(schema_with = "schema::status_string")]
    pub config_map: String,
}

/// Which snapshot is wanted, and how many sidecars enforce exactly it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SnapshotStatus {
    /// Digest of the snapshot that all sidecars should enforce.
    #[schemars(schema_with = "schema::status_string")]
    pub desired: String,

    /// How many live sidecars enforce exactly this snapshot.
    #[schemars(range(min = 0))]
    pub enforced: i32,

    /// How many sidecars are live.
    #[schemars(range(min = 0))]
    pub total: i32,

    /// `enforced/total`, for the table.
    #[schemars(schema_with = "schema::status_string")]
    pub enforced_of_total: String,
}

impl SnapshotStatus {
    /// The status for these counts, with its column.
    #[must_use]
    pub fn new(desired: String, enforced: i32, total: i32) -> Self {
        Self { desired, enforced, total, enforced_of_total: format!("{enforced}/{total}") }
    }
}

/// What the server says about itself. Bounded and escaped; descriptions never appear here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SurfaceStatus {
    /// The revision of the protocol that is spoken to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub protocol: Option<String>,

    /// Name and version as the server states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,

    /// How the sidecar reaches the server: Stdio, Shim or Http.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub transport: Option<String>,

    /// Digest of the image that the server's container runs.
    #[serde(rename = "imageID", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub image_id: Option<String>,

    /// Digest of the server's instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::status_string")]
    pub instructions_digest: Option<String>,

    /// Names of the capabilities that the server states, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::status_strings")]
    pub capabilities: Vec<String>,

    /// When this was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub checked_at: Option<Time>,
}

/// Name and version as a server states them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerInfo {
    /// The name.
    #[schemars(schema_with = "schema::status_string")]
    pub name: String,

    /// The version.
    #[schemars(schema_with = "schema::status_string")]
    pub version: String,
}

/// How many tools are in which state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolCounts {
    /// Tools that spec.tools names.
    #[schemars(range(min = 0))]
    pub declared: i32,

    /// Declared tools that callers with the scope can call.
    #[schemars(range(min = 0))]
    pub callable: i32,

    /// Declared tools that the server offers and nobody can call.
    #[schemars(range(min = 0))]
    pub quarantined: i32,

    /// Declared tools that the server does not offer.
    #[schemars(range(min = 0))]
    pub missing: i32,

    /// Tools that the server offers.
    #[schemars(range(min = 0))]
    pub offered: i32,

    /// Offered tools that spec.tools does not name; no caller sees them.
    #[schemars(range(min = 0))]
    pub unlisted: i32,

    /// Pinned tools that are not what was approved, whatever is done about it.
    #[schemars(range(min = 0))]
    pub drifted: i32,

    /// `callable/declared`, for the table.
    #[schemars(schema_with = "schema::status_string")]
    pub callable_of_declared: String,
}

impl ToolCounts {
    /// The same counts with their column written.
    #[must_use]
    pub fn with_column(mut self) -> Self {
        self.callable_of_declared = format!("{}/{}", self.callable, self.declared);
        self
    }
}
