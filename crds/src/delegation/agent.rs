//! A remote agent that may be called over A2A.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{quantity::Quantity, reference::TokenRef, schema};

/// Operations of A2A 1.0 that a delegation can permit.
pub const OPERATIONS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

/// A remote agent, and what may pass between it and the delegate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// URL of the agent, https:// unless it is a Service of this cluster (a host that ends in .svc).
    #[schemars(schema_with = "schema::agent_url")]
    pub url: String,

    /// The approved card of the agent.
    pub card: Card,

    /// The operations that may be called, by their names in A2A 1.0. At least one.
    #[schemars(schema_with = "schema::operations")]
    pub operations: Vec<String>,

    /// What may be sent to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Brief>,

    /// What is taken back from the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Artifacts>,

    /// Where the agent may send notifications. Nowhere by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<Push>,

    /// What the proxy presents to the agent. The caller's own token never goes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<AgentCredentials>,
}

/// The approved card of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Card {
    /// The approved fingerprint: cotter.card/v1:sha256: and 64 hex digits.
    #[schemars(schema_with = "schema::card_fingerprint")]
    pub fingerprint: String,

    /// RFC 7638 thumbprints of the keys of which one must have signed the card. None by default: the fingerprint alone decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::thumbprints")]
    pub keys: Vec<String>,
}

/// What may be sent to an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Brief {
    /// JSON Schema that the data of a message must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub schema: Option<Map<String, Value>>,

    /// How large a message may be, from 1Ki to 16Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::request_bytes")]
    pub max_bytes: Option<Quantity>,
}

/// What is taken back from an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifacts {
    /// The media types that pass, such as application/json. None by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::media_types")]
    pub media_types: Vec<String>,

    /// JSON Schema that the data of an artifact must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub schema: Option<Map<String, Value>>,

    /// How large an artifact may be, from 1Ki to 64Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::result_bytes")]
    pub max_bytes: Option<Quantity>,
}

/// Where an agent may send notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Push {
    /// The hosts, with their port if it is not the default one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::hosts")]
    pub hosts: Vec<String>,
}

/// What the proxy presents to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCredentials {
    /// The Secret that holds the token, presented as a bearer token.
    pub secret_ref: TokenRef,
}
