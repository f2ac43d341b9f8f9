//! One sidecar: listener, keeper and admin port, started and ended as one. The same in a pod and inside `cotter up`.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc};

use cotter_core::{name::ServerRef, report::Report, snapshot::Sealed};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    admin,
    audit::{Audit, Sink},
    contact::Contact,
    front,
    keeper::Keeper,
    ledger::Ledger,
    listen,
    state::Shared,
};

/// Stack of a worker thread: a chain of rules that the check lets pass needs more than the usual 2 MiB to evaluate.
const STACK: usize = 16 << 20;

/// How a sidecar is started.
#[derive(Debug)]
pub struct Config {
    /// Its name in reports: the pod's name, or `local`.
    pub name: String,
    /// The server that it guards. A snapshot for another one is refused.
    pub server: ServerRef,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where the platform connects.
    pub admin: Option<SocketAddr>,
    /// Where snapshots come from.
    pub snapshots: watch::Receiver<Option<Sealed>>,
    /// Where reports go.
    pub reports: watch::Sender<Option<Arc<Report>>>,
    /// Where decisions are recorded.
    pub audit: Sink,
    /// Where the last good snapshot is kept.
    pub state_dir: Option<PathBuf>,
    /// Where a child process works.
    pub work_dir: Option<PathBuf>,
    /// What is charged to budgets of delegations: one for all sidecars of a process.
    pub ledger: Arc<Ledger>,
    /// When the operator was last heard; absent where there is none.
    pub contact: Option<Contact>,
}

/// Why a sidecar does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port is taken or not ours to take.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// A running sidecar.
#[derive(Debug)]
pub struct Sidecar {
    shared: Arc<Shared>,
    address: SocketAddr,
    admin: Option<SocketAddr>,
    wanted: Arc<Notify>,
    front: CancellationToken,
    back: CancellationToken,
    fronts: JoinSet<()>,
    backs: JoinSet<()>,
}

impl Sidecar {
    /// Starts listening and enforcing. Until the first snapshot every request is refused with `NotReady`.
    ///
    /// # Errors
    /// A port cannot be listened on.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let (listener, address) = bind(config.listen).await?;
        let admin = match config.admin {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let shared = Arc::new(Shared {
            server: config.server,
            enforced: arc_swap::ArcSwapOption::empty(),
            sessions: <_>::default(),
            conversations: <_>::default(),
            buckets: <_>::default(),
            in_flight: <_>::default(),
            bodies: <_>::default(),
            audit: Audit::open(config.audit),
            metrics: <_>::default(),
            uses: <_>::default(),
            ledger: config.ledger,
            contact: config.contact,
        });
        let keeper = Keeper {
            shared: Arc::clone(&shared),
            name: config.name,
            snapshots: config.snapshots,
            reports: config.reports,
            state_dir: config.state_dir,
            work_dir: config.work_dir,
            wanted: Arc::default(),
            unsaved: None,
        };
        let (front, back) = (CancellationToken::new(), CancellationToken::new());
        let (mut fronts, mut backs) = (JoinSet::new(), JoinSet::new());
        let wanted = Arc::clone(&keeper.wanted);
        backs.spawn(keeper.run(back.clone()));
        let state = Arc::clone(&shared);
        fronts.spawn(listen::serve(listener, front.clone(), move |request| front::handle(Arc::clone(&state), request)));
        let admin = admin.map(|(listener, address)| {
            let state = Arc::clone(&shared);
            let answer = move |request| admin::handle(Arc::clone(&state), request);
            backs.spawn(listen::serve(listener, back.clone(), answer));
            address
        });
        Ok(Self { shared, address, admin, wanted, front, back, fronts, backs })
    }

    /// Where clients connect.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where the platform connects.
    #[must_use]
    pub const fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Whether it would serve a tool now: a snapshot is enforced and the catalogue may be served from.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.enforced.load().as_ref().is_some_and(|enforced| enforced.catalogue().is_ok())
    }

    /// Has the server's list read again.
    pub fn refresh(&self) {
        self.wanted.notify_one();
    }

    /// Stops accepting, lets requests in flight end, and ends every conversation and process. Nothing is left running.
    pub async fn shutdown(mut self) {
        self.front.cancel();
        while self.fronts.join_next().await.is_some() {}
        self.back.cancel();
        while self.backs.join_next().await.is_some() {}
        self.shared.audit.settle().await;
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.front.cancel();
        self.back.cancel();
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// A runtime whose threads are fit for evaluating policy.
///
/// # Errors
/// The system gives no threads.
pub fn runtime(workers: usize) -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers.max(1))
        .thread_stack_size(STACK)
        .enable_all()
        .build()
}
