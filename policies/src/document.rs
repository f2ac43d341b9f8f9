//! The documents that Rego sees and gives: the input, by name and never as arrays to scan where there can be many, and the answer.
//! The JSON Schemas under `schema/` are made from these types.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    decision::{Approval, Era, Kind},
    effect::Effect,
    name::{Audience, Issuer, Namespace, ObjectName, Scope, Subject, Tenant, ToolName},
    pointer::Pointer,
    principal::{Actor, Principal, ServiceAccount},
    snapshot::Digest,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod output;

pub use output::{Output, OutputObligations, OutputReason};

/// The form of the input.
pub const INPUT_VERSION: &str = "cotter.input/v1";

/// What a decision is made from. Nothing else reaches a policy: no clock, no network, no random number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// `cotter.input/v1`.
    pub version: String,
    /// The line of the protocol.
    pub era: Era,
    /// The protocol.
    pub protocol: ProtocolName,
    /// The time of the question, RFC 3339 in UTC. The only clock that a policy has.
    pub now: String,
    /// The server.
    pub server: ServerDocument,
    /// Who asks.
    pub principal: PrincipalDocument,
    /// The delegations of this principal that are active now, already narrowed along their chain, by name.
    pub grants: BTreeMap<String, GrantDocument>,
    /// What is asked for.
    pub operation: OperationDocument,
    /// The tool; absent only where `tools` is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolDocument>,
    /// The tools of a list, by name. Modules do not see it: they are asked about each tool by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<ToolName, ToolDocument>>,
    /// The arguments of the call, an empty object where the caller sent none; absent when listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// The digest of the arguments' RFC 8785 form, `sha256:` and 64 hexadecimal digits; absent when listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub args_digest: Option<Digest>,
    /// What became of the request for a person's agreement to this call. Always absent yet: there are no approvals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalDocument>,
    /// What is known of an earlier call with this idempotency key. Always absent yet: there is no ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerDocument>,
}

/// A request for a person's agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalDocument {
    /// How it stands.
    pub state: ApprovalState,
    /// Its name.
    pub id: String,
}

/// How a request for a person's agreement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApprovalState {
    /// Nobody has answered.
    Pending,
    /// A person agreed, and the agreement was not used.
    Approved,
    /// A person refused.
    Denied,
    /// Its time ended.
    Expired,
    /// A call was made with it: it is good for one.
    Used,
}

/// What is known of an earlier call with the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LedgerDocument {
    /// How it stands.
    pub state: LedgerState,
}

/// How an earlier call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LedgerState {
    /// It is about to be sent.
    Reserved,
    /// It was sent, and not answered yet.
    Dispatched,
    /// It was answered with a result.
    Succeeded,
    /// It was answered with an error.
    Failed,
    /// It was sent, and no answer came.
    Unknown,
}

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolName {
    /// Model Context Protocol.
    Mcp,
}

/// The server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerDocument {
    /// The McpServer's namespace.
    pub namespace: Namespace,
    /// The McpServer's name.
    pub name: ObjectName,
    /// What tokens have to be minted for.
    pub audience: Audience,
    /// The McpServer's labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The tenants that may be here, each with the value true; `*` admits everybody.
    pub tenants: BTreeMap<String, bool>,
}

/// Who asks, as the verified token tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrincipalDocument {
    /// Who minted the token.
    pub issuer: Issuer,
    /// Whom it is about.
    pub subject: Subject,
    /// The tenant, where the token names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// The scopes that the token states; absent where it has no scope claim, empty where it states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<BTreeSet<Scope>>,
    /// Groups.
    #[serde(default)]
    pub groups: BTreeSet<String>,
    /// The service account, where this cluster minted the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccount>,
    /// The outermost actor, the only one that acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// The whole chain of actors, outermost first.
    #[serde(default)]
    pub actor_chain: Vec<Actor>,
    /// Whether the principal acts under delegations only: its token names an actor or has no scope claim, or a delegation to this
    /// server names it.
    pub delegated: bool,
}

impl PrincipalDocument {
    /// What a policy sees of a principal.
    #[must_use]
    pub fn new(principal: &Principal, delegated: bool) -> Self {
        Self {
            issuer: principal.issuer.clone(),
            subject: principal.subject.clone(),
            tenant: principal.tenant.clone(),
            scopes: principal.scopes.clone(),
            groups: principal.groups.clone(),
            service_account: principal.service_account.clone(),
            actor: principal.actor.clone(),
            actor_chain: principal.actor_chain.clone(),
            delegated,
        }
    }
}

/// One delegation, every member an object whose keys are what is permitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantDocument {
    /// Scopes.
    pub scopes: BTreeMap<Scope, bool>,
    /// Effects.
    pub effects: BTreeMap<Effect, bool>,
    /// Declared tools that its patterns fit.
    pub tools: BTreeMap<ToolName, bool>,
    /// Tenants.
    pub tenants: BTreeMap<Tenant, bool>,
    /// Ancestors, nearest first.
    #[serde(default)]
    pub ancestors: Vec<String>,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationDocument {
    /// The JSON-RPC method.
    pub method: String,
    /// `list`: may the tool be seen? `call`: may it be used, with these arguments?
    pub kind: Kind,
}

/// The tool, as the McpServer declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolDocument {
    /// Its name.
    pub name: ToolName,
    /// The scope that it demands.
    pub scope: Scope,
    /// Its declared effect.
    pub effect: Effect,
    /// Whether its owner wants a person to agree.
    pub approval: Approval,
    /// Where in the arguments the key is that makes a repeated call harmless, a JSON pointer, where its owner declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub idempotency_key: Option<Pointer>,
    /// The tool's own bounds, where its owner declares any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ToolLimitsDocument>,
    /// How its definition compares with what was approved.
    pub pin: PinDocument,
    /// What the server says of the tool: hints for modules, which no rule of the library believes. Absent where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<AnnotationsDocument>,
}

/// The bounds of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolLimitsDocument {
    /// Deadline, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Bound on the result, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
}

/// The `annotations` of a tool's definition, as far as they have the type that MCP gives them. What has another type, or another name, is
/// left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnotationsDocument {
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// What it changes may be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches things outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl AnnotationsDocument {
    /// What a policy sees of a definition's `annotations`.
    #[must_use]
    pub fn of(stated: &Value) -> Self {
        let hint = |name: &str| stated.get(name).and_then(Value::as_bool);
        Self {
            title: stated.get("title").and_then(Value::as_str).map(str::to_owned),
            read_only_hint: hint("readOnlyHint"),
            destructive_hint: hint("destructiveHint"),
            idempotent_hint: hint("idempotentHint"),
            open_world_hint: hint("openWorldHint"),
        }
    }
}

/// How a definition compares with what was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PinDocument {
    /// `Matched`, `Drifted`, `Added`, `Unpinned`, …
    pub state: String,
    /// The class of the difference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}
