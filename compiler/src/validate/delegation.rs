//! AgentDelegation.

use cotter_core::{
    grant::{Glob, Party},
    name::Namespace,
    principal::ServiceAccount,
};
use cotter_crds::{AgentDelegation, delegation as crd};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::access;
use crate::{
    delegation::{Bounds, Delegation},
    problem::{Kind, Problems},
};

/// Parses a delegation to servers.
///
/// `longest` is how long it may last, from `notBefore`, else from when it was made, else (in a folder) from `now`.
///
/// # Errors
/// Every problem, each with its field.
pub fn delegation(object: &AgentDelegation, longest: SignedDuration, now: Timestamp) -> Result<Delegation, Problems> {
    let mut problems = Problems::default();
    let (spec, meta) = (&object.spec, &object.metadata);
    let home = meta.namespace.as_deref().unwrap_or("default");
    let delegator = match &spec.delegator {
        Some(named) => party("spec.delegator", named, home, &mut problems).map(Some),
        None => Some(None),
    };
    let delegate = party("spec.delegate", &spec.delegate, home, &mut problems);
    let not_before = spec.not_before.as_ref().map(|time| time.0);
    let from = not_before.or_else(|| meta.creation_timestamp.as_ref().map(|time| time.0)).unwrap_or(now);
    period(from, not_before, spec.expires_at.0, longest, &mut problems);
    to(&spec.to, &mut problems);
    let budget = budget(spec, &mut problems);
    nothing_is_empty(spec, &mut problems);
    let tools: Vec<Glob> = problems.parse_all("spec.tools", &spec.tools);
    let max_depth = problems.take("spec.maxDepth", u32::try_from(spec.max_depth));
    let scopes = problems.parse_all("spec.scopes", &spec.scopes);
    let tenants = problems.parse_all("spec.tenants", &spec.tenants);
    if let Some(at) = spec.tenants.iter().position(|tenant| tenant == access::ANY) {
        problems.add(format!("spec.tenants[{at}]"), "\"*\" is no tenant: a delegation names each one");
    }
    let made = || {
        Some(Delegation {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone(),
            delegator: delegator?,
            delegate: delegate?,
            parent: spec.parent_ref.as_ref().map(|parent| parent.name.clone()),
            servers: spec.to.servers.iter().flatten().map(|server| server.name.clone()).collect(),
            scopes,
            effects: spec.effects.iter().copied().collect(),
            tenants,
            tools,
            not_before,
            expires_at: spec.expires_at.0,
            max_depth: max_depth?,
            budget,
            suspended: spec.suspended,
        })
    };
    let value = made();
    problems.finish(value)
}

fn nothing_is_empty(spec: &crd::AgentDelegationSpec, problems: &mut Problems) {
    for (field, empty) in [
        ("scopes", spec.scopes.is_empty()),
        ("effects", spec.effects.is_empty()),
        ("tenants", spec.tenants.is_empty()),
        ("tools", spec.tools.is_empty()),
    ] {
        if empty {
            problems.add(format!("spec.{field}"), "is empty: write at least one, there is no \"all\" by omission");
        }
    }
}

fn period(
    from: Timestamp,
    not_before: Option<Timestamp>,
    until: Timestamp,
    longest: SignedDuration,
    problems: &mut Problems,
) {
    if not_before.is_some_and(|start| start >= until) {
        problems.add("spec.expiresAt", "has to be later than notBefore");
    } else if until.duration_since(from) > longest {
        let days = longest.as_hours() / 24;
        problems.add_as(
            Kind::PeriodTooLong,
            "spec.expiresAt",
            format_args!("is more than {days} days after {from}: write an earlier time, and renew it when it ends"),
        );
    }
}

/// A bound of nothing is no bound: somebody who writes one means something else.
fn budget(spec: &crd::AgentDelegationSpec, problems: &mut Problems) -> Bounds {
    let Some(budget) = &spec.budget else { return Bounds::default() };
    if budget.calls.is_none() && budget.per_minute.is_none() {
        problems.add("spec.budget", "bounds nothing: write calls, perMinute or both, or leave it out");
    }
    let mut bound = |field: &str, stated: Option<i64>| {
        let bound = stated.and_then(|stated| u64::try_from(stated).ok()).filter(|bound| *bound > 0);
        if stated.is_some() && bound.is_none() {
            problems.add(
                format!("spec.budget.{field}"),
                "has to be at least 1: to revoke a delegation write suspended: true",
            );
        }
        bound
    };
    Bounds { calls: bound("calls", budget.calls), per_minute: bound("perMinute", budget.per_minute) }
}

fn to(spec: &crd::To, problems: &mut Problems) {
    match (&spec.servers, &spec.agent) {
        (Some(servers), None) if servers.is_empty() => {
            problems.add("spec.to.servers", "is empty: write at least one server, there is no \"all\" by omission");
        }
        (Some(_), None) => {}
        (None, Some(_)) => {
            problems.add_as(
                Kind::Unsupported,
                "spec.to.agent",
                "is not served by this version, and gives nothing: write servers",
            );
        }
        _ => problems.add("spec.to", "write exactly one of servers and agent"),
    }
}

fn party(path: &str, spec: &crd::Party, home: &str, problems: &mut Problems) -> Option<Party> {
    match (&spec.subject, &spec.claims, &spec.service_account) {
        (Some(one), None, None) => {
            let issuer = problems.parse(format!("{path}.subject.issuer"), &one.issuer);
            let subject = problems.parse(format!("{path}.subject.subject"), &one.subject);
            Some(Party::Subject { issuer: issuer?, subject: subject? })
        }
        (None, Some(claims), None) if claims.is_empty() => {
            problems.add(
                format!("{path}.claims"),
                "that name nothing would match everybody: write at least one claim and its value",
            );
            None
        }
        (None, Some(claims), None) => {
            Some(Party::Claims(claims.iter().map(|(name, value)| (name.clone(), Value::from(value.clone()))).collect()))
        }
        (None, None, Some(account)) => {
            let namespace = account.namespace.as_deref().unwrap_or(home);
            let namespace: Option<Namespace> = problems.parse(format!("{path}.serviceAccount.namespace"), namespace);
            Some(Party::ServiceAccount(ServiceAccount { namespace: namespace?, name: account.name.clone() }))
        }
        _ => {
            problems.add(path, "write exactly one of subject, claims and serviceAccount");
            None
        }
    }
}
