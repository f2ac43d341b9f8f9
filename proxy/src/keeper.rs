//! Keeps what is enforced in step with the snapshots that arrive and the lists that are read: one task that alone swaps
//! [`Enforced`], so that every swap is whole, and that reports after each one.

mod current;
mod report;
mod saved;
mod way;

use std::{path::PathBuf, sync::Arc, time::Duration};

use cotter_core::{
    report::{Definitions, Rejected, Report},
    snapshot::Sealed,
};
use tokio::{sync::watch, task::JoinSet, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::state::{Enforced, Shared};
use current::{Current, Prepared};

pub use saved::{load, newer};

/// How often idle sessions are looked for, and how often a report goes out although nothing changed.
const TICK: Duration = Duration::from_secs(30);

/// What the keeper works with.
#[derive(Debug)]
pub struct Keeper {
    /// What it keeps.
    pub shared: Arc<Shared>,
    /// The sidecar's name in reports.
    pub name: String,
    /// Where snapshots come from.
    pub snapshots: watch::Receiver<Option<Sealed>>,
    /// Where reports go.
    pub reports: watch::Sender<Option<Arc<Report>>>,
    /// Where the last good snapshot is kept.
    pub state_dir: Option<PathBuf>,
    /// Where a child process works.
    pub work_dir: Option<PathBuf>,
    /// Asks for another reading of the list.
    pub wanted: Arc<tokio::sync::Notify>,
    /// A snapshot that came into force and is not on disk yet.
    pub unsaved: Option<Sealed>,
}

impl Keeper {
    /// Keeps until the token ends it; then ends every conversation and process and returns.
    pub async fn run(mut self, end: CancellationToken) {
        let (mut current, mut rejected) = (None, None);
        let mut retired = JoinSet::new();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.snapshots.mark_changed();
        loop {
            tokio::select! {
                () = end.cancelled() => break,
                Ok(()) = self.snapshots.changed() => rejected = self.take(&mut current, &mut retired).await,
                () = observed(&mut current) => {}
                () = self.wanted.notified() => if let Some(current) = &current { current.way.reader.refresh() },
                _ = tick.tick() => {
                    self.shared.sessions.sweep();
                    self.shared.conversations.sweep();
                }
                Some(_) = retired.join_next() => continue,
            }
            self.publish(current.as_mut(), rejected.as_ref()).await;
            self.save().await;
        }
        self.shared.sessions.clear();
        self.shared.conversations.clear();
        self.shared.ledger.leave(&self.shared.server);
        if let Some(current) = current.take() {
            current.way.retire().await;
        }
        while retired.join_next().await.is_some() {}
    }

    /// Takes a new snapshot, or keeps the one before and says why.
    async fn take(&mut self, current: &mut Option<Current>, retired: &mut JoinSet<()>) -> Option<Rejected> {
        let sealed = self.snapshots.borrow_and_update().clone()?;
        let digest = sealed.digest();
        if current.as_ref().is_some_and(|current| current.sealed.digest() == digest) {
            return None;
        }
        match Prepared::new(sealed, &self.shared.server, current.as_ref(), self.work_dir.clone()).await {
            Ok(prepared) => {
                let (next, left) = prepared.enter(current.take());
                if let Some(left) = left {
                    retired.spawn(left.retire());
                }
                self.shared.ledger.keep(&self.shared.server, &next.budgets);
                self.unsaved = Some(next.sealed.clone());
                *current = Some(next);
                None
            }
            Err(why) => {
                tracing::warn!(snapshot = %digest, %why, "failed to enforce a snapshot; the one before stays");
                Some(Rejected { digest, why })
            }
        }
    }

    /// Keeps a snapshot that came into force. Only afterwards: a slow disk does not hold up a revocation.
    async fn save(&mut self) {
        let Some(sealed) = self.unsaved.take() else { return };
        tracing::info!(snapshot = %sealed.digest(), "enforcing a new snapshot");
        let Some(dir) = &self.state_dir else { return };
        if let Err(error) = saved::save(dir, &sealed).await {
            tracing::warn!(%error, "failed to keep the snapshot for the next start");
        }
    }

    async fn publish(&self, current: Option<&mut Current>, rejected: Option<&Rejected>) {
        let enforced = match current {
            Some(current) => Some(current.enforced().await),
            None => None,
        };
        if let Some(enforced) = &enforced {
            self.shared.enforced.store(Some(Arc::clone(&enforced.0)));
        }
        let (enforced, definitions) = enforced.unzip();
        let report =
            report::make(&self.shared, &self.name, enforced.as_deref(), definitions.as_deref(), rejected.cloned());
        self.reports.send_replace(Some(Arc::new(report)));
    }
}

/// Waits until the reader has something new, or until what was read last may no longer be served.
async fn observed(current: &mut Option<Current>) {
    match current {
        Some(current) => current.way.news().await,
        None => std::future::pending().await,
    }
}

/// What is enforced, and the definitions as observed.
type Kept = (Arc<Enforced>, Arc<Definitions>);
