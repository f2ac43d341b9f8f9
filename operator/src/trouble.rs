//! What the API server says when it refuses, in words: the client's own text repeats the whole answer as Debug output.

use kube::runtime::watcher;

/// The longest text of one refusal.
const MAX: usize = 300;

/// Why a request failed.
#[must_use]
pub fn words(error: &kube::Error) -> String {
    let text = match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("the API server answers {} {}", status.code, status.reason),
        other => other.to_string(),
    };
    text.chars().take(MAX).collect()
}

/// Why a watch failed. The next try is already on its way.
#[must_use]
pub fn watch_words(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => words(error),
        watcher::Error::WatchError(status) => status.message.chars().take(MAX).collect(),
        other => other.to_string().chars().take(MAX).collect(),
    }
}

/// Whether the namespace is going away: nothing can be made in it any more, and nothing has to be.
#[must_use]
pub fn is_namespace_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: serde_json::Value) -> kube::Error {
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn a_refusal_is_told_in_the_api_servers_words() {
        let error = refused(
            json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": "deployments.apps \"a\" is forbidden"}),
        );
        assert_eq!(words(&error), "deployments.apps \"a\" is forbidden");
        assert!(!words(&error).contains("Status {"));
        assert_eq!(
            words(&refused(json!({"code": 418, "reason": "Teapot", "message": ""}))),
            "the API server answers 418 Teapot"
        );
    }

    #[test]
    fn a_namespace_that_goes_away_is_told_from_missing_rights() {
        let cause = json!({"reason": "NamespaceTerminating", "message": "", "field": ""});
        let status =
            |causes| json!({"code": 403, "reason": "Forbidden", "message": "forbidden", "details": {"causes": causes}});
        assert!(is_namespace_terminating(&refused(status(json!([cause])))));
        assert!(!is_namespace_terminating(&refused(status(json!([])))));
    }
}
