//! What the running `up` tells the other commands: objects with status, servers, definitions, and the last decisions.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cotter_core::{audit::Record, report::Definitions, snapshot::Sealed};
use cotter_proxy::ledger::Ledger;
use serde_json::Value;

use crate::wire::Server;

/// Decisions that are kept to be asked for: enough for a person who calls by hand, not an audit.
const DECISIONS: usize = 4096;

/// Shared between the loop that writes it and the socket that reads it.
#[derive(Debug, Default)]
pub(crate) struct Board {
    shown: Mutex<Shown>,
    decisions: Mutex<VecDeque<Arc<Record>>>,
    ledger: Arc<Ledger>,
}

/// What is shown at one moment.
#[derive(Debug, Default, Clone)]
pub(crate) struct Shown {
    /// Objects with status, sorted by kind and name.
    pub(crate) objects: Vec<Value>,
    /// Servers as their owner sees them.
    pub(crate) servers: Vec<Server>,
    /// What sidecars enforce, by server.
    pub(crate) snapshots: BTreeMap<String, Sealed>,
    /// Definitions as they were observed, by server.
    pub(crate) observed: BTreeMap<String, Definitions>,
}

impl Board {
    /// Replaces what is shown.
    pub(crate) fn show(&self, shown: Shown) {
        *lock(&self.shown) = shown;
    }

    /// What is shown now.
    pub(crate) fn shown(&self) -> Shown {
        lock(&self.shown).clone()
    }

    /// What the sidecars of all servers charge to budgets.
    pub(crate) const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// What was charged to the budgets that are in force for a server, by the delegation whose budget it is; to this moment, and so
    /// ahead of what status says.
    pub(crate) fn charged(&self, server: &str) -> Option<BTreeMap<String, u64>> {
        let sealed = self.shown().snapshots.remove(server)?;
        let namespace = sealed.snapshot().server.namespace.as_str();
        let budgets = sealed.snapshot().grants.iter().flat_map(|grant| &grant.budgets);
        Some(budgets.map(|one| (one.name.clone(), self.ledger.charged(namespace, one.key()))).collect())
    }

    /// Keeps a decision.
    pub(crate) fn decided(&self, record: Arc<Record>) {
        let mut decisions = lock(&self.decisions);
        if decisions.len() >= DECISIONS {
            decisions.pop_front();
        }
        decisions.push_back(record);
    }

    /// The decision with this id.
    pub(crate) fn decision(&self, id: &str) -> Option<Arc<Record>> {
        lock(&self.decisions).iter().rev().find(|record| record.id == id).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
