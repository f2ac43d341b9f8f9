//! The ledgers of all namespaces, shared by the stream and the passes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use cotter_compiler::Charged;
use cotter_core::{
    budget::{Budget, Charges, Share},
    report::Uses,
    snapshot::Snapshot,
};
use cotter_crds::{AgentDelegation, delegation as crd};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::Serialize;
use tokio::sync::watch;

use crate::{key::ServerKey, ledger::Ledger, operator::WARM_UP, tally::Tally};

/// One namespace.
#[derive(Debug)]
struct Book {
    ledger: Ledger,
    tally: Tally,
    /// The budgets that each server's snapshot names.
    named: HashMap<String, Vec<Budget>>,
    moved: watch::Sender<()>,
}

/// What was charged everywhere.
#[derive(Debug)]
pub struct Spending {
    began: Instant,
    books: Mutex<HashMap<String, Book>>,
}

impl Default for Spending {
    fn default() -> Self {
        Self { began: Instant::now(), books: Mutex::default() }
    }
}

impl Spending {
    /// Reads what was persisted. Before the first pass and the first stream: later the status is written from here.
    pub fn remember<'a>(&self, delegations: impl IntoIterator<Item = &'a AgentDelegation>) {
        for delegation in delegations {
            let (namespace, status) = (delegation.namespace().unwrap_or_default(), delegation.status.as_ref());
            if let Some(used) = status.and_then(|status| status.budget.as_ref()) {
                self.with(&namespace, |book, now| book.ledger.know(key(delegation), &charged(used), now));
            }
            if let Some(uses) = status.and_then(|status| status.uses.as_ref()) {
                self.with(&namespace, |book, _| book.tally.remember(&delegation.name_any(), counted(uses)));
            }
        }
    }

    /// Takes the uses of delegations that a sidecar reports.
    pub fn report(&self, server: &ServerKey, pod: &str, uses: &BTreeMap<String, Uses>) {
        self.with(&server.namespace, |book, now| book.tally.take(&server.name, pod, uses, now < WARM_UP, now));
    }

    /// Notes the budgets of a server's snapshot. Before it is published: what was charged is told first.
    pub fn publish(&self, server: &ServerKey, snapshot: &Snapshot) {
        let all = snapshot.grants.iter().flat_map(|grant| &grant.budgets);
        let by_key: BTreeMap<&str, &Budget> = all.map(|budget| (budget.key(), budget)).collect();
        self.with(&server.namespace, |book, now| {
            for key in by_key.keys() {
                book.ledger.know(key, &Charged::default(), now);
            }
            let budgets: Vec<Budget> = by_key.into_values().cloned().collect();
            let before = book.named.insert(server.name.clone(), budgets);
            if before.as_ref() != book.named.get(&server.name) {
                book.moved.send_replace(());
            }
        });
    }

    /// Forgets a server that is gone.
    pub fn retire(&self, server: &ServerKey) {
        self.with(&server.namespace, |book, _| {
            book.named.remove(&server.name);
            book.moved.send_replace(());
        });
    }

    /// A run's stream opened. Says whether it is this pod's.
    pub fn connect(&self, server: &ServerKey, pod: &str, run: &str) -> bool {
        self.with(&server.namespace, |book, now| {
            book.moved.send_replace(());
            book.ledger.connect(&server.name, pod, run, now)
        })
    }

    /// A run's stream ended.
    pub fn disconnect(&self, server: &ServerKey, run: &str) {
        self.with(&server.namespace, |book, now| {
            book.ledger.disconnect(run, now);
            book.moved.send_replace(());
        });
    }

    /// Takes what a run charged. Gives the servers of delegations whose calls are used up with it; nothing where it does not count.
    pub fn charge(&self, server: &ServerKey, pod: &str, charges: &Charges) -> Option<Vec<ServerKey>> {
        self.with(&server.namespace, |book, now| {
            let moved = book.ledger.charge(&server.name, pod, charges, now)?;
            if !moved.is_empty() {
                book.moved.send_replace(());
            }
            let used_up = |budget: &Budget| {
                moved.iter().any(|moved| {
                    let crossed = |calls| moved.before < calls && moved.after >= calls;
                    moved.key == budget.key() && budget.calls.is_some_and(crossed)
                })
            };
            let concerned = book.named.iter().filter(|(_, budgets)| budgets.iter().any(used_up));
            Some(concerned.map(|(name, _)| ServerKey::new(server.namespace.as_str(), name.as_str())).collect())
        })
    }

    /// The line that tells a run what was charged elsewhere to the budgets of its server's snapshot. None where it has none.
    pub fn line(&self, server: &ServerKey, run: Option<&str>) -> Option<Bytes> {
        #[derive(Serialize)]
        struct Line<'a> {
            budgets: BTreeMap<&'a str, Share>,
        }
        self.with(&server.namespace, |book, now| {
            let Book { ledger, named, .. } = book;
            // A server without a snapshot since the start may enforce an older one, and that names any budget.
            let keys = |budgets: &Vec<Budget>| budgets.iter().map(|budget| budget.key().to_owned()).collect();
            let own: Vec<String> = named.get(&server.name).map_or_else(|| ledger.keys(), keys);
            if own.is_empty() {
                return None;
            }
            let mut share = |key: &str| {
                let names = |server: &str| {
                    named.get(server).is_none_or(|budgets| budgets.iter().any(|other| other.key() == key))
                };
                ledger.share(key, run, names, now)
            };
            let line = Line { budgets: own.iter().map(|key| (key.as_str(), share(key))).collect() };
            let mut text = serde_json::to_vec(&line).ok()?;
            text.push(b'\n');
            Some(text.into())
        })
    }

    /// Told whenever what is to be told in a namespace may have changed.
    pub fn follow(&self, namespace: &str) -> watch::Receiver<()> {
        self.with(namespace, |book, _| book.moved.subscribe())
    }

    /// What was charged to each of these delegations of a namespace, and how often it was used, by name. The budget of one that could not
    /// be read for a while goes on from what its status says.
    pub fn charged(&self, namespace: &str, delegations: &[AgentDelegation]) -> cotter_compiler::Ledger {
        self.with(namespace, |book, now| {
            let charged = |one: &AgentDelegation| {
                if let Some(used) = one.status.as_ref().and_then(|status| status.budget.as_ref()) {
                    book.ledger.know(key(one), &charged(used), now);
                }
                let uses = book.tally.total(&one.name_any());
                (one.name_any(), Charged { uses, ..book.ledger.charged(key(one)) })
            };
            delegations.iter().map(charged).collect()
        })
    }

    /// Folds what ended, and forgets what is of delegations that do not exist any more.
    pub fn sweep(&self, delegations: &[Arc<AgentDelegation>]) {
        let mut exist: HashMap<String, HashSet<&str>> = HashMap::new();
        for one in delegations {
            let names = exist.entry(one.namespace().unwrap_or_default()).or_default();
            names.extend([key(one), one.metadata.name.as_deref().unwrap_or_default()]);
        }
        let now = self.began.elapsed();
        self.lock().retain(|namespace, book| {
            let exists = |name: &str| exist.get(namespace).is_some_and(|names| names.contains(name));
            book.ledger.sweep(exists, now);
            book.tally.sweep(exists, now);
            let is_read = !book.named.is_empty() || book.moved.receiver_count() > 0;
            is_read || !book.ledger.is_empty() || !book.tally.is_empty()
        });
    }

    fn with<T>(&self, namespace: &str, work: impl FnOnce(&mut Book, Duration) -> T) -> T {
        let mut books = self.lock();
        let now = self.began.elapsed();
        let new = || Book {
            ledger: Ledger::default(),
            tally: Tally::default(),
            named: HashMap::new(),
            moved: watch::Sender::new(()),
        };
        work(books.entry(namespace.to_owned()).or_insert_with(new), now)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Book>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn charged(used: &crd::BudgetUse) -> Charged {
    let runs = used.runs.iter().map(|(run, calls)| (run.clone(), count(*calls))).collect();
    Charged { calls: count(used.charged), runs, uses: None }
}

fn counted(uses: &crd::Uses) -> Uses {
    let time = |time: &Option<Time>| time.as_ref().map(|time| time.0);
    Uses {
        allowed: count(uses.allowed),
        denied: count(uses.denied),
        last_used: time(&uses.last_used),
        last_denial: time(&uses.last_denial),
    }
}

fn count(calls: i64) -> u64 {
    u64::try_from(calls).unwrap_or_default()
}

/// Under what a delegation's budget is counted: [`Budget::key`].
#[must_use]
pub fn key(delegation: &AgentDelegation) -> &str {
    let metadata = &delegation.metadata;
    metadata.uid.as_deref().or(metadata.name.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn delegation() -> AgentDelegation {
        let delegation = json!({
            "apiVersion": "cotter.dev/v1alpha1", "kind": "AgentDelegation",
            "metadata": {"name": "triage", "namespace": "n", "uid": "u1"},
            "spec": {"delegate": {"claims": {"team": "desk"}}, "to": {"servers": [{"name": "a"}, {"name": "b"}]},
                "scopes": ["policy:read"], "effects": ["Read"], "tenants": ["tenant-7"], "expiresAt": "2027-01-31T00:00:00Z"},
            "status": {"budget": {"charged": 20, "runs": {"run-a": 10, "run-b": 10}}},
        });
        serde_json::from_value(delegation).unwrap()
    }

    #[test]
    fn a_server_that_is_not_published_since_the_start_is_told_of_every_budget_that_is_counted() {
        let spending = Spending::default();
        spending.remember([&delegation()]);
        let (a, elsewhere) = (ServerKey::new("n", "a"), ServerKey::new("other", "a"));
        assert!(spending.connect(&a, "a-0", "run-a"));
        let line: Value = serde_json::from_slice(&spending.line(&a, Some("run-a")).unwrap()).unwrap();
        assert_eq!(line["budgets"]["u1"]["elsewhere"], 10, "{line}");
        assert!(spending.line(&elsewhere, Some("run-c")).is_none(), "a namespace without budgets has nothing to tell");
    }

    #[test]
    fn a_delegation_that_could_not_be_read_at_the_start_goes_on_from_its_status() {
        let (spending, server) = (Spending::default(), ServerKey::new("n", "a"));
        let counted = |spending: &Spending| spending.charged("n", &[delegation()])["triage"].calls;
        assert_eq!(counted(&spending), 20);
        assert!(spending.connect(&server, "a-0", "run-a"));
        let charges = Charges { run: "run-a".to_owned(), made: 12, charged: BTreeMap::from([("u1".to_owned(), 12)]) };
        assert!(spending.charge(&server, "a-0", &charges).is_some());
        assert_eq!(counted(&spending), 22, "what is known already is newer than a status");
    }
}
