//! Who calls. Made from a verified token only; nothing in a request's body can set or widen it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name::{Issuer, Namespace, Scope, Subject, Tenant};

/// Somebody that a token names as acting (RFC 8693 section 4.1).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// Who vouches for the actor: the `iss` inside `act`, else the token's issuer.
    pub issuer: Issuer,
    /// The actor's subject.
    pub subject: Subject,
    /// The service account, where this cluster's own issuer vouches for the actor. A subject that merely reads like one is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccount>,
}

/// A service account of this cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
}

/// The caller, as a verified token tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Principal {
    /// Who minted the token.
    pub issuer: Issuer,
    /// Whom the token is about.
    pub subject: Subject,
    /// The tenant, where the token names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// The scopes that the token states; `None` where it has no scope claim at all, empty where it states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<BTreeSet<Scope>>,
    /// Groups, for policy.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups: BTreeSet<String>,
    /// The service account, where this cluster minted the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccount>,
    /// The outermost actor, the only one that acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// The whole chain of actors, outermost first: history, for the audit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actor_chain: Vec<Actor>,
    /// The verified claims, for delegations that match on claims. Never logged.
    #[serde(skip)]
    pub claims: BTreeMap<String, Value>,
    /// When the token expires.
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
}

impl Principal {
    /// Whether the token states this scope.
    #[must_use]
    pub fn holds(&self, scope: &Scope) -> bool {
        self.scopes.as_ref().is_some_and(|scopes| scopes.contains(scope))
    }

    /// Whether the token alone already makes its bearer act under delegations: it names an actor or has no scope claim.
    #[must_use]
    pub fn needs_delegation(&self) -> bool {
        self.actor.is_some() || self.scopes.is_none()
    }
}
