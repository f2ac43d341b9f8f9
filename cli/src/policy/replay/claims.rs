//! Whether claims that no record has could change an outcome.

use cotter_core::{
    audit::Record,
    grant::{Grant, Party},
    principal::Principal,
    reason::DenyReason,
    snapshot::Snapshot,
};
use cotter_policies::Verdict;

/// Whether this verdict, made as though the token had no claims, is the one of every token that the record can be of.
///
/// A delegation by claims can name a principal, who then acts under delegations only, and it can permit. Neither matters to who acts
/// under delegations anyway and is permitted by one that the record shows to be its own; rules of modules may read every delegation, so
/// that with modules nothing is certain.
pub(super) fn is_certain(snapshot: &Snapshot, record: &Record, principal: &Principal, verdict: &Verdict) -> bool {
    let delegated = principal.needs_delegation() || snapshot.grants.iter().any(|grant| names(grant, principal));
    let concerned = |grant: &&Grant| may_permit(grant, principal, record) || (!delegated && may_name(grant, principal));
    if !snapshot.grants.iter().any(|grant| concerned(&grant)) {
        return true;
    }
    if verdict.decision.first_reason() == Some(DenyReason::Unlisted) {
        return delegated;
    }
    let own = record.delegation.as_ref().is_none_or(|name| verdict.delegations.iter().any(|own| **own == **name));
    delegated && verdict.is_allowed() && own && snapshot.policies.is_empty()
}

/// Whether the record is enough to tell that a delegation names the principal.
fn names(grant: &Grant, principal: &Principal) -> bool {
    grant.delegate.is_subject_of(principal) || grant.delegate.is_actor_of(principal)
}

/// Whether the principal may be the delegate, by claims.
fn may_name(grant: &Grant, principal: &Principal) -> bool {
    may_be(&grant.delegate, principal)
}

/// Whether the delegation may permit something to the principal, by claims. Claims are of a token's subject and never of its actor.
fn may_permit(grant: &Grant, principal: &Principal, record: &Record) -> bool {
    let named = match &grant.delegator {
        Some(delegator) => may_be(delegator, principal) && grant.delegate.is_actor_of(principal),
        None => principal.actor.is_none() && may_be(&grant.delegate, principal),
    };
    named && grant.is_active(record.time)
}

/// Whether a token of the principal may have these claims: not where it is known to say something else of issuer or subject.
fn may_be(party: &Party, principal: &Principal) -> bool {
    let Party::Claims(claims) = party else { return false };
    let fits = |name: &str, known: &str| claims.get(name).is_none_or(|wanted| wanted.as_str() == Some(known));
    fits("sub", principal.subject.as_str()) && fits("iss", principal.issuer.as_str())
}
