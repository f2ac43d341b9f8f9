//! The answer of the policy library.

use std::collections::BTreeSet;

use cotter_core::{
    decision::{Approval, Decision, DecisionVersion, Obligations},
    name::Scope,
    pointer::Pointer,
    reason::DenyReason,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What `data.cotter.authz.decision` gives. Anything else is a refusal with reason `PolicyUndefined`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// `cotter.decision/v1`.
    pub version: DecisionVersion,
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

impl Output {
    /// What was read of an answer, with the delegations that permit it.
    pub(crate) fn new(decision: Decision, delegations: impl IntoIterator<Item = String>) -> Self {
        let Decision { version, allow, reasons, obligations, challenge_scopes } = decision;
        let Obligations { approval, idempotency, result_bytes, timeout_ms } = obligations;
        let reasons = reasons.into_iter();
        Self {
            version,
            allow,
            reasons: reasons
                .map(|reason| OutputReason { code: reason.code, detail: reason.detail.map(Value::from) })
                .collect(),
            challenge_scopes,
            delegations: delegations.into_iter().collect(),
            obligations: OutputObligations { approval, idempotency, result_bytes, timeout_ms },
        }
    }
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
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputObligations {
    /// Whether a person has to agree first.
    pub approval: Approval,
    /// Where in the arguments the key is that makes a repeated call harmless, a JSON pointer: for a tool that does more than read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub idempotency: Option<Pointer>,
    /// A bound on the result, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// A deadline, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}
