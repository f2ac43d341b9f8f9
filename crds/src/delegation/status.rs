//! What a delegation comes to.

use std::collections::BTreeMap;

use cotter_core::effect::Effect;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{delegation::Budget, schema};

/// What the delegation comes to, after all its parents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentDelegationStatus {
    /// The metadata.generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,

    /// `Accepted`: the spec can be used. `ResolvedRefs`: parent and servers exist. `Active`: it permits calls now; otherwise the reason is Expired, NotYetValid, Suspended, ParentInactive, DepthExceeded or BudgetExhausted. `Enforced`: every live sidecar of its servers enforces this generation. `Ready`: all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What is left after narrowing by every parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<Effective>,

    /// What was charged to its budget, by calls under it and under every delegation below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetUse>,

    /// How often it was used since it was made, as the sidecars report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<Uses>,

    /// The delegation in words, for the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<DelegationSummary>,
}

/// What is left after narrowing by every parent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Effective {
    /// Scopes.
    #[schemars(schema_with = "schema::status_strings")]
    pub scopes: Vec<String>,

    /// Effects.
    #[schemars(length(max = 4))]
    pub effects: Vec<Effect>,

    /// Patterns of tool names; where a parent has patterns too, a name has to fit both.
    #[schemars(schema_with = "schema::status_strings")]
    pub tools: Vec<String>,

    /// Tenants.
    #[schemars(schema_with = "schema::status_strings")]
    pub tenants: Vec<String>,

    /// Servers.
    #[schemars(schema_with = "schema::status_strings")]
    pub servers: Vec<String>,

    /// Until when, the earliest along the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub expires_at: Option<Time>,

    /// The smallest budget along the chain. What siblings use of their parent's budget is not taken off here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,

    /// How many parents stand above it.
    #[schemars(range(min = 0))]
    pub depth: i32,
}

/// Runs of sidecars that a status names.
pub const MAX_RUNS: usize = 256;

/// What was charged to a budget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BudgetUse {
    /// Calls since the delegation was made, written every few seconds while they move and at once when they are used up.
    #[schemars(range(min = 0))]
    pub charged: i64,

    /// The same for the table, such as 57/100 where the budget bounds calls in all, or the bound, such as 10/min, where it bounds only those of a minute.
    #[schemars(schema_with = "schema::status_string")]
    pub used: String,

    /// How many of them each sidecar charged since it started, so that an operator that restarts goes on counting.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::status_counts")]
    pub runs: BTreeMap<String, i64>,
}

/// How often a delegation was used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Uses {
    /// Calls that it permitted.
    #[schemars(range(min = 0))]
    pub allowed: i64,

    /// Calls of its delegates that it did not permit.
    #[schemars(range(min = 0))]
    pub denied: i64,

    /// When it last permitted one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_used: Option<Time>,

    /// When it last did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_denial: Option<Time>,
}

/// A delegation in words, for the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DelegationSummary {
    /// Who acts.
    #[schemars(schema_with = "schema::status_string")]
    pub delegate: String,

    /// On what.
    #[schemars(schema_with = "schema::status_string")]
    pub to: String,

    /// With which scopes, commas between.
    #[schemars(schema_with = "schema::status_string")]
    pub scopes: String,
}
