//! Who speaks on the stream: a projected service-account token, reviewed by the API server.
//!
//! # Guarantees
//! An [`Identity`] comes only from a TokenReview that answered for our own audience, and names a pod. [`Identity::guards`]
//! binds it to one server: the server's own ServiceAccount in the server's own namespace.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use cotter_core::snapshot::Digest;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::{Api, Client, api::PostParams};
use tokio::sync::Semaphore;

use crate::{key::ServerKey, trouble::words};

/// What tokens for the stream have to be minted for. No other audience opens it, least of all the API server's.
pub use cotter_compiler::build::OPERATOR_AUDIENCE as AUDIENCE;

/// How long an answer is used again. The tokens live for ten minutes; a deleted pod's token dies within this.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How long a refusal is used again: short, since a pod or an account may be about to exist.
const REFUSED: Duration = Duration::from_secs(5);
/// Answers that are remembered: one for each sidecar that the operator is made for.
const MAX_REMEMBERED: usize = 20_000;
/// Reviews at the same time; who waits longer than [`REVIEW_TIME`] is told to come again.
const REVIEWS: usize = 32;
const REVIEW_TIME: Duration = Duration::from_secs(10);
/// Service-account tokens are about 1 KiB.
const MAX_TOKEN: usize = 16 * 1024;

/// A pod, as its token tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Namespace of the pod and its account.
    pub namespace: String,
    /// The pod's service account.
    pub service_account: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub pod_uid: String,
}

/// Why nobody was identified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The token is not valid, or not for us.
    #[error("the token is not valid here: {0}")]
    Refused(String),
    /// Valid, but for somebody else's stream.
    #[error("{account} of namespace {namespace} does not guard {server}: its sidecar runs as {expected}")]
    Foreign {
        /// Who it is.
        account: String,
        /// Where.
        namespace: String,
        /// Whose stream was asked for.
        server: String,
        /// Whose account would be right.
        expected: String,
    },
    /// The API server did not answer.
    #[error("failed to review the token: {0}")]
    Unavailable(String),
}

impl Identity {
    /// Whether this pod is a sidecar of the server, whose pods run as `account`.
    ///
    /// # Errors
    /// [`AuthError::Foreign`].
    pub fn guards(&self, server: &ServerKey, account: &str) -> Result<(), AuthError> {
        if self.namespace == server.namespace && self.service_account == account {
            return Ok(());
        }
        Err(AuthError::Foreign {
            account: self.service_account.clone(),
            namespace: self.namespace.clone(),
            server: server.to_string(),
            expected: account.to_owned(),
        })
    }
}

/// Reads a review's answer. Everything that is needed has to be there.
///
/// # Errors
/// [`AuthError::Refused`], with what is missing.
pub fn identity(status: &TokenReviewStatus) -> Result<Identity, AuthError> {
    let refused = |why: &str| AuthError::Refused(why.to_owned());
    if status.authenticated != Some(true) {
        return Err(refused("the API server does not know it"));
    }
    if !status.audiences.iter().flatten().any(|audience| audience == AUDIENCE) {
        return Err(refused("it is not minted for the audience cotter.dev/operator"));
    }
    let user = status.user.as_ref().ok_or_else(|| refused("the review names nobody"))?;
    let name = user.username.as_deref().unwrap_or_default();
    let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let (namespace, account) = account.ok_or_else(|| refused("it is not a service account's"))?;
    let extra = |key: &str| {
        let values = user.extra.as_ref().and_then(|extra| extra.get(key)).map(Vec::as_slice);
        match values {
            Some([one]) if !one.is_empty() => Ok(one.clone()),
            _ => Err(refused("it is not bound to a pod")),
        }
    };
    Ok(Identity {
        namespace: namespace.to_owned(),
        service_account: account.to_owned(),
        pod: extra("authentication.kubernetes.io/pod-name")?,
        pod_uid: extra("authentication.kubernetes.io/pod-uid")?,
    })
}

type Answer = Result<Identity, AuthError>;

/// Asks the API server, and remembers answers for a short time.
pub struct Authenticator {
    reviews: Api<TokenReview>,
    slots: Semaphore,
    remembered: Mutex<HashMap<Digest, (Instant, Answer)>>,
}

