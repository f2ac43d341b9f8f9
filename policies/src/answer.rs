//! From the engine's value to a decision. What is not exactly the documented answer is a refusal.

use std::sync::Arc;

use cotter_core::{
    decision::{Approval, DECISION_VERSION, Decision, DecisionVersion, Obligations, Reason},
    name::Scope,
    reason::DenyReason,
};
use regorus::Value;

/// A decision with the delegations that permit it, each by itself, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) decision: Arc<Decision>,
    pub(crate) delegations: Arc<[Arc<str>]>,
}

impl Answer {
    /// Refused, by Cotter itself and not by a rule.
    pub(crate) fn refused(code: DenyReason, detail: Option<String>) -> Self {
        Self { decision: Arc::new(Decision::deny(code, detail)), delegations: Arc::default() }
    }
}

/// A reason's own words are cut here: they are for a log line and a table, not for a text.
const DETAIL: usize = 256;
/// Members of the documented answer.
const MEMBERS: usize = 6;

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
    member("version")?.as_string().ok().filter(|version| version.as_ref() == DECISION_VERSION)?;
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
    let mut delegations = delegations.iter().map(|name| name.as_string().ok().cloned()).collect::<Option<Vec<_>>>()?;
    delegations.sort();
    let version = DecisionVersion::V1;
    let decision = Arc::new(Decision { version, allow, reasons, obligations, challenge_scopes });
    let delegations = if allow { delegations.into() } else { Arc::default() };
    Some(Answer { decision, delegations })
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

/// Words that somebody else chose, for a log line.
pub(crate) fn bounded(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(DETAIL).collect()
}

fn obligations(value: &Value) -> Option<Obligations> {
    let (mut approval, mut found) = (None, Obligations::default());
    for (name, value) in value.as_object().ok()?.iter() {
        match name.as_string().ok()?.as_ref() {
            "approval" => approval = Some(approves(value)?),
            "idempotency" => found.idempotency = Some(value.as_string().ok()?.parse().ok()?),
            "resultBytes" => found.result_bytes = Some(value.as_u64().ok()?),
            "timeoutMs" => found.timeout_ms = Some(value.as_u64().ok()?),
            _ => return None,
        }
    }
    Some(Obligations { approval: approval?, ..found })
}

fn approves(value: &Value) -> Option<Approval> {
    match value.as_string().ok()?.as_ref() {
        "Never" => Some(Approval::Never),
        "Always" => Some(Approval::Always),
        _ => None,
    }
}

fn scope(value: &Value) -> Option<Scope> {
    value.as_string().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed() -> serde_json::Value {
        json!({
            "version": "cotter.decision/v1", "allow": true, "reasons": [], "challengeScopes": [], "delegations": [],
            "obligations": {"approval": "Always", "idempotency": "/key", "resultBytes": 10, "timeoutMs": 20},
        })
    }

    fn reads(answer: &serde_json::Value) -> Answer {
        read(&Value::from(answer.clone()))
    }

    #[test]
    fn the_documented_answer_is_read_whole() {
        let obligations = Obligations {
            approval: Approval::Always,
            idempotency: Some("/key".parse().unwrap()),
            result_bytes: Some(10),
            timeout_ms: Some(20),
        };
        let answer = reads(&allowed());
        assert!(answer.decision.allow);
        assert_eq!(answer.decision.obligations, obligations);
    }

    #[test]
    fn an_answer_of_any_other_form_refuses() {
        for (pointer, wrong) in [
            ("/version", json!("cotter.decision/v2")),
            ("/version", json!(null)),
            ("/more", json!(true)),
            ("/allow", json!(false)),
            ("/obligations/approval", json!("Sometimes")),
            ("/obligations/redact", json!([])),
            ("/obligations/idempotency", json!("key")),
            ("/obligations/resultBytes", json!(-1)),
            ("/obligations/timeoutMs", json!("20")),
            ("/obligations", json!({})),
        ] {
            let changes = std::collections::BTreeMap::from([(pointer.to_owned(), wrong)]);
            let told = reads(&crate::cases::changed(&allowed(), &changes).unwrap());
            assert_eq!(told.decision.first_reason(), Some(DenyReason::PolicyUndefined), "{pointer}");
            assert_eq!(told.decision.obligations, Obligations::default());
        }
    }
}
