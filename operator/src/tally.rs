//! How often the delegations of one namespace were used, over all sidecars that ever were. Pure: time is passed in.
//!
//! A sidecar reports what it counted since it started. What ended sidecars counted stays, and a restart of the operator begins with what
//! status says: sidecars that come back within the warm-up are in there already. Calls while the operator was away are lost where a
//! sidecar ended meanwhile; budgets are counted more exactly, in [`Ledger`](crate::ledger::Ledger).

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use cotter_core::report::Uses;

/// A sidecar that was silent for so long has ended.
const ENDED: Duration = Duration::from_secs(3600);

/// Uses by delegation.
type ByName = BTreeMap<String, Uses>;

/// The counts of one namespace.
#[derive(Debug, Default)]
pub struct Tally {
    /// Of sidecars that are not in `sidecars`.
    base: ByName,
    sidecars: HashMap<(String, String), Sidecar>,
}

#[derive(Debug)]
struct Sidecar {
    uses: ByName,
    heard: Duration,
}

impl Tally {
    /// Begins with what status says of a delegation.
    pub fn remember(&mut self, name: &str, uses: Uses) {
        self.base.insert(name.to_owned(), uses);
    }

    /// Takes what a sidecar of a server counted since it started. One that `returns` was counted before the operator started.
    pub fn take(&mut self, server: &str, pod: &str, uses: &ByName, returns: bool, now: Duration) {
        let id = (server.to_owned(), pod.to_owned());
        let before = self.sidecars.insert(id, Sidecar { uses: uses.clone(), heard: now });
        match before {
            Some(before) => {
                let restarted = |name: &str, old: &Uses| {
                    uses.get(name).is_none_or(|new| new.allowed < old.allowed || new.denied < old.denied)
                };
                if before.uses.iter().any(|(name, old)| restarted(name, old)) {
                    add_all(&mut self.base, before.uses);
                }
            }
            None if returns => {
                for (name, returned) in uses {
                    if let Some(base) = self.base.get_mut(name) {
                        base.allowed = base.allowed.saturating_sub(returned.allowed);
                        base.denied = base.denied.saturating_sub(returned.denied);
                    }
                }
            }
            None => {}
        }
    }

    /// All uses of a delegation; nothing where none is known.
    #[must_use]
    pub fn total(&self, name: &str) -> Option<Uses> {
        let known = self.sidecars.values().filter_map(|sidecar| sidecar.uses.get(name)).chain(self.base.get(name));
        known.cloned().reduce(|mut sum, one| {
            sum.add(&one);
            sum
        })
    }

    /// Folds sidecars that ended, and forgets delegations that do not exist.
    pub fn sweep(&mut self, exists: impl Fn(&str) -> bool, now: Duration) {
        let ended = |_: &(String, String), sidecar: &mut Sidecar| now.saturating_sub(sidecar.heard) > ENDED;
        let ended: Vec<Sidecar> = self.sidecars.extract_if(ended).map(|(_, sidecar)| sidecar).collect();
        ended.into_iter().for_each(|sidecar| add_all(&mut self.base, sidecar.uses));
        self.base.retain(|name, _| exists(name));
    }

    /// Whether nothing is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.base.is_empty() && self.sidecars.is_empty()
    }
}

fn add_all(base: &mut ByName, uses: ByName) {
    for (name, one) in uses {
        base.entry(name).or_default().add(&one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(allowed: u64) -> ByName {
        BTreeMap::from([("d".to_owned(), Uses { allowed, ..Uses::default() })])
    }

    fn allowed(tally: &Tally) -> Option<u64> {
        tally.total("d").map(|uses| uses.allowed)
    }

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn what_ended_sidecars_counted_stays() {
        let mut tally = Tally::default();
        assert_eq!(allowed(&tally), None);
        tally.take("s", "p1", &uses(5), false, NOW);
        tally.take("s", "p1", &uses(7), false, NOW);
        tally.take("t", "p2", &uses(1), false, NOW);
        assert_eq!(allowed(&tally), Some(8));
        tally.take("s", "p1", &BTreeMap::new(), false, NOW);
        tally.take("s", "p1", &uses(2), false, NOW);
        assert_eq!(allowed(&tally), Some(10), "started again");
        tally.sweep(|_| true, NOW + ENDED * 2);
        assert_eq!((allowed(&tally), tally.sidecars.len()), (Some(10), 0));
        tally.sweep(|_| false, NOW);
        assert_eq!(allowed(&tally), None, "the delegation is gone");
    }

    #[test]
    fn an_operator_that_starts_anew_counts_nobody_twice() {
        let mut tally = Tally::default();
        tally.remember("d", Uses { allowed: 10, ..Uses::default() });
        tally.take("s", "p1", &uses(6), true, NOW);
        assert_eq!(allowed(&tally), Some(10));
        tally.take("s", "p1", &uses(8), true, NOW);
        tally.take("s", "p2", &uses(1), false, NOW);
        assert_eq!(allowed(&tally), Some(13));
    }
}
