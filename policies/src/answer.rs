//! From the engine's value to a decision. What is not exactly the documented answer is a refusal.

use std::sync::Arc;

use cotter_core::{
    decision::{Approval, Decision, Obligations, Reason},
    name::Scope,
    reason::DenyReason,
};
use regorus::Value;

/// A decision with the delegation that permitted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) decision: Arc<Decision>,
    pub(crate) delegation: Option<Arc<str>>,
}

impl Answer {
    /// Refused, by Cotter itself and not by a rule.
    pub(crate) fn refused(code: DenyReason, detail: Option<String>) -> Self {
        Self { decision: Arc::new(Decision::deny(code, detail)), delegation: None }
    }
}

/// A reason's own words are cut here: they are for a log line and a table, not for a text.
const DETAIL: usize = 256;
/// Members of the documented answer.
const MEMBERS: usize = 5;

/// Reads an answer; undefined and malformed ones refuse.
pub(crate) fn read(value: &Value) -> Answer {
    match parse(value) {
        Some(answer) => answer,
        None => Answer::refused(DenyReason::PolicyUndefined, None),
    }
}

fn parse(value: &Value) -> Option<Answer> {
    let members = value.as_object().ok().filter(|members| members.len() == MEMBERS)?;
    let member = |name: &str| members.get(&Value::from(name));
    let mut reasons = items(member("reasons")?)?.iter().map(reason).collect::<Option<Vec<_>>>()?;
    reasons.sort();
    reasons.dedup();
    let allow = *member("allow")?.as_bool().ok()?;
    if allow != reasons.is_empty() {
        return None;
    }
    let obligations = obligations(member("obligations")?)?;
    let challenge_scopes = items(member("challengeScopes")?)?.iter().map(scope).collect::<Option<Vec<_>>>()?;
    let delegations = items(member("delegations")?)?;
    let delegation =
        delegations.iter().map(|name| name.as_string().ok().cloned()).collect::<Option<Vec<_>>>()?.into_iter().min();
    let decision = Arc::new(Decision { allow, reasons, obligations, challenge_scopes });
    Some(Answer { decision, delegation: delegation.filter(|_| allow) })
}

fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items.iter().cloned().collect()),
        Value::Set(items) => Some(items.iter().cloned().collect()),
        _ => None,
    }
}

fn reason(value: &Value) -> Option<Reason> {
    let members = value.as_object().ok()?;
    let code = DenyReason::from_name(members.get(&Value::from("code"))?.as_string().ok()?)?;
    let detail = match members.get(&Value::from("detail")) {
        None => None,
        Some(Value::String(words)) => Some(bounded(words)),
        Some(other) => Some(bounded(&serde_json::to_string(other).ok()?)),
    };
    Some(Reason { code, detail })
}

fn bounded(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(DETAIL).collect()
}

fn obligations(value: &Value) -> Option<Obligations> {
    let members = value.as_object().ok().filter(|members| members.len() == 1)?;
    let approval = match members.get(&Value::from("approval"))?.as_string().ok()?.as_ref() {
        "Never" => Approval::Never,
        "Always" => Approval::Always,
        _ => return None,
    };
    Some(Obligations { approval, ..Obligations::default() })
}

fn scope(value: &Value) -> Option<Scope> {
    value.as_string().ok()?.parse().ok()
}
