//! The operator of Cotter: watches, applies, streams snapshots, writes status. A thin shell around `compile`.
//!
//! [`run`] starts everything: watches fill stores and mark servers in a queue; workers take servers from it and
//! [`reconcile`](reconcile::reconcile) each; sidecars follow their server's snapshots and report over the stream, which
//! marks servers again. There is no leader election yet: one replica, and the one before ends before it starts. When
//! there is, the workers and the stream run on the leader alone, and the watches everywhere.

use std::{sync::Arc, time::Instant};

use axum_server::tls_rustls::RustlsConfig;
use cotter_compiler::{
    gate::Gate,
    guard::Guard,
    world::{ClusterSettings, Unresolved},
};
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service, ServiceAccount},
};
use kube::{Api, Client, Resource, core::DeserializeGuard, runtime::reflector::store::Writer, runtime::watcher};
use tokio::{
    sync::{mpsc, oneshot, watch as signal},
    task::JoinSet,
};

pub mod apply;
pub mod auth;
pub mod compare;
pub mod dereference;
pub mod events;
pub mod fleet;
pub mod following;
pub mod health;
pub mod kept;
pub mod key;
pub mod keys;
pub mod ledger;
pub mod marking;
pub mod metrics;
pub mod objects;
pub mod operator;
pub mod publish;
pub mod queue;
pub mod reconcile;
pub mod settings;
pub mod spending;
pub mod status;
pub mod stores;
pub mod stream;
pub mod tally;
pub mod tls;
pub mod trouble;
pub mod unreadable;
pub mod verdict;
pub mod watch;

use crate::{
    key::ServerKey,
    marking::{Concerns, Marker, Noted, of_child, of_cluster_policy, of_delegation, of_pin, of_server},
    operator::Operator,
    queue::Queue,
    settings::Settings,
    stores::{Stores, Writers, cluster_wide, ours, stores},
    stream::{Desk, Listener},
    unreadable::Message,
};

/// Complaints about unreadable objects that wait to be told.
const COMPLAINTS: usize = 1024;
/// A pass makes a dozen API calls at most, and the client tries each again for many minutes.
const PASS: std::time::Duration = std::time::Duration::from_secs(60);
/// How often silent sidecars are looked for.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(10);

