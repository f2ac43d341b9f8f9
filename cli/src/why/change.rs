//! What would have to change for a layer not to refuse, by name: the scope, the tenant, the delegation and the member that it lacks.

use cotter_core::{
    grant::{Grant, Inactive},
    principal::Principal,
    reason::DenyReason,
    snapshot::ToolRule,
};
use cotter_policies::{Explanation, Layer};
use jiff::Timestamp;
use serde_json::Value;

use super::Question;

pub(super) fn tenant(question: &Question<'_>) -> Vec<String> {
    let tenants: Vec<&str> = question.snapshot.access.tenants.iter().map(String::as_str).collect();
    let (server, tenants) = (question.server, tenants.join(", "));
    vec![match &question.principal.tenant {
        Some(tenant) => {
            format!("spec.access.tenants of {server} has to have {tenant}, or the token another tenant: {tenants}")
        }
        None => format!("the token has to name a tenant: {tenants}"),
    }]
}

pub(super) fn pin(question: &Question<'_>, reason: DenyReason) -> Option<String> {
    let (server, tool) = (question.server, question.tool);
    match reason {
        DenyReason::Unlisted => {
            Some(format!("spec.tools of {server} has to declare {tool}, with its scope and effect"))
        }
        DenyReason::NotOffered => Some(format!("the server behind {server} has to offer {tool}")),
        DenyReason::Ambiguous => {
            Some(format!("the server behind {server} has to offer one tool {tool}, and none that looks like it"))
        }
        DenyReason::Quarantined => {
            Some(format!("somebody has to look at the change of {tool} and approve it: cotter pin {server}"))
        }
        DenyReason::NotReady => Some(format!("the sidecar of {server} has to reach the server and read its tools")),
        _ => None,
    }
}

/// What a layer of the library, or a module, would need.
pub(super) fn policy(question: &Question<'_>, layer: &Layer, explanation: &Explanation) -> Vec<String> {
    match layer.name.as_str() {
        "scopes" => scopes(question),
        "delegation" => delegation(question, &layer.found),
        "modules" => modules(question, explanation),
        _ => Vec::new(),
    }
}

fn scopes(question: &Question<'_>) -> Vec<String> {
    let Some(rule) = question.snapshot.tools.get(question.tool.as_str()) else { return Vec::new() };
    vec![match &question.principal.scopes {
        None => format!("the token has to state the scope {}: it states none", rule.scope),
        Some(held) if held.is_empty() => format!("the token has to have the scope {}: it has none", rule.scope),
        Some(held) => {
            let held: Vec<&str> = held.iter().map(AsRef::as_ref).collect();
            format!("the token has to have the scope {}: it has {}", rule.scope, held.join(", "))
        }
    }]
}

fn delegation(question: &Question<'_>, found: &Value) -> Vec<String> {
    let Some(rule) = question.snapshot.tools.get(question.tool.as_str()) else { return Vec::new() };
    let gaps = found.get("gaps").and_then(Value::as_object).filter(|gaps| !gaps.is_empty());
    if let Some(gaps) = gaps {
        return gaps.iter().map(|(name, gaps)| format!("the AgentDelegation {name} lacks {}", lacks(gaps))).collect();
    }
    let named: Vec<&Grant> = question.snapshot.grants.iter().filter(|grant| grant.names(question.principal)).collect();
    if named.is_empty() {
        return vec![create(question, rule)];
    }
    named.into_iter().map(|grant| sleeping(grant, question.principal, question.now)).collect()
}

/// What one delegation does not give, by the members of its spec.
fn lacks(gaps: &Value) -> String {
    let gap = |gap: &Value| {
        let detail = gap.get("detail").and_then(Value::as_str).unwrap_or_default();
        let member = match gap.get("code").and_then(Value::as_str).and_then(DenyReason::from_name)? {
            DenyReason::ScopeNotDelegated => "scopes",
            DenyReason::EffectNotDelegated => "effects",
            DenyReason::ToolNotDelegated => "tools",
            DenyReason::TenantNotDelegated => "tenants",
            _ => return None,
        };
        Some(format!("{detail} in spec.{member}"))
    };
    gaps.as_array().into_iter().flatten().filter_map(gap).collect::<Vec<_>>().join(" and ")
}

fn create(question: &Question<'_>, rule: &ToolRule) -> String {
    let principal = question.principal;
    let who = match (&principal.service_account, &principal.actor) {
        (_, Some(actor)) => format!("{} for {}", actor.subject, principal.subject),
        (Some(account), None) => format!("the service account {}/{}", account.namespace, account.name),
        (None, None) => principal.subject.to_string(),
    };
    let tenant = principal.tenant.as_ref().map_or(String::new(), |tenant| format!(", tenants [{tenant}]"));
    format!(
        "an AgentDelegation to {} has to name {who}, with scopes [{}], effects [{}], tools [{}]{tenant}",
        question.server, rule.scope, rule.effect, question.tool
    )
}

/// Why a delegation that names the caller gives nothing.
fn sleeping(grant: &Grant, principal: &Principal, now: Timestamp) -> String {
    let name = &grant.name;
    match grant.inactive {
        Some(Inactive::Suspended) => {
            format!("the AgentDelegation {name} is suspended, or one above it is: spec.suspended")
        }
        Some(Inactive::ParentInactive) => format!("a parent of the AgentDelegation {name} is missing or not active"),
        Some(Inactive::DepthExceeded) => {
            format!("the chain of the AgentDelegation {name} is longer than an ancestor's spec.maxDepth")
        }
        None if now >= grant.expires_at => format!("the AgentDelegation {name} expired at {}", grant.expires_at),
        None if !grant.matches(principal) => {
            format!(
                "the AgentDelegation {name} names the caller, and the token not the delegator with the caller as its actor"
            )
        }
        None => format!("the AgentDelegation {name} begins at {}", grant.not_before.unwrap_or(now)),
    }
}

/// The rules of modules that refuse.
fn modules(question: &Question<'_>, explanation: &Explanation) -> Vec<String> {
    let own = explanation.rules.iter().filter(|rule| question.snapshot.policies.contains_key(&rule.file));
    let fired = own.filter(|rule| rule.fired == Some(true) && rule.rule.starts_with("deny "));
    fired.map(|rule| format!("{}:{}:{} refuses: {}", rule.file, rule.line, rule.column, rule.rule)).collect()
}
