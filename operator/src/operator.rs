//! What the passes share, and the memory between them. All of it can be lost: it comes back from the API server and the
//! sidecars.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cotter_compiler::{gate::Gate, plan::Evidence, world::ClusterSettings};
use kube::{Client, Resource};
use tokio::sync::watch;

use crate::{
    apply::Applier,
    events::Events,
    fleet::Fleet,
    following::Following,
    kept::Kept,
    key::ServerKey,
    keys::Fetcher,
    metrics::Metrics,
    objects::Objects,
    publish::Publisher,
    queue::Queue,
    spending::Spending,
    status::StatusWriter,
    stores::{Stores, delegated},
    unreadable::BadPins,
};

/// After a start, sidecars take up to five seconds to come back, and a moment to report. Until all that were there
/// before are back, or this long at most, status stays what it was: a restart of the operator is no outage, and a status
/// that says so would be a lie that is written twice for each server.
pub const WARM_UP: Duration = Duration::from_secs(15);

/// The operator's parts.
pub struct Operator {
    /// The API server.
    pub client: Client,
    /// What the compiler has to know of this installation.
    pub settings: ClusterSettings,
    /// Servers to look at.
    pub queue: Arc<Queue<ServerKey>>,
    /// What the watches know.
    pub stores: Stores,
    /// Referenced objects.
    pub objects: Following<Objects>,
    /// Key sets behind URLs.
    pub keys: Following<Fetcher>,
    /// Keys from before the start.
    pub kept: Kept,
    /// Pins that cannot be read.
    pub bad_pins: watch::Receiver<BadPins>,
    /// Snapshots.
    pub publisher: Arc<Publisher>,
    /// Sidecars.
    pub fleet: Arc<Fleet>,
    /// What was charged to budgets.
    pub spending: Arc<Spending>,
    /// Child objects.
    pub applier: Applier,
    /// Statuses.
    pub statuses: StatusWriter,
    /// Events.
    pub events: Events,
    /// Where policy modules are checked before a parser in this process sees them.
    pub gate: Arc<Gate>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    evidence: Mutex<HashMap<ServerKey, Evidence>>,
    started: Instant,
}

impl Operator {
    /// An operator with empty memory.
    #[must_use]
    pub fn new(
        client: Client,
        settings: ClusterSettings,
        stores: Stores,
        bad_pins: watch::Receiver<BadPins>,
        queue: Arc<Queue<ServerKey>>,
        gate: Gate,
    ) -> Self {
        let metrics = Arc::new(Metrics::default());
        let fetcher = Fetcher::new(client.clone(), settings.cluster_domain.clone());
        Self {
            objects: Following::new(Objects::new(client.clone()), queue.clone()),
            keys: Following::new(fetcher, queue.clone()),
            publisher: Arc::new(Publisher::default()),
            fleet: Arc::new(Fleet::new(queue.clone())),
            spending: Arc::default(),
            applier: Applier::new(client.clone(), metrics.clone()),
            statuses: StatusWriter::new(client.clone(), metrics.clone()),
            events: Events::new(client.clone()),
            kept: Kept::default(),
            gate: Arc::new(gate),
            evidence: Mutex::default(),
            started: Instant::now(),
            client,
            settings,
            queue,
            stores,
            bad_pins,
            metrics,
        }
    }

    /// Says on the server that a pass over it panicked. Whatever was in force stays.
    pub async fn tell_of_a_bug(&self, key: &ServerKey) {
        let Some(server) = self.stores.servers.get(&key.object()) else { return };
        let note = "a pass over this server panicked, which is a bug of the operator: its log has more. What is in force stays in force";
        self.events.warn(&server.object_ref(&()), "Bug", note).await;
    }

    /// How much of [`WARM_UP`] is left.
    #[must_use]
    pub fn warming_up(&self) -> Option<Duration> {
        WARM_UP.checked_sub(self.started.elapsed()).filter(|left| !left.is_zero())
    }

    /// The other servers of the namespace, with what their own last pass saw.
    #[must_use]
    pub fn others(&self, key: &ServerKey) -> BTreeMap<String, Evidence> {
        let evidence = self.evidence.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = self.stores.servers.state_filter(|server: &cotter_crds::McpServer| {
            server.metadata.namespace.as_deref() == Some(&key.namespace)
                && server.metadata.name.as_deref() != Some(&key.name)
        });
        let keys = servers.iter().map(|server| ServerKey::of(server.as_ref()));
        keys.map(|key| (key.name.clone(), evidence.get(&key).cloned().unwrap_or_default())).collect()
    }

    /// Whether each server of the namespace had a pass since the start.
    #[must_use]
    pub fn knows_namespace(&self, namespace: &str) -> bool {
        let evidence = self.evidence.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = self
            .stores
            .servers
            .state_filter(|server: &cotter_crds::McpServer| server.metadata.namespace.as_deref() == Some(namespace));
        servers.iter().all(|server| evidence.contains_key(&ServerKey::of(server.as_ref())))
    }

    /// Notes what a pass saw, and marks the servers that share a delegation with this one where that is news to them.
    pub fn note_evidence(&self, key: &ServerKey, new: Option<Evidence>) {
        let before = {
            let mut evidence = self.evidence.lock().unwrap_or_else(PoisonError::into_inner);
            match new.clone() {
                Some(new) => evidence.insert(key.clone(), new),
                None => evidence.remove(key),
            }
        };
        if before == new {
            return;
        }
        let delegations = self.stores.delegations_in(&key.namespace);
        let together = delegations.iter().map(|delegation| delegated(delegation)).filter(|keys| keys.contains(key));
        together.flatten().filter(|other| other != key).for_each(|other| self.queue.mark(other));
    }
}
