//! What a sidecar tells the operator: the whole state of the world, on connect and on each change. Status is made from nothing else.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    catalogue::ToolState,
    drift::Class,
    fingerprint::Fingerprint,
    name::{ServerRef, ToolName},
    scan::Finding,
    snapshot::Digest,
};

/// One sidecar's state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The server that it guards.
    pub server: ServerRef,
    /// The sidecar: its pod's name, or `local`.
    pub sidecar: String,
    /// When the report was made.
    pub time: Timestamp,
    /// The snapshot that is enforced at this moment.
    pub enforced: Option<Digest>,
    /// A newer snapshot that could not be enforced, and why. The enforced one stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejected>,
    /// The catalogue as it is enforced.
    pub catalogue: CatalogueReport,
    /// What the server says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Surface>,
    /// Uses of delegations, by name, since the sidecar started.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, Uses>,
}

/// A snapshot that a sidecar could not enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Its digest.
    pub digest: Digest,
    /// Why, in words.
    pub why: String,
}

/// How well the catalogue is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Knowledge {
    /// Never read whole since the sidecar started.
    NeverRead {
        /// Why not.
        why: String,
    },
    /// Read whole, and every tool was compared.
    Verified,
    /// The last reading failed; the one before still serves, until the grace ends.
    Grace {
        /// Why it failed.
        why: String,
    },
    /// The grace ended: nothing is callable.
    Expired {
        /// Why it failed.
        why: String,
    },
}

/// Definitions by name, as exact bytes.
pub type Definitions = BTreeMap<String, Box<RawValue>>;

/// The catalogue as it is enforced.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueReport {
    /// How well it is known.
    pub knowledge: Knowledge,
    /// When it was last read whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<Timestamp>,
    /// Tools that are declared, pinned or offered-and-declared, sorted by name.
    pub tools: Vec<ToolReport>,
    /// How many tools the server offers.
    pub offered: u32,
    /// How many of them nobody declared.
    pub unlisted: u32,
    /// The definitions as observed, by name, for diff and approve. Exact bytes. Unlisted tools are here too: that is what a pin is made from.
    #[serde(default)]
    pub definitions: Definitions,
}

/// One tool as it is enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolReport {
    /// Its name, bounded and printable.
    pub name: String,
    /// Whether the McpServer declares it.
    pub declared: bool,
    /// Whether it is callable at this moment, policy aside.
    pub callable: bool,
    /// Its state.
    pub state: ToolState,
    /// The approved fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Fingerprint>,
    /// The observed fingerprint, in the pin's scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Fingerprint>,
    /// The class of the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Where it differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// What the scan found in the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

impl ToolReport {
    /// A tool of which nothing but its state is known: neither declared nor callable.
    #[must_use]
    pub fn new(name: &ToolName, state: ToolState) -> Self {
        Self {
            name: name.to_string(),
            declared: false,
            callable: false,
            state,
            approved: None,
            observed: None,
            class: None,
            fields: Vec::new(),
            findings: Vec::new(),
        }
    }
}

/// What the server says of itself. Never used for a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Surface {
    /// The revision that the sidecar speaks with it.
    pub protocol: String,
    /// `http`, `stdio`.
    pub transport: String,
    /// Its name, bounded and printable.
    pub server_name: String,
    /// Its version, bounded and printable.
    pub server_version: String,
    /// SHA-256 of its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_digest: Option<Digest>,
    /// Names of its capabilities.
    pub capabilities: Vec<String>,
}

/// How often a delegation was used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Uses {
    /// Calls that it permitted.
    pub allowed: u64,
    /// Calls under it that were refused.
    pub denied: u64,
    /// The last permitted call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
    /// The last refused one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_denial: Option<Timestamp>,
}

impl Uses {
    /// Adds the uses at another sidecar.
    pub fn add(&mut self, other: &Self) {
        self.allowed = self.allowed.saturating_add(other.allowed);
        self.denied = self.denied.saturating_add(other.denied);
        self.last_used = self.last_used.max(other.last_used);
        self.last_denial = self.last_denial.max(other.last_denial);
    }
}
