//! The one thing that the compiler cannot know when it makes a status: that a child was not applied.

use cotter_crds::{
    McpServer, McpServerStatus,
    condition::{self, Outcome, types},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::apply::ApplyError;

/// Says in the status that a child is not what it should be: a taken name is for a person to resolve, anything else is
/// tried again. `Ready` is False either way.
pub fn not_applied(status: &mut McpServerStatus, server: &McpServer, error: &ApplyError, now: Timestamp) {
    let text = error.to_string();
    let outcomes = match error {
        ApplyError::Taken { .. } => {
            let conflict = condition::conflict(&text);
            let ready = Outcome { type_: types::READY, ..conflict.clone() };
            vec![conflict, ready]
        }
        ApplyError::Api { .. } | ApplyError::Json(_) => vec![condition::apply_failed(&text)],
    };
    let old = server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let generation = server.metadata.generation.unwrap_or_default();
    for new in condition::merge(old, &outcomes, generation, &Time(now)) {
        replace(&mut status.conditions, new);
    }
}

/// In place, since the order of conditions is part of how they read.
fn replace(conditions: &mut Vec<Condition>, new: Condition) {
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(condition) => *condition = new,
        None => conditions.push(new),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> McpServerStatus {
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let conditions: Vec<_> = ["Accepted", "Available", "Ready"].map(condition).into();
        serde_json::from_value(json!({ "conditions": conditions })).unwrap()
    }

    fn server() -> McpServer {
        let server = json!({"metadata": {"name": "a", "namespace": "n", "generation": 3},
            "spec": {"audience": "x://y", "upstream": {"remote": {"url": "https://x/mcp"}}}});
        let mut server: McpServer = serde_json::from_value(server).unwrap();
        server.status = Some(status());
        server
    }

    fn told(error: &ApplyError) -> Vec<(String, String, String)> {
        let mut status = status();
        not_applied(&mut status, &server(), error, "2026-11-30T00:00:00Z".parse().unwrap());
        status.conditions.into_iter().map(|c| (c.type_, c.status, c.reason)).collect()
    }

    fn row(type_: &str, status: &str, reason: &str) -> (String, String, String) {
        (type_.to_owned(), status.to_owned(), reason.to_owned())
    }

    #[test]
    fn a_taken_name_is_a_conflict() {
        let error = ApplyError::Taken { kind: "Service".to_owned(), name: "a".to_owned() };
        assert_eq!(
            told(&error),
            [
                row("Accepted", "False", "Conflict"),
                row("Available", "True", "Available"),
                row("Ready", "False", "Conflict"),
            ]
        );
    }

    #[test]
    fn a_failure_makes_ready_false_and_nothing_else() {
        let source = Box::new(kube::Error::LinesCodecMaxLineLengthExceeded);
        let error = ApplyError::Api { verb: "apply", kind: "Deployment".to_owned(), name: "a".to_owned(), source };
        assert_eq!(told(&error)[0], row("Accepted", "True", "Accepted"));
        assert_eq!(told(&error)[2], row("Ready", "False", "ApplyFailed"));
    }
}
