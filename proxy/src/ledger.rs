//! What was charged to the budgets of delegations. One ledger for the sidecars of one process, one lock, held for a few comparisons.
//!
//! # Guarantees
//! A call is charged to every budget of its chain or to none. Bounds come from the snapshot with each charge and counts stay here, so
//! that a budget that is edited takes effect at once. Where there is an operator, nothing is permitted before it told what was charged
//! elsewhere; nor, with other sidecars beside this one, when it has been silent for [`SILENCE`].

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cotter_core::{
    budget::{Budget, Charges, MINUTE, Share, Window},
    name::{Namespace, ServerRef},
    snapshot::Snapshot,
};
use tokio::sync::{Notify, watch};

use crate::random;

mod told;

use told::Told;

/// How old what is known of other sidecars may be: the operator says something every 15 s.
pub const SILENCE: Duration = Duration::from_secs(60);

/// Budgets that no snapshot names any more and that are remembered: one that comes back, after a mistake in a manifest, goes on where
/// it was. Beyond this the ones that were charged least recently are forgotten.
const GONE: usize = 1024;

/// One budget of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    /// Namespace and key.
    key: String,
    budget: Budget,
}

/// The budgets of one snapshot, by the delegation under which a call is made: its own and those above it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budgets(HashMap<String, Vec<Bound>>);

impl Budgets {
    /// Those of the snapshot's grants. A grant without budgets is not here.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Self {
        let namespace = &snapshot.server.namespace;
        let bound = |budget: &Budget| Bound { key: place(namespace, budget.key()), budget: budget.clone() };
        let bounded = snapshot.grants.iter().filter(|grant| !grant.budgets.is_empty());
        Self(bounded.map(|grant| (grant.name.clone(), grant.budgets.iter().map(bound).collect())).collect())
    }

    /// Whether no call is charged to anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn place(namespace: &Namespace, key: &str) -> String {
    format!("{namespace}/{key}")
}

/// Why a delegation permits nothing more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exhausted {
    /// What is used up.
    pub what: UsedUp,
    /// The delegation whose budget it is.
    pub whose: String,
}

/// What is used up: first what comes back soonest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedUp {
    /// The calls of this minute; how long until there is another.
    Minute(Duration),
    /// Not known: the operator has not said what was charged elsewhere.
    Unknown,
    /// All calls.
    Calls(u64),
}

/// Counts of all budgets that the snapshots of this process name or named.
#[derive(Debug)]
pub struct Ledger {
    run: String,
    began: Instant,
    governed: bool,
    state: Mutex<State>,
    moved: Notify,
    /// Calls that the operator accepted.
    accepted: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    made: u64,
    accounts: HashMap<String, Account>,
    told: HashMap<String, Told>,
    named: HashMap<ServerRef, HashSet<String>>,
}

#[derive(Debug, Default)]
struct Account {
    charged: u64,
    last: Duration,
    /// Only where there is a bound for a minute.
    window: Option<Box<Window>>,
}

impl Default for Ledger {
    /// One that counts by itself.
    fn default() -> Self {
        Self::alone()
    }
}

impl Ledger {
    /// One that counts by itself: nobody else charges to these budgets.
    #[must_use]
    pub fn alone() -> Self {
        Self {
            run: random::id(),
            began: Instant::now(),
            governed: false,
            state: Mutex::default(),
            moved: Notify::new(),
            accepted: watch::Sender::new(0),
        }
    }

    /// One that an operator tells what others charge.
    #[must_use]
    pub fn governed() -> Self {
        Self { governed: true, ..Self::alone() }
    }

    /// The id of this run: another one each time that a ledger is made.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Charges a call under a delegation to every budget of its chain. Nothing to do where it has none. `silence` is how long the
    /// operator has said nothing.
    ///
    /// # Errors
    /// What keeps the call from being made for the longest time. Then nothing is charged.
    pub fn charge(&self, budgets: &Budgets, delegation: &str, silence: Duration) -> Result<(), Exhausted> {
        let Some(bounds) = budgets.0.get(delegation) else { return Ok(()) };
        self.charge_at(bounds, silence, self.began.elapsed())
    }

