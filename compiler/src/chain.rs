//! Attenuation: what a delegation gives after every parent above it. Each link can only take away.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    budget::Budget,
    effect::Effect,
    grant::{Glob, Grant, Inactive},
    name::{Scope, Tenant},
};
use jiff::Timestamp;

use crate::delegation::{Bounds, Delegation};

/// The accepted delegations of a namespace, by name; a name with `None` exists and was not accepted.
pub(crate) type Known<'a> = BTreeMap<&'a str, Option<&'a Delegation>>;

/// The longest chain that is followed: one more than the largest `maxDepth` lets stand below a root.
const LONGEST: usize = 9;

/// Why a chain does not reach a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// There is no delegation of this name.
    Missing(String),
    /// It exists and was not accepted.
    NotAccepted(String),
    /// It stands above itself.
    Cycle(String),
    /// More links than any `maxDepth` allows.
    TooLong,
}

/// A delegation with its parents, nearest first.
#[derive(Debug, Clone)]
pub(crate) struct Chain<'a> {
    own: &'a Delegation,
    above: Vec<&'a Delegation>,
    broken: Option<Broken>,
}

/// What is left of a delegation after its chain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effective {
    /// Scopes that every link has.
    pub(crate) scopes: BTreeSet<Scope>,
    /// Effects that every link has.
    pub(crate) effects: BTreeSet<Effect>,
    /// Tenants that every link has.
    pub(crate) tenants: BTreeSet<Tenant>,
    /// One list of patterns for each link; a tool has to fit all.
    pub(crate) tools: Vec<Vec<Glob>>,
    /// Servers that every link names.
    pub(crate) servers: BTreeSet<String>,
    /// The latest start.
    pub(crate) not_before: Option<Timestamp>,
    /// The earliest end.
    pub(crate) expires_at: Timestamp,
    /// The smallest budget. Calls under siblings use up that of their parent, too, so that less may be left.
    pub(crate) budget: Bounds,
    /// How many parents stand above.
    pub(crate) depth: usize,
}

impl<'a> Chain<'a> {
    /// Follows the parents of a delegation.
    #[must_use]
    pub(crate) fn follow(own: &'a Delegation, known: &Known<'a>) -> Self {
        let mut chain = Self { own, above: Vec::new(), broken: None };
        let mut seen = BTreeSet::from([own.name.as_str()]);
        let mut next = own.parent.as_deref();
        while let Some(name) = next {
            if !seen.insert(name) {
                chain.broken = Some(Broken::Cycle(name.to_owned()));
            } else if chain.above.len() >= LONGEST {
                chain.broken = Some(Broken::TooLong);
            } else {
                match known.get(name) {
                    Some(Some(parent)) => {
                        chain.above.push(parent);
                        next = parent.parent.as_deref();
                        continue;
                    }
                    Some(None) => chain.broken = Some(Broken::NotAccepted(name.to_owned())),
                    None => chain.broken = Some(Broken::Missing(name.to_owned())),
                }
            }
            break;
        }
        chain
    }

    /// The delegation itself.
    #[must_use]
    pub(crate) const fn own(&self) -> &'a Delegation {
        self.own
    }

    /// Its parents, nearest first.
    #[must_use]
    pub(crate) fn above(&self) -> &[&'a Delegation] {
        &self.above
    }

    /// The delegation and its parents, nearest first.
    pub(crate) fn links(&self) -> impl Iterator<Item = &'a Delegation> {
        [self.own].into_iter().chain(self.above.iter().copied())
    }

    /// Why it does not reach a root.
    #[must_use]
    pub(crate) const fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// The first parent, counted from below, that does not allow so many delegations below it.
    #[must_use]
    pub(crate) fn too_deep_for(&self) -> Option<&'a Delegation> {
        let mut below = self.above.iter().zip(1_u32..);
        below.find(|(parent, distance)| parent.max_depth < *distance).map(|(parent, _)| *parent)
    }

    /// Why it gives nothing, whatever the time.
    #[must_use]
    pub(crate) fn inactive(&self) -> Option<Inactive> {
        if self.own.suspended {
            Some(Inactive::Suspended)
        } else if self.broken.is_some() || self.above.iter().any(|parent| parent.suspended) {
            Some(Inactive::ParentInactive)
        } else {
            self.too_deep_for().map(|_| Inactive::DepthExceeded)
        }
    }

    /// What is left after every link that was found.
    #[must_use]
    pub(crate) fn effective(&self) -> Effective {
        let own = self.own;
        let start = Effective {
            scopes: own.scopes.clone(),
            effects: own.effects.clone(),
            tenants: own.tenants.clone(),
            tools: vec![own.tools.clone()],
            servers: own.servers.clone(),
            not_before: own.not_before,
            expires_at: own.expires_at,
            budget: own.budget,
            depth: self.above.len(),
        };
        self.above.iter().fold(start, |narrowed, parent| narrowed.within(parent))
    }

    /// What the delegation asks for and its chain does not give: names of fields, in the order of the resource.
    #[must_use]
    pub(crate) fn wider(&self) -> Vec<&'static str> {
        if self.above.is_empty() {
            return Vec::new();
        }
        let (own, left) = (self.own, self.effective());
        let fields = [
            ("to.servers", own.servers != left.servers),
            ("scopes", own.scopes != left.scopes),
            ("effects", own.effects != left.effects),
            ("tenants", own.tenants != left.tenants),
            ("tools", !self.above.iter().all(|parent| contained(&own.tools, &parent.tools))),
            ("expiresAt", own.expires_at != left.expires_at),
            ("budget", asks_for_more(own.budget, left.budget)),
            ("notBefore", own.not_before != left.not_before && own.not_before.is_some()),
        ];
        fields.into_iter().filter(|(_, wider)| *wider).map(|(name, _)| name).collect()
    }

    /// The grant that the sidecars of this server enforce. A server that a parent does not name is out of reach: the
    /// grant is then inactive there, and its delegates still act under delegations only.
    #[must_use]
    pub(crate) fn grant(&self, server: &str) -> Grant {
        let left = self.effective();
        let out_of_reach = (!left.servers.contains(server)).then_some(Inactive::ParentInactive);
        Grant {
            name: self.own.name.clone(),
            delegator: self.own.delegator.clone(),
            delegate: self.own.delegate.clone(),
            scopes: left.scopes,
            effects: left.effects,
            tools: left.tools,
            tenants: left.tenants,
            not_before: left.not_before,
            expires_at: left.expires_at,
            inactive: self.inactive().or(out_of_reach),
            ancestors: self.above.iter().map(|parent| parent.name.clone()).collect(),
            budgets: self.links().filter_map(budget).collect(),
        }
    }
}

