//! How often each delegation was used, for its status.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use cotter_core::report::Uses;
use jiff::Timestamp;

/// Counts by the delegation's name, since the sidecar started. Bounded by the delegations that snapshots named.
#[derive(Debug, Default)]
pub struct UseCounts(Mutex<BTreeMap<Arc<str>, Uses>>);

impl UseCounts {
    /// A call that the delegation permitted.
    pub fn allowed(&self, delegation: &Arc<str>, now: Timestamp) {
        self.change(delegation, |uses| {
            uses.allowed += 1;
            uses.last_used = Some(now);
        });
    }

    /// A call under the delegation that was refused.
    pub fn denied(&self, delegation: &Arc<str>, now: Timestamp) {
        self.change(delegation, |uses| {
            uses.denied += 1;
            uses.last_denial = Some(now);
        });
    }

    /// All counts.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, Uses> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, uses)| (name.to_string(), uses.clone())).collect()
    }

    fn change(&self, delegation: &Arc<str>, change: impl FnOnce(&mut Uses)) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(counts.entry(Arc::clone(delegation)).or_default());
    }
}