    fn charge_at(&self, bounds: &[Bound], silence: Duration, now: Duration) -> Result<(), Exhausted> {
        let mut state = self.lock();
        let used_up = bounds.iter().filter_map(|bound| {
            let told = if self.governed { state.told.get(&bound.key).copied() } else { Some(Told::alone()) };
            let told = told.filter(|told| told.is_alone() || silence <= SILENCE);
            let account = state.accounts.entry(bound.key.clone()).or_default();
            let what = told.map_or(Some(UsedUp::Unknown), |told| account.used_up(&bound.budget, &told, now))?;
            Some((what, &bound.budget.name))
        });
        if let Some((what, whose)) = used_up.max_by_key(|(what, _)| *what) {
            return Err(Exhausted { what, whose: whose.clone() });
        }
        for bound in bounds {
            state.accounts.entry(bound.key.clone()).or_default().charge(&bound.budget, now);
        }
        state.made += 1;
        drop(state);
        self.moved.notify_one();
        Ok(())
    }

    /// Takes what the operator says of every budget in a server's snapshot; of one that is missing nothing is known any more.
    pub fn told(&self, namespace: &Namespace, shares: &BTreeMap<String, Share>) {
        self.told_at(namespace, shares, self.began.elapsed());
    }

    fn told_at(&self, namespace: &Namespace, shares: &BTreeMap<String, Share>, now: Duration) {
        let mut state = self.lock();
        let mut before = std::mem::take(&mut state.told);
        let told = shares.iter().map(|(key, share)| {
            let key = place(namespace, key);
            let told = Told::new(before.remove(&key), *share, now);
            (key, told)
        });
        state.told = told.collect();
    }

    /// Notes which budgets the snapshot in force of a server names, and forgets some that none does.
    pub fn keep(&self, server: &ServerRef, budgets: &Budgets) {
        let keys = budgets.0.values().flatten().map(|bound| bound.key.clone()).collect();
        let mut state = self.lock();
        state.named.insert(server.clone(), keys);
        let State { accounts, named, .. } = &mut *state;
        let is_named = |key: &String| named.values().any(|keys| keys.contains(key));
        let mut gone: Vec<(Duration, String)> = accounts
            .iter()
            .filter(|(key, _)| !is_named(key))
            .map(|(key, account)| (account.last, key.clone()))
            .collect();
        gone.sort();
        gone.iter().rev().skip(GONE).for_each(|(_, key)| drop(accounts.remove(key)));
    }

    /// A server has no snapshot any more.
    pub fn leave(&self, server: &ServerRef) {
        self.lock().named.remove(server);
    }

    /// What this run charged, for the operator: a sidecar that has one guards one server, and so knows one namespace.
    #[must_use]
    pub fn charges(&self) -> Charges {
        let state = self.lock();
        let charged = state.accounts.iter().filter(|(_, account)| account.charged > 0);
        let charged = charged.map(|(key, account)| (bare(key).to_owned(), account.charged)).collect();
        Charges { run: self.run.clone(), made: state.made, charged }
    }

    /// The operator accepted what [`Ledger::charges`] said when so many calls were made.
    pub fn accepted(&self, made: u64) {
        self.accepted.send_if_modified(|before| std::mem::replace(before, made.max(*before)) < made);
    }

    /// Waits until the operator accepted everything that was charged.
    pub async fn told_all(&self) {
        let mut accepted = self.accepted.subscribe();
        // The sender is this ledger's, so the wait ends only with what it waits for.
        let _accepted = accepted.wait_for(|made| *made >= self.lock().made).await;
    }

    /// What was charged to a budget in all.
    #[must_use]
    pub fn charged(&self, namespace: &str, key: &str) -> u64 {
        self.lock().accounts.get(&format!("{namespace}/{key}")).map_or(0, |account| account.charged)
    }

    /// Waits until something was charged since the last time. For one who waits.
    pub async fn moved(&self) {
        self.moved.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No step leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bare(place: &str) -> &str {
    place.split_once('/').map_or(place, |(_, key)| key)
}

impl Account {
    fn used_up(&mut self, budget: &Budget, told: &Told, now: Duration) -> Option<UsedUp> {
        if let Some(calls) = budget.calls
            && self.charged.saturating_add(told.elsewhere()) >= calls
        {
            return Some(UsedUp::Calls(calls));
        }
        let limit = told.limit(budget.per_minute?, now);
        match self.window.get_or_insert_default().wait(limit, now) {
            Some(Duration::ZERO) => None,
            // A part of nothing may be more when other sidecars are gone.
            wait => Some(UsedUp::Minute(wait.unwrap_or(MINUTE))),
        }
    }

    fn charge(&mut self, budget: &Budget, now: Duration) {
        self.charged = self.charged.saturating_add(1);
        self.last = now;
        // A bound for a minute that is written later finds the calls of the last minute only if one was there before.
        if budget.per_minute.is_some() || self.window.is_some() {
            self.window.get_or_insert_default().add(1, now);
        }
    }
}

#[cfg(test)]
mod tests;
