//! The documents that Rego sees and gives: the input, by name and never as arrays to scan where there can be many, and the answer.
//! The JSON Schemas under `schema/` are made from these types.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    decision::{Approval, Era, Kind},
    effect::Effect,
    name::{Audience, Issuer, Namespace, ObjectName, Scope, Subject, Tenant, ToolName},
    principal::{Actor, Principal, ServiceAccount},
    reason::DenyReason,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The arguments of the call; absent when listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
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
    /// How its definition compares with what was approved.
    pub pin: PinDocument,
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

/// What `data.cotter.authz.decision` gives. Anything else is a refusal with reason `PolicyUndefined`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// Whether it may happen.
    pub allow: bool,
    /// Why not; a set, empty where allowed.
    pub reasons: Vec<OutputReason>,
    /// All scopes that this operation needs, where asking for them would help.
    pub challenge_scopes: Vec<Scope>,
    /// Names of the delegations that permit it, each by itself; a set.
    pub delegations: BTreeSet<String>,
    /// What has to hold on the way.
    pub obligations: OutputObligations,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputReason {
    /// The stable code.
    pub code: DenyReason,
    /// What it is about: a scope, a tenant, a module's own words (any JSON value; what is not a string is shown as JSON).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// What has to hold for an allowed operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputObligations {
    /// Whether a person has to agree first.
    pub approval: Approval,
}
