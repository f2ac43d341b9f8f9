//! The status of an AgentDelegation.

use std::collections::BTreeMap;

use cotter_core::{
    grant::{Glob, Inactive},
    report::Uses,
};
use cotter_crds::{
    AgentDelegation, AgentDelegationStatus,
    condition::{self as say, Outcome},
    delegation::{self as crd, DelegationSummary, Effective},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{budget, refused, settle};
use crate::{
    chain::{self, Broken, Chain},
    delegations::Delegations,
    plan::Evidence,
    world::{Charged, Ledger},
};

/// What the servers of a namespace last saw, by name. A server that is not here does not exist.
pub type Servers<'a> = BTreeMap<&'a str, &'a Evidence>;

/// The status of one delegation, whichever servers it names; the same function for one that names none that exists.
#[must_use]
pub fn delegation_status(
    object: &AgentDelegation,
    all: &Delegations,
    servers: &Servers<'_>,
    charged: &Ledger,
    now: Timestamp,
) -> AgentDelegationStatus {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let generation = object.metadata.generation.unwrap_or_default();
    let old = object.status.as_ref();
    let chain = all.chain(name);
    let accepted = accepted(all, name, chain.as_ref());
    let resolved = resolved(object, chain.as_ref(), servers);
    let active =
        chain.as_ref().map_or_else(|| say::not_accepted("it was not accepted"), |chain| active(chain, charged, now));
    let enforced = enforced(object, servers, accepted.is_true());
    let ready = say::ready_from(&[&accepted, &resolved, &active, &enforced]);
    let previous = old.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let outcomes = [accepted, resolved, active, enforced, ready];
    let mut status = AgentDelegationStatus {
        observed_generation: Some(generation),
        conditions: say::merge(previous, &outcomes, generation, &Time(now)),
        effective: chain.as_ref().map(effective),
        budget: budget::used(&object.spec, charged.get(name)),
        uses: uses(name, object, servers, charged.get(name)),
        summary: Some(summary(object)),
    };
    settle::settle(&mut status, old, last_use, |new, old| new.uses.clone_from(&old.uses));
    status
}

fn accepted(all: &Delegations, name: &str, chain: Option<&Chain<'_>>) -> Outcome {
    let Some(chain) = chain else {
        return all.problems(name).map_or_else(|| say::invalid("it cannot be read"), refused);
    };
    let wider = chain.wider();
    if wider.is_empty() {
        return say::accepted("");
    }
    say::wider_than_parent(format!(
        "It asks for more than its parents have in {}; status.effective is what both permit.",
        wider.join(", ")
    ))
}

fn resolved(object: &AgentDelegation, chain: Option<&Chain<'_>>, servers: &Servers<'_>) -> Outcome {
    if let Some(Broken::Missing(parent)) = chain.and_then(Chain::broken) {
        return say::parent_not_found(format!(
            "there is no AgentDelegation {parent} in this namespace, so that nothing is permitted: create it, or correct the parentRef that names it"
        ));
    }
    let named = object.spec.to.servers.iter().flatten().map(|server| server.name.as_str());
    let missing: Vec<&str> = named.filter(|name| !servers.contains_key(name)).collect();
    match missing.is_empty() {
        true => say::resolved_refs(""),
        false => say::server_not_found(format!("there is no McpServer {} in this namespace", missing.join(", "))),
    }
}

/// `Active`: its own reasons first, then those of its parents.
fn active(chain: &Chain<'_>, charged: &Ledger, now: Timestamp) -> Outcome {
    let (own, left) = (chain.own(), chain.effective());
    match chain.inactive() {
        Some(Inactive::Suspended) => return say::suspended("spec.suspended is true"),
        Some(Inactive::ParentInactive) => return say::parent_inactive(above(chain)),
        Some(Inactive::DepthExceeded) => {
            let parent = chain.too_deep_for().map(|parent| parent.name.as_str()).unwrap_or_default();
            return say::depth_exceeded(format!(
                "{parent} does not permit so many delegations below it (spec.maxDepth)"
            ));
        }
        None => {}
    }
    if now >= own.expires_at {
        say::expired(format!("its time ended at {}", own.expires_at))
    } else if own.not_before.is_some_and(|from| now < from) {
        say::not_yet_valid(own.not_before.map(|from| format!("its time begins at {from}")).unwrap_or_default())
    } else if let Some(calls) = budget::exhausted(own, charged) {
        say::budget_exhausted(format!(
            "the {calls} calls of its budget are used up: raise spec.budget.calls, or make another delegation"
        ))
    } else if now >= left.expires_at {
        say::parent_inactive(format!("the time of a parent ended at {}", left.expires_at))
    } else if left.not_before.is_some_and(|from| now < from) {
        say::parent_inactive("the time of a parent has not come")
    } else if let Some((parent, calls)) = budget::exhausted_above(chain, charged) {
        say::parent_inactive(format!("the {calls} calls of the budget of {parent} are used up"))
    } else {
        say::active("")
    }
}

fn above(chain: &Chain<'_>) -> String {
    match chain.broken() {
        Some(Broken::Missing(name)) => format!("there is no AgentDelegation {name}"),
        Some(Broken::NotAccepted(name)) => format!("{name} was not accepted"),
        Some(Broken::Cycle(name)) => format!("the parents go in a circle through {name}: one of them has to be a root"),
        Some(Broken::TooLong) => "the parents are more than any maxDepth permits".to_owned(),
        None => {
            let suspended = chain.above().iter().find(|parent| parent.suspended);
            suspended.map(|parent| format!("{} is suspended", parent.name)).unwrap_or_default()
        }
    }
}

fn enforced(object: &AgentDelegation, servers: &Servers<'_>, accepted: bool) -> Outcome {
    let named = object.spec.to.servers.iter().flatten();
    let concerned: Vec<(&str, &Evidence)> = named
        .filter_map(|server| servers.get_key_value(server.name.as_str()))
        .map(|(name, seen)| (*name, *seen))
        .collect();
    if !accepted {
        return say::enforcing("what was not accepted is not enforced");
    }
    let live: u32 = concerned.iter().map(|(_, seen)| seen.live).fold(0, u32::saturating_add);
    if live == 0 {
        return say::not_enforced("no sidecar of its servers is connected");
    }
    // A server without a live sidecar serves nobody, so that nothing waits for it.
    let behind: Vec<&str> =
        concerned.iter().filter(|(_, seen)| seen.live > 0 && !seen.is_enforced()).map(|(name, _)| *name).collect();
    match behind.is_empty() {
        true => say::enforced(""),
        false => say::enforcing(format!("not yet by every sidecar of {}", behind.join(", "))),
    }
}

fn effective(chain: &Chain<'_>) -> Effective {
    let left = chain.effective();
    Effective {
        scopes: left.scopes.iter().map(ToString::to_string).collect(),
        effects: left.effects.iter().copied().collect(),
        tools: tools(&left.tools),
        tenants: left.tenants.iter().map(ToString::to_string).collect(),
        servers: left.servers.iter().cloned().collect(),
        expires_at: Some(Time(left.expires_at)),
        budget: budget::bounds(left.budget),
        depth: super::small(left.depth),
    }
}

/// A status lists this many patterns.
const MAX_PATTERNS: usize = 256;

/// The patterns in one list. Where a parent's pattern and one below it overlap and neither holds the other, both are
/// written with `&` between: a name has to fit both.
fn tools(links: &[Vec<Glob>]) -> Vec<String> {
    let mut links = links.iter();
    let start: Vec<Vec<&Glob>> = links.next().into_iter().flatten().map(|pattern| vec![pattern]).collect();
    let narrowed = links.fold(start, |so_far, link| {
        let pairs = so_far.iter().flat_map(|patterns| link.iter().filter_map(move |pattern| both(patterns, pattern)));
        let mut all: Vec<Vec<&Glob>> = pairs.take(MAX_PATTERNS).collect();
        all.sort();
        all.dedup();
        all
    });
    let mut texts: Vec<String> =
        narrowed.iter().map(|patterns| patterns.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(" & ")).collect();
    texts.sort();
    texts.dedup();
    texts.truncate(MAX_PATTERNS);
    texts
}

/// The patterns that a name has to fit which fits all of these; `None` where no name can.
fn both<'g>(patterns: &[&'g Glob], other: &'g Glob) -> Option<Vec<&'g Glob>> {
    if !patterns.iter().all(|pattern| chain::overlap(pattern, other)) {
        return None;
    }
    if patterns.iter().any(|pattern| chain::within(pattern, other)) {
        return Some(patterns.to_vec());
    }
    let mut kept: Vec<&Glob> = patterns.iter().copied().filter(|pattern| !chain::within(other, pattern)).collect();
    kept.push(other);
    kept.sort();
    Some(kept)
}

