//! All delegations of a namespace, parsed once.

use std::collections::BTreeMap;

use cotter_core::grant::Grant;
use cotter_crds::AgentDelegation;
use jiff::{SignedDuration, Timestamp};

use crate::{
    chain::{Chain, Known},
    delegation::Delegation,
    problem::Problems,
    validate,
};

/// The delegations of a namespace, by name, each parsed or refused.
#[derive(Debug, Clone, Default)]
pub struct Delegations(BTreeMap<String, Result<Delegation, Problems>>);

impl Delegations {
    /// Parses all of them; one that is refused never stops another.
    #[must_use]
    pub fn read<'a>(
        objects: impl IntoIterator<Item = &'a AgentDelegation>,
        longest: SignedDuration,
        now: Timestamp,
    ) -> Self {
        let parsed = objects.into_iter().map(|object| {
            let name = object.metadata.name.clone().unwrap_or_default();
            (name, validate::delegation(object, longest, now))
        });
        Self(parsed.collect())
    }

    /// The chain of an accepted delegation.
    #[must_use]
    pub(crate) fn chain(&self, name: &str) -> Option<Chain<'_>> {
        let own = self.0.get(name)?.as_ref().ok()?;
        Some(Chain::follow(own, &self.known()))
    }

    /// Why a delegation was refused.
    #[must_use]
    pub fn problems(&self, name: &str) -> Option<&Problems> {
        self.0.get(name)?.as_ref().err()
    }

    /// The grants that the sidecars of a server enforce: every accepted delegation that names it, active or not.
    #[must_use]
    pub fn grants(&self, server: &str) -> Vec<Grant> {
        self.chains(server).map(|chain| chain.grant(server)).collect()
    }

    /// When a delegation to this server begins or ends next.
    #[must_use]
    pub fn next_change(&self, server: &str, now: Timestamp) -> Option<Timestamp> {
        let times = self.chains(server).flat_map(|chain| {
            let (own, left) = (chain.own(), chain.effective());
            [Some(own.expires_at), own.not_before, Some(left.expires_at), left.not_before]
        });
        times.flatten().filter(|time| *time > now).min()
    }

    fn chains(&self, server: &str) -> impl Iterator<Item = Chain<'_>> {
        let known = self.known();
        let accepted = self.0.values().filter_map(|parsed| parsed.as_ref().ok());
        accepted.filter(move |own| own.servers.contains(server)).map(move |own| Chain::follow(own, &known))
    }

    fn known(&self) -> Known<'_> {
        self.0.iter().map(|(name, parsed)| (name.as_str(), parsed.as_ref().ok())).collect()
    }
}
