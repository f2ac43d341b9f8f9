//! What is asked of the policy and what it answers. Both are documented, versioned values with a JSON Schema made from these types.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{name::Scope, pointer::Pointer, reason::DenyReason};

/// The form of a decision, as the policy library states it.
pub const DECISION_VERSION: &str = "cotter.decision/v1";

/// What the caller wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// See a tool.
    List,
    /// Use a tool.
    Call,
}

/// Which of the two lines of the protocol a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, sessions.
    Legacy,
    /// From 2026-07-28: every request stands alone.
    Modern,
}

/// When a person has to agree before a call goes out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// Not needed.
    #[default]
    Never,
    /// Needed for each call.
    Always,
}

/// The form of an answer. An answer of another form is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DecisionVersion {
    /// [`DECISION_VERSION`].
    #[default]
    #[serde(rename = "cotter.decision/v1")]
    V1,
}

/// The policy's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The form.
    #[serde(default)]
    pub version: DecisionVersion,
    /// Whether it may happen.
    pub allow: bool,
    /// Stable codes: why not, sorted; empty where allowed.
    #[serde(default)]
    pub reasons: Vec<Reason>,
    /// What has to hold on the way.
    #[serde(default)]
    pub obligations: Obligations,
    /// All scopes that this operation needs, for a step-up challenge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub challenge_scopes: Vec<Scope>,
}

impl Decision {
    /// Refused for one reason.
    #[must_use]
    pub fn deny(code: DenyReason, detail: Option<String>) -> Self {
        let reasons = vec![Reason { code, detail }];
        Self {
            version: DecisionVersion::V1,
            allow: false,
            reasons,
            obligations: Obligations::default(),
            challenge_scopes: Vec::new(),
        }
    }

    /// The reason that decides the answer: the first.
    #[must_use]
    pub fn first_reason(&self) -> Option<DenyReason> {
        self.reasons.first().map(|reason| reason.code)
    }
}

/// One reason with what it is about: a scope, a tenant, a rule's own words. The detail is for the owner, never for the caller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The stable code.
    pub code: DenyReason,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            None => write!(f, "{}", self.code),
            Some(detail) => write!(f, "{} {detail}", self.code),
        }
    }
}

/// What has to hold for an allowed operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Obligations {
    /// Whether a person has to agree first.
    #[serde(default)]
    pub approval: Approval,
    /// Where in the arguments the key is that makes a repeated call harmless. Nothing is refused by it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub idempotency: Option<Pointer>,
    /// A smaller bound on the result, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// A shorter deadline, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_states_its_form() {
        let denied = Decision::deny(DenyReason::MissingScope, None);
        let told = serde_json::to_value(&denied).unwrap();
        assert_eq!(told["version"], DECISION_VERSION);
        assert_eq!(serde_json::from_value::<Decision>(told.clone()).unwrap(), denied);
        let mut other = told;
        other["version"] = "cotter.decision/v2".into();
        assert!(serde_json::from_value::<Decision>(other).is_err());
    }
}
