//! One record per decision: who, what, on which evidence, and what was answered. Never arguments, never tokens.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{decision::Reason, name::ServerRef, principal::Principal, snapshot::Digest};

/// One decision, as a line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The opaque id that the caller saw in `Cotter-Decision`.
    pub id: String,
    /// When it was decided.
    pub time: Timestamp,
    /// The server.
    pub server: ServerRef,
    /// Who asked, without the token's other claims; absent where the token did not verify. With it the decision can be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<Principal>>,
    /// The JSON-RPC method; absent where the message was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tool's name as asked for, bounded and printable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether it was allowed.
    pub allow: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// The delegation that permitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<String>,
    /// The snapshot that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Digest>,
    /// The fingerprint of the tool's definition that was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The HTTP status that was answered.
    pub status: u16,
    /// From the first byte of the request to the answer, in microseconds.
    pub micros: u64,
}
