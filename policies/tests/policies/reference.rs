//! Who may call, once more: the rules of the resources' contract in plain Rust over plain data, without Rego and without a method of the
//! product. Slow and obvious on purpose.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    plain::{Caller, Lent, Tool, Whom, World},
    rules::{Adds, Deed},
};

/// What has to come out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Why not, by code; empty where allowed.
    pub(crate) codes: BTreeSet<&'static str>,
    /// The delegations that permit it, each by itself; empty where the token's own scopes do.
    pub(crate) by: Vec<String>,
    /// Whether a person has to agree.
    pub(crate) asks: bool,
    /// Whether the tool is in the caller's list.
    pub(crate) visible: bool,
}

impl Expected {
    pub(crate) fn allowed(&self) -> bool {
        self.codes.is_empty()
    }
}

/// `*` takes any run, every other character itself.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|taken| fits(rest, &name[taken..])),
        Some((letter, rest)) => name.first() == Some(letter) && fits(rest, &name[1..]),
    }
}

/// "`claims` match when every listed claim is equal to, or an array that contains, the value; at least one is required."
fn claims(wanted: &[(&str, Value)], found: &[(&str, Value)]) -> bool {
    let holds = |name: &str, value: &Value| {
        found.iter().any(|(other, said)| {
            *other == name && (said == value || said.as_array().is_some_and(|items| items.iter().any(|i| i == value)))
        })
    };
    !wanted.is_empty() && wanted.iter().all(|(name, value)| holds(name, value))
}

/// Whether the token's own subject is meant.
fn is_subject(whom: &Whom, caller: &Caller) -> bool {
    match whom {
        Whom::Subject(issuer, subject) => caller.issuer == *issuer && caller.subject == *subject,
        Whom::Account(namespace, name) => caller.account == Some((namespace, name)),
        Whom::Claims(wanted) => claims(wanted, &caller.claims),
    }
}

/// Whether the outermost actor is meant. Claims are those of the token, which is about its subject.
fn is_actor(whom: &Whom, caller: &Caller) -> bool {
    let Some(actor) = &caller.actor else { return false };
    match whom {
        Whom::Subject(issuer, subject) => actor.issuer == *issuer && actor.subject == *subject,
        Whom::Account(namespace, name) => actor.account == Some((namespace, name)),
        Whom::Claims(_) => false,
    }
}

/// "With `delegator`, the token must carry `act`: its subject matches the delegator, its outermost actor the delegate. Without, the
/// token's own subject is the delegate and `act` is absent."
fn is_for(lent: &Lent, caller: &Caller) -> bool {
    match &lent.delegator {
        Some(delegator) => is_subject(delegator, caller) && is_actor(&lent.delegate, caller),
        None => caller.actor.is_none() && is_subject(&lent.delegate, caller),
    }
}

fn is_active(lent: &Lent, at: i64) -> bool {
    lent.inactive.is_none() && lent.from.is_none_or(|from| from <= at) && at < lent.until
}

/// What one delegation does not cover of an operation.
fn gaps(lent: &Lent, caller: &Caller, tool: &Tool) -> Vec<&'static str> {
    let covered = |link: &Vec<String>| link.iter().any(|glob| fits(glob.as_bytes(), tool.name.as_bytes()));
    let checks = [
        ("ScopeNotDelegated", lent.scopes.contains(&tool.scope)),
        ("EffectNotDelegated", lent.effects.contains(&tool.effect)),
        ("TenantNotDelegated", caller.tenant.is_some_and(|tenant| lent.tenants.contains(&tenant))),
        ("ToolNotDelegated", !lent.links.is_empty() && lent.links.iter().all(covered)),
    ];
    checks.into_iter().filter(|(_, holds)| !holds).map(|(code, _)| code).collect()
}

/// What the caller is in this world, whatever it asks for.
pub(crate) struct Standing<'a> {
    world: &'a World,
    caller: &'a Caller,
    /// Whether it acts under delegations.
    pub(crate) bound: bool,
    /// Those that are for it and active.
    pub(crate) active: Vec<&'a Lent>,
}

impl<'a> Standing<'a> {
    pub(crate) fn new(world: &'a World, caller: &'a Caller) -> Self {
        let named = world.grants.iter().any(|lent| is_subject(&lent.delegate, caller));
        let bound = caller.actor.is_some() || caller.scopes.is_none() || named;
        let active = world.grants.iter().filter(|lent| is_for(lent, caller) && is_active(lent, caller.at)).collect();
        Self { world, caller, bound, active }
    }

    /// What has to come out for one operation on one tool.
    pub(crate) fn expects(&self, name: &str, call: bool) -> Expected {
        let Some(tool) = self.world.tools.iter().find(|tool| tool.name == name) else {
            return Expected { codes: BTreeSet::from(["Unlisted"]), by: Vec::new(), asks: false, visible: false };
        };
        let list = self.decide(tool, false);
        match call && list.allowed() {
            true => self.decide(tool, true),
            false => list,
        }
    }

    fn decide(&self, tool: &Tool, call: bool) -> Expected {
        let mut codes = BTreeSet::new();
        let tenants = &self.world.tenants;
        if !tenants.contains(&"*") && !self.caller.tenant.is_some_and(|tenant| tenants.contains(&tenant)) {
            codes.insert("TenantNotAdmitted");
        }
        if self.bound && self.active.is_empty() {
            codes.insert("NoDelegation");
            return Expected { codes, by: Vec::new(), asks: false, visible: false };
        }
        let stated = self.caller.scopes.as_ref().map(|scopes| scopes.contains(&tool.scope));
        if stated == Some(false) {
            codes.insert("MissingScope");
        }
        let all: Vec<Vec<&str>> = self.active.iter().map(|lent| gaps(lent, self.caller, tool)).collect();
        let mut by = Vec::new();
        if self.bound {
            by =
                self.active.iter().zip(&all).filter(|(_, gaps)| gaps.is_empty()).map(|(l, _)| l.name.clone()).collect();
            codes.extend(all.into_iter().flatten().filter(|_| by.is_empty()));
        }
        let asks = self.modules(tool, call, &mut codes) || tool.asks;
        let allowed = codes.is_empty();
        by.retain(|_| allowed);
        Expected { by, asks: asks && allowed, visible: call || allowed, codes }
    }

    fn modules(&self, tool: &Tool, call: bool, codes: &mut BTreeSet<&'static str>) -> bool {
        let grants: Vec<&str> = self.active.iter().map(|lent| lent.name.as_str()).collect();
        let deed = Deed { caller: self.caller, tool, call, bound: self.bound, grants: &grants };
        let said: Vec<Adds> = self.world.rules.iter().map(|rule| rule.says(&deed)).collect();
        if said.contains(&Adds::Refusal) {
            codes.insert("PolicyDenied");
        }
        said.contains(&Adds::Approval)
    }
}
