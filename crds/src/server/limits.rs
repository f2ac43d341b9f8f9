//! Bounds on what callers may send, receive and use, and on how old an answer may be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{quantity::Quantity, schema};

/// Bounds on what callers may send, receive and use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Limits {
    /// How large a request may be, from 1Ki to 16Mi, 1Mi by default.
    #[schemars(schema_with = "schema::request_bytes")]
    pub request_bytes: Quantity,

    /// How large a result may be, from 1Ki to 64Mi, 1Mi by default. A larger one is refused.
    #[schemars(schema_with = "schema::result_bytes")]
    pub result_bytes: Quantity,

    /// How long one call may take, from 100ms to 1h, 60s by default.
    #[schemars(schema_with = "schema::timeout")]
    pub timeout: String,

    /// How many calls one sidecar has under way at once, 64 by default.
    #[schemars(range(min = 1, max = 65536))]
    pub concurrent: i32,

    /// How often one principal may call. Without it there is no such bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,

    /// How many sessions one sidecar keeps, 1000 by default. A server over stdio with a process for each session serves 62 at most, and one principal half of them.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sessions: i32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: Quantity("1Mi".to_owned()),
            result_bytes: Quantity("1Mi".to_owned()),
            timeout: "60s".to_owned(),
            concurrent: 64,
            rate: None,
            sessions: 1000,
        }
    }
}

/// How often one principal may call: a token bucket at each sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// How fast the bucket fills: an integer per second, minute or hour, at most 1000000, such as 20/s.
    #[schemars(schema_with = "schema::rate")]
    pub per_principal: String,

    /// How many calls the bucket holds, which is how many may come at once. One second's worth by default, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub burst: Option<i32>,
}

/// How often the tools are compared with what was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Verify {
    /// How often a sidecar reads the server's whole list again, from 1s to 1h, 30s by default. It also does so whenever the server says that its list changed, and on every list that passes.
    #[schemars(schema_with = "schema::second_to_hour")]
    pub interval: String,

    /// How long the last verified list serves when the server cannot be read, from 0s to 24h, 5m by default. After that nothing is callable.
    #[schemars(schema_with = "schema::up_to_day")]
    pub grace: String,
}

impl Default for Verify {
    fn default() -> Self {
        Self { interval: "30s".to_owned(), grace: "5m".to_owned() }
    }
}

/// What the sidecars do when they have not heard from the operator for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Stale {
    /// How long without contact until the sidecar's snapshot counts as stale, from 1s to 24h, 5m by default.
    #[schemars(schema_with = "schema::second_to_day")]
    pub after: String,

    /// What happens then. `Report` (the default): it goes on serving with the last good snapshot and says so. `Refuse`: it refuses every call until it has heard from the operator again.
    pub action: StaleAction,
}

impl Default for Stale {
    fn default() -> Self {
        Self { after: "5m".to_owned(), action: StaleAction::default() }
    }
}

/// What a sidecar does with a stale snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StaleAction {
    /// Serve and say so.
    #[default]
    Report,
    /// Refuse every call.
    Refuse,
}
