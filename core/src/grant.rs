//! Delegations as the sidecar enforces them: already attenuated along their chain, matched to a principal by what its token says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    budget::Budget,
    effect::Effect,
    name::{Issuer, Scope, Subject, Tenant},
    principal::{Principal, ServiceAccount},
};

/// A pattern over tool names: `*` stands for any run of characters and is the only metacharacter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole name fits. Linear in the name for each literal piece, without backtracking over more than one star.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(first) = pieces.next() else { return false };
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let mut pieces: Vec<&str> = pieces.collect();
        let Some(last) = pieces.pop() else { return rest.is_empty() };
        for piece in pieces {
            match rest.find(piece).and_then(|at| rest.get(at + piece.len()..)) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl FromStr for Glob {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > 128 || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!(
                "tool pattern {text:?} has to be 1 to 128 printable ASCII characters, `*` for any run"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whom a delegation names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Party {
    /// One subject of one issuer.
    Subject {
        /// The issuer.
        issuer: Issuer,
        /// The subject.
        subject: Subject,
    },
    /// Everybody whose token has all these claims, each equal to the value or an array that contains it.
    Claims(BTreeMap<String, Value>),
    /// A service account of this cluster.
    ServiceAccount(ServiceAccount),
}

impl Party {
    /// Whether the token's own subject is this party.
    #[must_use]
    pub fn is_subject_of(&self, principal: &Principal) -> bool {
        match self {
            Self::Subject { issuer, subject } => *issuer == principal.issuer && *subject == principal.subject,
            Self::Claims(wanted) => {
                !wanted.is_empty() && wanted.iter().all(|(name, value)| has_claim(principal, name, value))
            }
            Self::ServiceAccount(account) => principal.service_account.as_ref() == Some(account),
        }
    }

    /// Whether the token's outermost actor is this party. Claims describe a token's subject, so they never match an actor.
    #[must_use]
    pub fn is_actor_of(&self, principal: &Principal) -> bool {
        let Some(actor) = &principal.actor else { return false };
        match self {
            Self::Subject { issuer, subject } => *issuer == actor.issuer && *subject == actor.subject,
            Self::Claims(_) => false,
            Self::ServiceAccount(account) => actor.service_account.as_ref() == Some(account),
        }
    }
}

fn has_claim(principal: &Principal, name: &str, wanted: &Value) -> bool {
    match principal.claims.get(name) {
        Some(Value::Array(values)) => values.contains(wanted),
        Some(value) => value == wanted,
        None => false,
    }
}

/// Why a delegation gives nothing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Inactive {
    /// `suspended: true`, on it or above it.
    Suspended,
    /// A parent is missing, not accepted, or itself inactive.
    ParentInactive,
    /// The chain is longer than an ancestor's `maxDepth` allows.
    DepthExceeded,
}

/// One delegation to this server, after attenuation along its chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The AgentDelegation's name.
    pub name: String,
    /// On whose behalf; absent in a root grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegator: Option<Party>,
    /// Who acts.
    pub delegate: Party,
    /// Scopes that the delegate may use.
    pub scopes: BTreeSet<Scope>,
    /// Effects that the delegate may have.
    pub effects: BTreeSet<Effect>,
    /// Tools, by pattern. A tool has to fit one pattern of every list: one list for each link of the chain.
    pub tools: Vec<Vec<Glob>>,
    /// Tenants in which it holds.
    pub tenants: BTreeSet<Tenant>,
    /// Not valid before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub not_before: Option<Timestamp>,
    /// Not valid from this time on: the earliest along the chain.
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
    /// Set where it gives nothing, whatever the time. It still makes its delegate act under delegations only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive: Option<Inactive>,
    /// Ancestors, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<String>,
    /// Its own budget and that of each ancestor that has one, nearest first. A call under it is charged to all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Budget>,
}

impl Grant {
    /// Whether the principal is the one that acts under this grant (RFC 8693: with a delegator the token carries `act`).
    #[must_use]
    pub fn matches(&self, principal: &Principal) -> bool {
        match &self.delegator {
            Some(delegator) => delegator.is_subject_of(principal) && self.delegate.is_actor_of(principal),
            None => principal.actor.is_none() && self.delegate.is_subject_of(principal),
        }
    }

    /// Whether the principal is named as delegate at all, active or not: then it acts only under delegations.
    #[must_use]
    pub fn names(&self, principal: &Principal) -> bool {
        self.matches(principal) || self.delegate.is_subject_of(principal) || self.delegate.is_actor_of(principal)
    }

    /// Whether the grant gives something at this time.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.inactive.is_none() && self.not_before.is_none_or(|from| now >= from) && now < self.expires_at
    }

    /// Whether every link of the chain has a pattern that fits the tool.
    #[must_use]
    pub fn covers(&self, tool: &str) -> bool {
        !self.tools.is_empty() && self.tools.iter().all(|link| link.iter().any(|glob| glob.matches(tool)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_a_service_account_only_where_the_cluster_vouches_for_it() {
        let account = serde_json::json!({"namespace": "support", "name": "bot"});
        let party: Party = serde_json::from_value(serde_json::json!({"serviceAccount": account})).unwrap();
        let principal = |service_account: Option<&Value>| {
            let mut actor =
                serde_json::json!({"issuer": "https://corp", "subject": "system:serviceaccount:support:bot"});
            if let Some(account) = service_account {
                actor["serviceAccount"] = account.clone();
            }
            let text = serde_json::json!({"issuer": "https://corp", "subject": "mia", "actor": actor, "expiresAt": "2026-11-30T00:00:00Z"});
            serde_json::from_value::<Principal>(text).unwrap()
        };
        assert!(party.is_actor_of(&principal(Some(&account))));
        assert!(!party.is_actor_of(&principal(None)), "a subject that reads like one is none");
    }

    fn glob(text: &str) -> Glob {
        text.parse().unwrap()
    }

    #[test]
    fn a_star_stands_for_any_run() {
        for (pattern, name) in
            [("*", "x"), ("policy_*", "policy_lookup"), ("*_tag", "case_tag"), ("a*b*c", "a1b2c"), ("a*a", "aa")]
        {
            assert!(glob(pattern).matches(name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("policy_*", "case_tag"), ("a*a", "a"), ("case", "case_tag"), ("a*b*c", "a1c"), ("a?", "ab")]
        {
            assert!(!glob(pattern).matches(name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_bad_pattern_is_refused() {
        assert!("".parse::<Glob>().is_err());
        assert!("a b".parse::<Glob>().is_err());
    }
}
