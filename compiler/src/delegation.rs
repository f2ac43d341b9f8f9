//! An AgentDelegation that was parsed.

use std::collections::BTreeSet;

use cotter_core::{
    effect::Effect,
    grant::{Glob, Party},
    name::{Scope, Tenant},
};
use jiff::Timestamp;

/// Bounds on calls; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub calls: Option<u64>,
    /// In any minute.
    pub per_minute: Option<u64>,
}

impl Bounds {
    /// Whether nothing is bounded.
    #[must_use]
    pub const fn are_none(&self) -> bool {
        self.calls.is_none() && self.per_minute.is_none()
    }

    /// The smaller of each.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let smaller = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self { calls: smaller(self.calls, other.calls), per_minute: smaller(self.per_minute, other.per_minute) }
    }
}

/// A delegation to servers, whose every field was parsed. What it gives is known only with its chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegation {
    /// Its name.
    pub name: String,
    /// Its uid, in a cluster.
    pub uid: Option<String>,
    /// On whose behalf.
    pub delegator: Option<Party>,
    /// Who acts.
    pub delegate: Party,
    /// The delegation that it narrows.
    pub parent: Option<String>,
    /// The servers that it names.
    pub servers: BTreeSet<String>,
    /// Scopes.
    pub scopes: BTreeSet<Scope>,
    /// Effects.
    pub effects: BTreeSet<Effect>,
    /// Tenants, by name.
    pub tenants: BTreeSet<Tenant>,
    /// Patterns of tools.
    pub tools: Vec<Glob>,
    /// From when.
    pub not_before: Option<Timestamp>,
    /// Until when.
    pub expires_at: Timestamp,
    /// How many may stand below it.
    pub max_depth: u32,
    /// How many calls may be made under it.
    pub budget: Bounds,
    /// Revoked.
    pub suspended: bool,
}
