//! One pass over one server, in five steps: dereference → compile → publish → apply → status.
//!
//! Publishing comes before applying: it is memory only, and a revocation must not wait for a Deployment that the API
//! server refuses.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cotter_compiler::{Delegations, Plan, Servers, World, compile, delegation_status, gate::Gate, orphan_pin_status};
use cotter_crds::AgentDelegation;
use kube::{Resource, ResourceExt};

use crate::{
    apply::ApplyError,
    dereference::{Slice, dereference},
    key::ServerKey,
    operator::Operator,
    status::StatusError,
    stores::delegated,
};

/// Every server is looked at this often even if nothing happened. A pass that finds nothing new writes nothing.
const RESYNC: Duration = Duration::from_secs(300);

/// A name that somebody else has is looked at again this often: nothing tells when it is free.
const TAKEN: Duration = Duration::from_secs(30);

/// Why a pass has to be tried again.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A child is not what it should be.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A status was not written.
    #[error(transparent)]
    Status(#[from] StatusError),
}

/// Brings one server to where it should be, as far as can be done now.
///
/// # Errors
/// See [`ReconcileError`]. Everything that could be done is done all the same.
pub async fn reconcile(operator: &Arc<Operator>, key: &ServerKey) -> Result<(), ReconcileError> {
    let world = match dereference(operator, key) {
        Slice::Gone => return gone(operator, key).await,
        Slice::Waiting => return Ok(()),
        Slice::World(world) => world,
    };
    let (world, plan) = compiled(operator.gate.clone(), world).await;
    operator.note_evidence(key, Some(plan.evidence.clone()));
    publish(operator, key, &plan);
    let applied = apply(operator, key, &world, &plan).await;
    let written = write(operator, key, &world, &plan, applied.as_ref().err()).await;
    schedule(operator, key, &plan, written?);
    match applied {
        Err(error) if error.is_transient() => Err(error.into()),
        Err(_taken) => {
            operator.queue.mark_after(key.clone(), TAKEN);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Compiles off the threads that serve streams: a large policy takes a while. A panic goes on in the pass, which is a
/// task of its own.
async fn compiled(gate: Arc<Gate>, mut world: Box<World>) -> (Box<World>, Plan) {
    let compiling = tokio::task::spawn_blocking(move || {
        gate.pass(&mut world);
        let plan = compile(&world);
        (world, plan)
    });
    match compiling.await {
        Ok(compiled) => compiled,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Without a snapshot the one before stays in force.
fn publish(operator: &Operator, key: &ServerKey, plan: &Plan) {
    let Some(sealed) = &plan.snapshot else { return };
    operator.spending.publish(key, sealed.snapshot());
    if operator.publisher.publish(key, sealed) {
        operator.metrics.snapshots.add();
        tracing::info!(server = %key, digest = %sealed.digest(), "new snapshot");
    }
}

async fn apply(operator: &Operator, key: &ServerKey, world: &World, plan: &Plan) -> Result<(), ApplyError> {
    let Some(children) = &plan.children else { return Ok(()) };
    let uid = world.server.uid().unwrap_or_default();
    let applied = operator.applier.apply(key, &uid, children, &operator.stores).await;
    if applied.as_ref().is_err_and(ApplyError::is_farewell) {
        return Ok(());
    }
    if let Err(error) = &applied {
        tracing::warn!(server = %key, %error, "child not applied");
        let reason = if error.is_transient() { "ApplyFailed" } else { "NameTaken" };
        operator.events.warn(&world.server.object_ref(&()), reason, &error.to_string()).await;
    }
    applied
}

/// Writes what is news. Says when to look again where something was held back.
async fn write(
    operator: &Operator,
    key: &ServerKey,
    world: &World,
    plan: &Plan,
    failure: Option<&ApplyError>,
) -> Result<Option<Duration>, StatusError> {
    if let Some(left) = operator.warming_up().filter(|_| !is_back(world)) {
        return Ok(Some(left));
    }
    let mut server_status = plan.server_status.clone();
    if let Some(error) = failure {
        crate::verdict::not_applied(&mut server_status, &world.server, error, world.now);
    }
    let mut later = Later::default();
    later.note(operator.statuses.write(&world.server, &server_status).await);
    for pin in &world.pins {
        if let Some(status) = plan.pin_statuses.get(&pin.name_any()).filter(|_| pin.metadata.uid.is_some()) {
            later.note(operator.statuses.write(pin, status).await);
        }
    }
    if let Some(left) = operator.warming_up().filter(|_| !operator.knows_namespace(&key.namespace)) {
        later.note(Ok(Some(left)));
        return later.result;
    }
    for delegation in &world.delegations {
        if let Some(status) = plan.delegation_statuses.get(&delegation.name_any()) {
            later.note(operator.statuses.write(delegation, status).await);
        }
    }
    later.result
}

/// Whether as many sidecars as the status counts are connected and have reported.
fn is_back(world: &World) -> bool {
    let counted = world.server.status.as_ref().and_then(|status| status.snapshot.as_ref()).map_or(0, |s| s.total);
    let heard = world.reports.iter().filter(|report| report.enforced.is_some()).count();
    i64::try_from(heard).is_ok_and(|heard| heard >= i64::from(counted))
}

/// The first error, else the shortest wait.
struct Later {
    result: Result<Option<Duration>, StatusError>,
}

impl Default for Later {
    fn default() -> Self {
        Self { result: Ok(None) }
    }
}

impl Later {
    fn note(&mut self, next: Result<Option<Duration>, StatusError>) {
        let before = std::mem::replace(&mut self.result, Ok(None));
        self.result = match (before, next) {
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(a), Ok(b)) => Ok(a.into_iter().chain(b).min()),
        };
    }
}

fn schedule(operator: &Operator, key: &ServerKey, plan: &Plan, held_back: Option<Duration>) {
    let wait = [plan.next.map(until), held_back].into_iter().flatten().fold(RESYNC, Duration::min);
    operator.queue.mark_after(key.clone(), wait);
}

/// How long until a moment after `time`, so that the pass finds it in the past.
fn until(time: jiff::Timestamp) -> Duration {
    Duration::try_from(time.duration_since(jiff::Timestamp::now())).unwrap_or_default() + Duration::from_millis(10)
}

/// The server does not exist. Its children go by their owner references; its streams end; what still names it is told.
async fn gone(operator: &Operator, key: &ServerKey) -> Result<(), ReconcileError> {
    operator.publisher.retire(key);
    operator.spending.retire(key);
    operator.objects.need(key, BTreeSet::new());
    operator.keys.need(key, BTreeSet::new());
    operator.applier.forget(key);
    operator.kept.forget(key);
    operator.note_evidence(key, None);
    let now = jiff::Timestamp::now();
    for pin in operator.stores.pins_of(key) {
        let pin = operator.statuses.freshest(pin.as_ref());
        operator.statuses.write(&pin, &orphan_pin_status(&pin, now)).await?;
    }
    if let Some(left) = operator.warming_up().filter(|_| !operator.knows_namespace(&key.namespace)) {
        operator.queue.mark_after(key.clone(), left);
        return Ok(());
    }
    let all: Vec<AgentDelegation> =
        operator.stores.delegations_in(&key.namespace).iter().map(|d| operator.statuses.freshest(d.as_ref())).collect();
    let read = Delegations::read(&all, operator.settings.longest_delegation, now);
    let others = operator.others(key);
    let servers: Servers<'_> = others.iter().map(|(name, evidence)| (name.as_str(), evidence)).collect();
    let charged = operator.spending.charged(&key.namespace, &all);
    for delegation in all.iter().filter(|delegation| delegated(delegation).contains(key)) {
        let status = delegation_status(delegation, &read, &servers, &charged, now);
        operator.statuses.write(delegation, &status).await?;
    }
    if let Some(next) = read.next_change(&key.name, now) {
        operator.queue.mark_after(key.clone(), until(next));
    }
    Ok(())
}
