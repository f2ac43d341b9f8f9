//! Who a principal is to the policy: its own scopes and tenant and the delegations that are active for it. Made once for a token.

use std::collections::BTreeMap;

use cotter_core::{principal::Principal, snapshot::Digest};
use jiff::Timestamp;
use regorus::Value;

use crate::{document::PrincipalDocument, facts::Facts, policy::PolicyError, value::from_document};

/// A principal's authority on one server under one policy, for as long as nothing about it can change.
///
/// It ends with the token, and with the next moment at which one of the principal's delegations begins or ends.
#[derive(Debug, Clone)]
pub struct Authority {
    /// The policy that made it.
    pub(crate) policy: u64,
    /// Names everything that a decision can take from it: equal keys of one policy are equal inputs.
    pub(crate) key: u128,
    pub(crate) principal: Value,
    pub(crate) grants: Value,
    from: Timestamp,
    until: Timestamp,
}

impl Authority {
    /// Makes the authority of a principal at a time.
    pub(crate) fn new(policy: u64, facts: &Facts, principal: &Principal, now: Timestamp) -> Result<Self, PolicyError> {
        let mut delegated = principal.needs_delegation();
        let (mut from, mut until) = (Timestamp::MIN, principal.expires_at);
        let mut grants = BTreeMap::new();
        let mut names = Vec::new();
        for fact in facts.naming(principal) {
            delegated = true;
            if !fact.grant.matches(principal) || fact.grant.inactive.is_some() {
                continue;
            }
            for boundary in fact.grant.not_before.into_iter().chain([fact.grant.expires_at]) {
                if boundary <= now {
                    from = from.max(boundary);
                } else {
                    until = until.min(boundary);
                }
            }
            if fact.grant.is_active(now) {
                names.push(fact.name.as_ref());
                grants.insert(Value::from(fact.name.as_ref()), facts.grant_document(fact)?);
            }
        }
        let document = PrincipalDocument::new(principal, delegated);
        let key = key(&document, &names)?;
        let principal = from_document(&document).map_err(PolicyError::Facts)?;
        Ok(Self { policy, key, principal, grants: Value::from(grants), from, until })
    }

    /// Whether it still says the truth at this time. The moment before the last change counts as another time, so a clock that goes
    /// back does not bring back what has ended.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }
}

/// Half of the SHA-256 over what goes into the input; delegations by name, since a name stands for one content within a policy.
fn key(document: &PrincipalDocument, grants: &[&str]) -> Result<u128, PolicyError> {
    let digest = Digest::of(&serde_json::to_vec(&(document, grants)).map_err(PolicyError::Facts)?);
    Ok(digest.as_bytes().iter().take(16).fold(0, |key, byte| (key << 8) | u128::from(*byte)))
}
