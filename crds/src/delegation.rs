//! `AgentDelegation`: who may act for whom, on what, until when.

use std::collections::BTreeMap;

use cotter_core::effect::Effect;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    reference::NameRef,
    rule,
    schema::{self, rules, rules_at},
};

mod agent;
mod status;

pub use agent::{Agent, AgentCredentials, Artifacts, Brief, Card, OPERATIONS, Push};
pub use status::{AgentDelegationStatus, BudgetUse, DelegationSummary, Effective, MAX_RUNS, Uses};

/// Permission for somebody to act on a server, for themselves or on behalf of somebody else, until a time.
///
/// Whoever may create one has power over the delegates it names on the servers of its namespace. What a call may do is what the token states, narrowed by one active delegation and all its parents, by the server and by policy.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cotter.dev",
    version = "v1alpha1",
    kind = "AgentDelegation",
    plural = "agentdelegations",
    singular = "agentdelegation",
    shortname = "adel",
    category = "cotter",
    namespaced,
    status = "AgentDelegationStatus",
    derive = "PartialEq",
    doc = "Permission for somebody to act on a server, for themselves or on behalf of somebody else, until a time.",
    printcolumn(name = "Delegate", type_ = "string", json_path = ".status.summary.delegate"),
    printcolumn(name = "To", type_ = "string", json_path = ".status.summary.to"),
    printcolumn(name = "Scopes", type_ = "string", json_path = ".status.summary.scopes"),
    printcolumn(name = "Active", type_ = "string", json_path = r#".status.conditions[?(@.type=="Active")].status"#),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt"),
    printcolumn(name = "Depth", type_ = "integer", json_path = ".status.effective.depth"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Active")].reason"#,
        priority = 1
    ),
    printcolumn(name = "Parent", type_ = "string", json_path = ".spec.parentRef.name", priority = 1),
    printcolumn(name = "Budget", type_ = "string", json_path = ".status.budget.used", priority = 1),
    printcolumn(name = "Allowed", type_ = "integer", json_path = ".status.uses.allowed", priority = 1),
    printcolumn(name = "Denied", type_ = "integer", json_path = ".status.uses.denied", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules_at(".expiresAt", &[rule::PERIOD])))]
pub struct AgentDelegationSpec {
    /// On whose behalf the delegate acts: exactly one of subject, claims and serviceAccount. The token must then name both (RFC 8693): the delegator as its subject, the delegate as its outermost `act`. Leave it out where the delegate acts for itself: the token's subject is then the delegate, and it names no actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegator: Option<Party>,

    /// Who acts: exactly one of subject, claims and serviceAccount.
    pub delegate: Party,

    /// The delegation that this one narrows, in the same namespace. One that asks for more than its parent gets what both permit, and says so (`WiderThanParent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_ref: Option<NameRef>,

    /// What may be called: exactly one of servers and agent.
    pub to: To,

    /// The scopes that the delegate gets, at most; a token that states scopes is narrowed by them. At least one.
    #[schemars(schema_with = "schema::delegated_scopes")]
    pub scopes: Vec<String>,

    /// The effects that calls may have, as the servers declare them for their tools: `Read`, `Write`, `Destructive`, `External` (`kubectl explain mcps.spec.tools.effect`). Each is named by itself; none includes another. At least one.
    #[schemars(schema_with = "schema::delegated_effects")]
    pub effects: Vec<Effect>,

    /// The tenants for which the delegate may act, by name. At least one.
    #[schemars(schema_with = "schema::delegated_tenants")]
    pub tenants: Vec<String>,

    /// The tools that may be called, as patterns in which `*` stands for any run of characters. ["*"] by default: every tool that scopes and effects leave.
    #[serde(default = "every_tool")]
    #[schemars(schema_with = "schema::tool_globs")]
    pub tools: Vec<String>,

    /// From when it counts, RFC 3339. At once by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub not_before: Option<Time>,

    /// Until when it counts, RFC 3339, such as 2027-01-31T00:00:00Z. At most 90 days from notBefore or from when the object was made, unless the operator is told otherwise.
    #[schemars(schema_with = "schema::time")]
    pub expires_at: Time,

    /// How many delegations may stand below this one in a chain. 0 (the default): the delegate cannot delegate further.
    #[serde(default)]
    #[schemars(range(min = 0, max = 8))]
    pub max_depth: i32,

    /// How many calls may be made under it and under every delegation below it, all servers and sidecars together. A call that is permitted is charged before it goes out, whatever comes of it; a refused one is not. What is used up is answered with `BudgetExhausted`. No bound of its own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,

    /// The switch that revokes it at once, with everything below it, and keeps the record. false by default.
    #[serde(default)]
    pub suspended: bool,
}

fn every_tool() -> Vec<String> {
    vec!["*".to_owned()]
}

/// Somebody: exactly one of the three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::PARTY_UNION])))]
pub struct Party {
    /// One subject of one issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<IssuedSubject>,

    /// Everybody whose token has all these claims, each with this value or an array that contains it. At least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::claims")]
    pub claims: Option<BTreeMap<String, String>>,

    /// A service account of this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountRef>,
}

/// One subject of one issuer, both compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedSubject {
    /// The issuer as its tokens name it in `iss`. It must be one of the server's issuers.
    #[schemars(schema_with = "schema::issuer")]
    pub issuer: String,

    /// The subject as the tokens name it in `sub`.
    #[schemars(schema_with = "schema::subject")]
    pub subject: String,
}

/// A service account of this cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountRef {
    /// Its name.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,

    /// Its namespace, that of the delegation by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label")]
    pub namespace: Option<String>,
}

/// What may be called: exactly one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::TO_UNION])))]
pub struct To {
    /// MCP servers in the same namespace, by name. At least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-validations" = rules(&[rule::SERVERS_NOT_EMPTY])))]
    pub servers: Option<Vec<NameRef>>,

    /// A remote agent, spoken to over A2A through a sidecar proxy of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
}

/// How many calls may be made: at least one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::BUDGET_NOT_EMPTY])))]
pub struct Budget {
    /// How many in all, as long as the delegation exists. Raise it to permit more; what was charged stays charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub calls: Option<i64>,

    /// How many in any minute. Several sidecars have an equal part each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub per_minute: Option<i64>,
}
