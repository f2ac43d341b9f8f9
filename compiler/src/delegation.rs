//! An AgentDelegation that was parsed.

use std::collections::BTreeSet;

use cotter_core::{
    effect::Effect,
    grant::{Glob, Party},
    name::{Scope, Tenant},
};
use jiff::Timestamp;

/// A delegation to servers, whose every field was parsed. What it gives is known only with its chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegation {
    /// Its name.
    pub name: String,
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
    /// Revoked.
    pub suspended: bool,
}