impl Authenticator {
    /// An authenticator that asks through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { reviews: Api::all(client), slots: Semaphore::new(REVIEWS), remembered: Mutex::default() }
    }

    /// Whose token this is.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub async fn identify(&self, token: &str) -> Answer {
        if token.is_empty() || token.len() > MAX_TOKEN {
            return Err(AuthError::Refused("it has no usable length".to_owned()));
        }
        let digest = Digest::of(token.as_bytes());
        if let Some(answer) = self.recall(&digest, Instant::now()) {
            return answer;
        }
        let answer = match tokio::time::timeout(REVIEW_TIME, self.review(token)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(AuthError::Unavailable("the API server did not answer in time".to_owned())),
        };
        self.remember(digest, &answer, Instant::now());
        answer
    }

    async fn review(&self, token: &str) -> Answer {
        let unavailable = |why: String| AuthError::Unavailable(why);
        let _slot = self.slots.acquire().await.map_err(|error| unavailable(error.to_string()))?;
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: Some(vec![AUDIENCE.to_owned()]) };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review =
            self.reviews.create(&PostParams::default(), &review).await.map_err(|error| unavailable(words(&error)))?;
        identity(&review.status.unwrap_or_default())
    }

    fn recall(&self, digest: &Digest, now: Instant) -> Option<Answer> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(digest).filter(|(until, _)| *until > now).map(|(_, answer)| answer.clone())
    }

    fn remember(&self, digest: Digest, answer: &Answer, now: Instant) {
        let time = match answer {
            Ok(_) => REMEMBERED,
            Err(AuthError::Unavailable(_)) => return,
            Err(_) => REFUSED,
        };
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (until, _)| *until > now);
        }
        if remembered.len() < MAX_REMEMBERED {
            remembered.insert(digest, (now + time, answer.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(change: impl FnOnce(&mut serde_json::Value)) -> TokenReviewStatus {
        let mut status = json!({
            "authenticated": true,
            "audiences": ["cotter.dev/operator"],
            "user": {
                "username": "system:serviceaccount:support:support-mcp",
                "groups": ["system:serviceaccounts"],
                "extra": {
                    "authentication.kubernetes.io/pod-name": ["support-7c9"],
                    "authentication.kubernetes.io/pod-uid": ["0b1f"],
                },
            },
        });
        change(&mut status);
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_pods_token_for_our_audience_is_an_identity() {
        let who = identity(&status(|_| ())).unwrap();
        assert_eq!((who.namespace.as_str(), who.service_account.as_str()), ("support", "support-mcp"));
        assert_eq!((who.pod.as_str(), who.pod_uid.as_str()), ("support-7c9", "0b1f"));
    }

    #[test]
    fn anything_less_is_refused_and_says_what_is_missing() {
        let extra = "authentication.kubernetes.io/pod-uid";
        let cases: [(&str, TokenReviewStatus); 7] = [
            ("does not know it", status(|s| s["authenticated"] = json!(false))),
            ("does not know it", status(|s| s["authenticated"] = json!(null))),
            ("audience", status(|s| s["audiences"] = json!(["https://kubernetes.default.svc"]))),
            ("audience", status(|s| s["audiences"] = json!(null))),
            ("service account's", status(|s| s["user"]["username"] = json!("admin"))),
            ("bound to a pod", status(|s| s["user"]["extra"][extra] = json!([]))),
            ("bound to a pod", status(|s| s["user"]["extra"][extra] = json!(["a", "b"]))),
        ];
        for (wanted, status) in cases {
            let error = identity(&status).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn an_identity_guards_its_own_server_only() {
        let who = identity(&status(|_| ())).unwrap();
        let key = ServerKey::new("support", "support");
        assert_eq!(who.guards(&key, "support-mcp"), Ok(()));
        assert!(who.guards(&key, "billing-mcp").is_err(), "another server of the namespace");
        assert!(who.guards(&ServerKey::new("billing", "support"), "support-mcp").is_err(), "the name elsewhere");
    }
}
