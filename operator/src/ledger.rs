//! What was charged to the budgets of one namespace, by all sidecars of all its servers. Pure: time is passed in, since any fixed moment.
//!
//! A sidecar tells what its run charged since it began. A run that ended stays counted with what it told last; once it cannot come back
//! it is folded into the base. What is persisted names the runs with their counts, so that an operator that starts anew counts a run that
//! goes on neither twice nor not at all.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use cotter_compiler::Charged;
use cotter_core::budget::{Charges, MINUTE, Share, Window};

/// A run that was not connected for so long is taken for ended: a sidecar that the network kept away is back by then. One that comes
/// back later is counted twice, to the strict side.
const ENDED: Duration = Duration::from_secs(3600);

/// A run whose pod began another one has ended. Its calls of the last minute still count.
const SUPERSEDED: Duration = Duration::from_secs(MINUTE.as_secs() + 1);

/// The budgets of one namespace and the runs that charge to them.
#[derive(Debug, Default)]
pub struct Ledger {
    budgets: HashMap<String, Account>,
    runs: HashMap<String, Run>,
}

#[derive(Debug, Default)]
struct Account {
    /// Calls of runs that ended.
    base: u64,
    runs: HashMap<String, Count>,
}

#[derive(Debug, Default, Clone)]
struct Count {
    calls: u64,
    window: Window,
}

/// Whose run it is: server and pod. Not known of one that was only read from a status.
type Owner = (String, String);

#[derive(Debug)]
struct Run {
    owner: Option<Owner>,
    streams: u32,
    gone: Duration,
    superseded: bool,
    /// Calls that it had made when it told the most.
    made: u64,
}

/// A budget whose count moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its key.
    pub key: String,
    /// Calls before.
    pub before: u64,
    /// Calls now.
    pub after: u64,
}

impl Ledger {
    /// Begins to count a budget, from what is known of it. One that is counted already goes on.
    pub fn know(&mut self, key: &str, persisted: &Charged, now: Duration) {
        if self.budgets.contains_key(key) {
            return;
        }
        let of_runs = persisted.runs.values().fold(0, |sum: u64, calls| sum.saturating_add(*calls));
        let mut account = Account { base: persisted.calls.saturating_sub(of_runs), ..Account::default() };
        for (run, calls) in &persisted.runs {
            account.runs.insert(run.clone(), Count { calls: *calls, window: Window::default() });
            self.runs.entry(run.clone()).or_insert(Run::unheard(now));
        }
        self.budgets.insert(key.to_owned(), account);
    }

    /// A run's stream opened. Says whether the run is this pod's: another pod's cannot be taken over.
    pub fn connect(&mut self, server: &str, pod: &str, run: &str, now: Duration) -> bool {
        let owner = (server.to_owned(), pod.to_owned());
        if self.runs.get(run).and_then(|run| run.owner.as_ref()).is_some_and(|known| *known != owner) {
            return false;
        }
        let same_pod = |id: &str, other: &Run| id != run && !other.superseded && other.owner.as_ref() == Some(&owner);
        for (_, other) in self.runs.iter_mut().filter(|(id, other)| same_pod(id, other)) {
            (other.superseded, other.gone) = (true, now);
        }
        let known = self.runs.entry(run.to_owned()).or_insert(Run::unheard(now));
        (known.owner, known.superseded) = (Some(owner), false);
        known.streams += 1;
        true
    }

    /// A run's stream ended.
    pub fn disconnect(&mut self, run: &str, now: Duration) {
        if let Some(run) = self.runs.get_mut(run) {
            run.streams = run.streams.saturating_sub(1);
            run.gone = now;
        }
    }

