//! What a tool demands of its callers.

use cotter_core::effect::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{quantity::Quantity, schema};

/// A tool that callers may see, and what it demands of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The tool's name as the server offers it.
    #[schemars(schema_with = "schema::tool_name")]
    pub name: String,

    /// The one scope that a caller must hold to see and call the tool, such as case:write. Required: there is no tool without a scope.
    #[schemars(schema_with = "schema::scope")]
    pub scope: String,

    /// What a call does to the world. `Read`: changes nothing. `Write`: changes something of the tenant's own that can be changed back. `Destructive`: changes or deletes something of the tenant's own for good. `External`: leaves the tenant's own systems, as mail, a payment or a message to another party does. It refuses nobody by itself; approval, policies and delegations act on it. It is your statement; what the server says about itself is only compared with it.
    pub effect: Effect,

    /// JSON pointer to the argument that makes a repeated call harmless, such as /idempotency_key. A tool with any effect but Read that has none is warned about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::pointer")]
    pub idempotency_key: Option<String>,

    /// Whether each call waits for a person. `Never` (the default): no, unless a policy demands it. `Always`: yes.
    #[serde(default)]
    pub approval: Approval,

    /// Bounds for this tool alone. Each one left out is as in spec.limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ToolLimits>,
}

/// Whether each call waits for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// No, unless a policy demands it.
    #[default]
    Never,
    /// Yes.
    Always,
}

/// Bounds for one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolLimits {
    /// How long one call may take, from 100ms to 1h, such as 10s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timeout")]
    pub timeout: Option<String>,

    /// How large one result may be, from 1Ki to 64Mi, such as 64Ki. A larger one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::result_bytes")]
    pub result_bytes: Option<Quantity>,

    /// How often one principal may call the tool, at each sidecar: an integer per second, minute or hour, such as 5/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::rate")]
    pub rate: Option<String>,
}