impl Effective {
    fn within(mut self, parent: &Delegation) -> Self {
        self.scopes.retain(|scope| parent.scopes.contains(scope));
        self.effects.retain(|effect| parent.effects.contains(effect));
        self.servers.retain(|server| parent.servers.contains(server));
        self.tenants.retain(|tenant| parent.tenants.contains(tenant));
        self.tools.push(parent.tools.clone());
        self.not_before = self.not_before.max(parent.not_before);
        self.expires_at = self.expires_at.min(parent.expires_at);
        self.budget = self.budget.within(parent.budget);
        self
    }
}

/// Whether a budget states more than is left. One that states nothing asks for nothing.
fn asks_for_more(own: Bounds, left: Bounds) -> bool {
    let more = |own: Option<u64>, left: Option<u64>| own.is_some() && own != left;
    more(own.calls, left.calls) || more(own.per_minute, left.per_minute)
}

/// The budget of one link, where it has one.
fn budget(link: &Delegation) -> Option<Budget> {
    let Bounds { calls, per_minute } = link.budget;
    (!link.budget.are_none()).then(|| Budget { name: link.name.clone(), uid: link.uid.clone(), calls, per_minute })
}

/// Whether everything that fits a pattern of `inner` fits one of `outer`.
fn contained(inner: &[Glob], outer: &[Glob]) -> bool {
    inner.iter().all(|pattern| outer.iter().any(|other| within(pattern, other)))
}

/// Whether everything that fits `inner` fits `outer`.
///
/// Exact, for patterns whose only metacharacter is `*`: put a letter that no pattern can have in place of every `*` of
/// `inner`. Only a `*` of `outer` can take that letter; where one does, it takes every run as well. For the same reason
/// several patterns hold one together only where one of them holds it alone.
pub(crate) fn within(inner: &Glob, outer: &Glob) -> bool {
    outer.matches(&inner.as_str().replace('*', "\u{1}"))
}

/// Whether some name fits both patterns. Walks both at once, from the back: `fits[j]` says whether the rest of the one
/// pattern and the rest of the other from `j` on have a name in common.
pub(crate) fn overlap(one: &Glob, other: &Glob) -> bool {
    let (one, other) = (one.as_str().as_bytes(), other.as_str().as_bytes());
    let mut below: Vec<bool> = Vec::new();
    for byte in [None].into_iter().chain(one.iter().rev().map(Some)) {
        let mut fits = vec![false; other.len() + 1];
        for j in (0..=other.len()).rev() {
            let get = |row: &[bool], j: usize| row.get(j).copied().unwrap_or(false);
            let fit = match (byte, other.get(j)) {
                (None, None) => true,
                (Some(b'*'), _) if get(&below, j) || get(&fits, j + 1) => true,
                (_, Some(b'*')) => get(&fits, j + 1) || get(&below, j),
                (Some(a), Some(b)) => a == b && get(&below, j + 1),
                _ => false,
            };
            if let Some(slot) = fits.get_mut(j) {
                *slot = fit;
            }
        }
        below = fits;
    }
    below.first().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests;