    /// Takes what a run charged since it began. Nothing where no stream of this run of this pod is open.
    pub fn charge(&mut self, server: &str, pod: &str, charges: &Charges, now: Duration) -> Option<Vec<Moved>> {
        let run = self.runs.get_mut(&charges.run).filter(|run| run.is_live())?;
        run.owner.as_ref().filter(|(s, p)| s == server && p == pod)?;
        let mut moved = Vec::new();
        if charges.made < run.made {
            // Given up by its sidecar, which told more in the meantime, and delivered late.
            return Some(moved);
        }
        run.made = charges.made;
        for (key, calls) in &charges.charged {
            // A budget that no snapshot names is that of a delegation that is gone.
            let Some(account) = self.budgets.get_mut(key) else { continue };
            let before = account.total();
            account.take(&charges.run, *calls, now);
            let after = account.total();
            if after != before {
                moved.push(Moved { key: key.clone(), before, after });
            }
        }
        Some(moved)
    }

    /// What a run is to be told of a budget. `shares` says which servers name it; without a run everything was charged elsewhere.
    pub fn share(&mut self, key: &str, run: Option<&str>, shares: impl Fn(&str) -> bool, now: Duration) -> Share {
        let is_sharing =
            |known: &Run| known.owner.as_ref().is_some_and(|(server, _)| shares(server)) && known.is_live();
        let mut sharing: Vec<&str> =
            self.runs.iter().filter(|(_, known)| is_sharing(known)).map(|(id, _)| id.as_str()).collect();
        sharing.sort_unstable();
        let place = run.and_then(|run| sharing.iter().position(|id| *id == run));
        let all = sharing.len() + usize::from(place.is_none());
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (sidecars, place) = (small(all), small(place.unwrap_or(all - 1)));
        let Some(account) = self.budgets.get_mut(key) else {
            return Share { elsewhere: 0, recent: 0, sidecars, place };
        };
        let own = run.and_then(|run| account.runs.get(run)).map_or(0, |count| count.calls);
        let elsewhere = account.total() - own;
        let others = account.runs.iter_mut().filter(|(id, _)| Some(id.as_str()) != run);
        let recent = others.map(|(_, count)| count.window.count(now)).fold(0, u64::saturating_add);
        Share { elsewhere, recent: recent.min(elsewhere), sidecars, place }
    }

    /// Every budget that is counted.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.budgets.keys().cloned().collect()
    }

    /// What was charged to a budget, to be persisted.
    #[must_use]
    pub fn charged(&self, key: &str) -> Charged {
        let Some(account) = self.budgets.get(key) else { return Charged::default() };
        let runs = account.runs.iter().filter(|(_, count)| count.calls > 0);
        let runs: BTreeMap<_, _> = runs.map(|(run, count)| (run.clone(), count.calls)).collect();
        Charged { calls: account.total(), runs, uses: None }
    }

    /// Whether nothing is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.budgets.is_empty()
    }

    /// Folds the runs that ended and forgets the budgets of delegations that do not exist any more.
    pub fn sweep(&mut self, exists: impl Fn(&str) -> bool, now: Duration) {
        self.budgets.retain(|key, _| exists(key));
        self.runs.retain(|_, run| !run.has_ended(now));
        for account in self.budgets.values_mut() {
            let ended: Vec<String> = account.runs.keys().filter(|run| !self.runs.contains_key(*run)).cloned().collect();
            for run in ended {
                let count = account.runs.remove(&run).unwrap_or_default();
                account.base = account.base.saturating_add(count.calls);
            }
        }
    }
}

impl Account {
    fn total(&self) -> u64 {
        self.runs.values().fold(self.base, |sum, count| sum.saturating_add(count.calls))
    }

    fn take(&mut self, run: &str, calls: u64, now: Duration) {
        let count = self.runs.entry(run.to_owned()).or_default();
        if calls < count.calls {
            // The sidecar forgot it in between and began to count again.
            self.base = self.base.saturating_add(count.calls);
            count.calls = 0;
        }
        count.window.add(calls - count.calls, now);
        count.calls = calls;
    }
}

impl Run {
    const fn unheard(now: Duration) -> Self {
        Self { owner: None, streams: 0, gone: now, superseded: false, made: 0 }
    }

    const fn is_live(&self) -> bool {
        self.streams > 0 && !self.superseded
    }

    fn has_ended(&self, now: Duration) -> bool {
        let gone = now.saturating_sub(self.gone);
        (self.superseded && gone > SUPERSEDED) || (self.streams == 0 && gone > ENDED)
    }
}

#[cfg(test)]
mod tests;
