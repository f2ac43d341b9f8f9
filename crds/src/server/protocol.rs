//! What clients may speak.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Revisions of the protocol that the sidecar knows, oldest first.
pub const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// What clients may speak, and what beside tools they may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Protocol {
    /// The revisions that clients may speak. What is spoken to the server itself is in status.surface.protocol. Revisions up to 2025-11-25 have a handshake and sessions; 2026-07-28 is stateless.
    #[schemars(schema_with = "schema::revisions")]
    pub revisions: Vec<String>,

    /// What passes beside tools. By default nothing does.
    pub allow: Allow,
}

impl Default for Protocol {
    fn default() -> Self {
        let revisions = ["2025-06-18", "2025-11-25", "2026-07-28"].map(str::to_owned).to_vec();
        Self { revisions, allow: Allow::default() }
    }
}

/// What passes beside tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Allow {
    /// Clients may list and read the server's resources. false by default.
    pub resources: bool,

    /// Clients may list and get the server's prompts. false by default.
    pub prompts: bool,

    /// The server may ask the client's model for a completion. false by default.
    pub sampling: bool,

    /// The server may ask the person at the client for input. false by default.
    pub elicitation: bool,

    /// The server may ask for the client's roots. false by default.
    pub roots: bool,

    /// Protocol extensions that pass, each by its identifier, such as io.modelcontextprotocol/tasks. None by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::extensions")]
    pub extensions: Vec<String>,
}