fn uses(name: &str, object: &AgentDelegation, servers: &Servers<'_>, charged: Option<&Charged>) -> Option<crd::Uses> {
    let named = object.spec.to.servers.iter().flatten().filter_map(|server| servers.get(server.name.as_str()));
    let mut sum: Option<Uses> = None;
    for one in named.filter_map(|seen| seen.uses.get(name)) {
        sum.get_or_insert_with(Uses::default).add(one);
    }
    let sum = charged.and_then(|charged| charged.uses.clone()).or(sum)?;
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    Some(crd::Uses {
        allowed: number(sum.allowed),
        denied: number(sum.denied),
        last_used: sum.last_used.map(Time),
        last_denial: sum.last_denial.map(Time),
    })
}

fn last_use(status: &AgentDelegationStatus) -> Option<Timestamp> {
    let uses = status.uses.as_ref()?;
    [&uses.last_used, &uses.last_denial].into_iter().flatten().map(|time| time.0).max()
}

fn summary(object: &AgentDelegation) -> DelegationSummary {
    let spec = &object.spec;
    let servers: Vec<&str> = spec.to.servers.iter().flatten().map(|server| server.name.as_str()).collect();
    let to = spec.to.agent.as_ref().map_or_else(|| servers.join(","), |agent| agent.url.clone());
    DelegationSummary { delegate: party(&spec.delegate), to, scopes: spec.scopes.join(",") }
}

/// A party in a word.
fn party(party: &crd::Party) -> String {
    if let Some(account) = &party.service_account {
        let namespace = account.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("serviceaccount:{namespace}{}", account.name)
    } else if let Some(one) = &party.subject {
        one.subject.clone()
    } else {
        let claims = party.claims.iter().flatten().map(|(name, value)| format!("{name}={value}"));
        claims.collect::<Vec<_>>().join(",")
    }
}