/// Why the operator does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// The stream's port.
    #[error(transparent)]
    Listen(#[from] stream::ListenError),
    /// A port failed.
    #[error("failed to serve {what}")]
    Serve {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// This program's own path is not known: it has to start itself to check policy modules.
    #[error("failed to find the policy checker")]
    Checker(#[source] std::io::Error),
    /// A part ended that never does.
    #[error("failed to go on: {0} ended")]
    Ended(&'static str),
}

/// The word that makes `cotter-operator` the child that checks policy modules.
pub const CHECK_WORD: &str = "check-policy-modules";

fn guard(settings: &Settings) -> Result<Guard, RunError> {
    match &settings.policy_checker {
        Some(program) => Ok(Guard::of(program.clone(), CHECK_WORD)),
        None => Guard::new(CHECK_WORD).map_err(RunError::Checker),
    }
}

/// Runs the operator until `stopping` turns true.
///
/// # Errors
/// See [`RunError`]. Losing the API server is none: everything waits and comes back.
pub async fn run(client: Client, settings: Settings, stopping: signal::Receiver<bool>) -> Result<(), RunError> {
    let secrets = Api::<Secret>::namespaced(client.clone(), &settings.namespace);
    let authority = tls::authority(&secrets, &settings.namespace).await?;
    let listener = Listener::bind(settings.stream_listen)?;
    let (stores, writers) = stores();
    let (complain, complaints) = mpsc::channel(COMPLAINTS);
    let (tell_bad_pins, bad_pins) = signal::channel(unreadable::BadPins::new());
    let queue = Arc::new(Queue::default());
    let installation = installation(&settings, &authority);
    let gate = Gate::new(guard(&settings)?);
    let operator = Operator::new(client.clone(), installation, stores.clone(), bad_pins, queue.clone(), gate);
    let operator = Arc::new(operator);
    let (set_ready, ready) = signal::channel(false);

    let mut tasks = JoinSet::new();
    let (events, counted) = (operator.events.clone(), (queue.clone(), operator.metrics.clone()));
    let telling = unreadable::run(client.clone(), events, complaints, tell_bad_pins, counted);
    tasks.spawn(async move {
        telling.await;
        Err(RunError::Ended("complaining"))
    });
    watches(&mut tasks, (&client, &settings.namespace), writers, &|| (stores.clone(), queue.clone(), complain.clone()));
    let healthy = health::serve(settings.health_listen, operator.clone(), ready, stopping.clone());
    tasks.spawn(async move { healthy.await.map_err(|source| RunError::Serve { what: "health", source }) });
    let work = work(operator, settings, authority, listener, complain, set_ready, stopping);
    tokio::select! {
        ended = work => ended,
        failed = first_failure(&mut tasks) => Err(failed),
    }
}

/// The first part that ends and should not. The health port ends when the operator is told to, a moment before the
/// stream is drained.
async fn first_failure(tasks: &mut JoinSet<Result<(), RunError>>) -> RunError {
    loop {
        match tasks.join_next().await {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => return error,
            Some(Err(error)) => {
                tracing::error!(%error, "a part of the operator panicked");
                return RunError::Ended("a task");
            }
            None => return RunError::Ended("everything"),
        }
    }
}

fn installation(settings: &Settings, authority: &tls::Authority) -> ClusterSettings {
    ClusterSettings {
        operator_url: settings.stream_url(),
        operator_ca_pem: authority.certificate_pem().to_owned(),
        sidecar_image: settings.sidecar_image.clone(),
        cluster_domain: settings.cluster_domain.clone(),
        service_accounts: Err(Unresolved::NotFound("the manifest does not ask for service accounts".to_owned())),
        longest_delegation: jiff::SignedDuration::try_from(settings.longest_delegation()).unwrap_or_default(),
    }
}

type Marking = (Stores, Arc<Queue<ServerKey>>, mpsc::Sender<Message>);

/// Starts a watch for each kind.
fn watches(
    tasks: &mut JoinSet<Result<(), RunError>>,
    (client, namespace): (&Client, &str),
    writers: Writers,
    marking: &dyn Fn() -> Marking,
) {
    let Writers { servers, pins, delegations, deployments, services, accounts, config_maps, policies } = writers;
    let all = watcher::Config::default;
    let labelled = || watcher::Config::default().labels(&ours());
    watch_kind::<McpServer>(tasks, every(client), all(), servers, of_server, marking());
    watch_kind::<ToolPin>(tasks, every(client), all(), pins, of_pin, marking());
    watch_kind::<AgentDelegation>(tasks, every(client), all(), delegations, of_delegation, marking());
    watch_kind::<Deployment>(tasks, every(client), labelled(), deployments, of_child, marking());
    watch_kind::<Service>(tasks, every(client), labelled(), services, of_child, marking());
    watch_kind::<ServiceAccount>(tasks, every(client), labelled(), accounts, of_child, marking());
    watch_kind::<ConfigMap>(tasks, every(client), labelled(), config_maps, of_child, marking());
    // Of this one namespace: who may write elsewhere makes no rules for everybody.
    let own = Api::namespaced(client.clone(), namespace);
    let wide = all().labels(&cluster_wide());
    watch_kind::<ConfigMap>(tasks, own, wide, policies, of_cluster_policy, marking());
}

/// All objects of a kind, wherever they are.
fn every<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DeserializeGuard<K>> {
    Api::all(client.clone())
}

fn watch_kind<K>(
    tasks: &mut JoinSet<Result<(), RunError>>,
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    writer: Writer<K>,
    concerns: Concerns<K>,
    (stores, queue, complain): Marking,
) where
    K: Resource<DynamicType = ()>
        + Clone
        + Noted
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let marker = Marker::new(concerns, stores, queue, complain);
    tasks.spawn(async move {
        watch::run(api, config, writer, marker).await;
        Err(RunError::Ended("a watch"))
    });
}

/// What needs full stores: the workers and the stream.
async fn work(
    operator: Arc<Operator>,
    settings: Settings,
    authority: tls::Authority,
    listener: Listener,
    complain: mpsc::Sender<Message>,
    set_ready: signal::Sender<bool>,
    mut stopping: signal::Receiver<bool>,
) -> Result<(), RunError> {
    tokio::select! {
        filled = filled(&operator, &complain) => filled?,
        _ = stopping.wait_for(|stop| *stop) => return Ok(()),
    }
    let mut workers = JoinSet::new();
    for _ in 0..settings.workers {
        workers.spawn(worker(operator.clone()));
    }
    workers.spawn(sweeper(operator.clone()));
    let names = settings.stream_names();
    let tls = RustlsConfig::from_config(authority.server(&names)?);
    workers.spawn(renewer(tls.clone(), authority, names));
    let stop_listening = listener.stopper();
    let desk = Desk::new(
        (auth::Authenticator::new(operator.client.clone()), Box::new(operator.stores.clone())),
        operator.publisher.clone(),
        (operator.fleet.clone(), operator.spending.clone()),
        operator.metrics.clone(),
        stopping.clone(),
    );
    let serving = stream::serve(listener, tls, stream::router(Arc::new(desk)));
    workers.spawn(async move {
        let _stopped_or_gone = stopping.wait_for(|stop| *stop).await;
        stop_listening();
    });
    set_ready.send_replace(true);
    tracing::info!(listen = %settings.stream_listen, "ready");
    serving.await.map_err(|source| RunError::Serve { what: "the snapshot stream", source })
}

/// Waits until every store is filled, and what could not be read is known.
async fn filled(operator: &Operator, complain: &mpsc::Sender<Message>) -> Result<(), RunError> {
    operator.stores.ready().await.map_err(|_| RunError::Ended("a watch"))?;
    operator.kept.read(&operator.stores);
    operator.spending.remember(operator.stores.delegations.state().iter().map(AsRef::as_ref));
    let (barrier, passed) = oneshot::channel();
    if complain.send(Message::Barrier(barrier)).await.is_ok() {
        // Dropped unanswered is the answer.
        let _dropped = passed.await;
    }
    Ok(())
}

async fn worker(operator: Arc<Operator>) {
    loop {
        let key = operator.queue.take().await;
        operator.metrics.passes.add();
        let done = pass(&operator, &key).await;
        if let Err(why) = &done {
            operator.metrics.failed_passes.add();
            tracing::warn!(server = %key, why, "pass failed, it is tried again");
        }
        operator.queue.done(&key, done.is_ok());
    }
}

/// One pass, bounded, and as a task of its own: neither an API server that does not answer nor a bug in one pass keeps
/// the worker from the other servers.
async fn pass(operator: &Arc<Operator>, key: &ServerKey) -> Result<(), String> {
    let (shared, own) = (operator.clone(), key.clone());
    let mut pass = tokio::spawn(async move { reconcile::reconcile(&shared, &own).await });
    match tokio::time::timeout(PASS, &mut pass).await {
        Ok(Ok(done)) => done.map_err(|error| error.to_string()),
        Ok(Err(_panicked)) => {
            operator.tell_of_a_bug(key).await;
            Err("it panicked: this is a bug".to_owned())
        }
        Err(_elapsed) => {
            pass.abort();
            Err("the API server did not answer in time".to_owned())
        }
    }
}

async fn sweeper(operator: Arc<Operator>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        operator.fleet.sweep(Instant::now());
        operator.spending.sweep(&operator.stores.delegations.state());
    }
}

async fn renewer(tls: RustlsConfig, authority: tls::Authority, names: Vec<String>) {
    loop {
        tokio::time::sleep(tls::RENEW).await;
        match authority.server(&names) {
            Ok(config) => tls.reload_from_config(config),
            Err(error) => tracing::error!(%error, "the server certificate was not renewed"),
        }
    }
}
