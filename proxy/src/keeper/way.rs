//! The way to the server with the reader of its list, and what is known of the list.

use std::{sync::Arc, time::Duration};

use cotter_core::{
    catalogue::Observed,
    report::{Knowledge, Surface},
    snapshot::Verify,
};
use jiff::Timestamp;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    conversation::Server,
    reader::{Observation, Reader},
    upstream::Upstream,
};

/// The way to the server.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) server: Server,
    pub(super) reader: Reader,
    observations: watch::Receiver<Option<Observation>>,
    grace: Duration,
    latest: Option<Observation>,
    whole: Option<Whole>,
}

/// The last whole list, and how long it serves.
#[derive(Debug)]
struct Whole {
    observed: Arc<Observed>,
    at: Timestamp,
    serves: Serves,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serves {
    /// Until the next reading.
    On,
    /// Until then, since the last reading failed.
    Until(Instant),
    /// No longer.
    No,
}

impl Way {
    /// A new way, on which nothing was read yet.
    pub(super) fn new(upstream: Upstream, generation: u64, verify: Verify) -> Self {
        let reader = Reader::start(upstream.clone(), Duration::from_millis(verify.interval_ms));
        let observations = reader.observations();
        let grace = Duration::from_millis(verify.grace_ms);
        Self { server: Server { upstream, generation }, reader, observations, grace, latest: None, whole: None }
    }

    /// Goes on under another snapshot's rules of reading.
    pub(super) fn adapt(&mut self, verify: Verify) {
        self.reader.set_interval(Duration::from_millis(verify.interval_ms));
        self.grace = Duration::from_millis(verify.grace_ms);
    }

    /// Waits until there is something new: a reading, or the end of the grace.
    pub(super) async fn news(&mut self) {
        let grace = self.whole.as_ref().map(|whole| whole.serves);
        let end = async {
            match grace {
                Some(Serves::Until(end)) => sleep_until(end).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok(()) = self.observations.changed() => {}
            () = end => if let Some(whole) = &mut self.whole {
                whole.serves = Serves::No;
            },
            else => std::future::pending().await,
        }
        let latest = self.observations.borrow_and_update().clone();
        if let Some(latest) = latest {
            self.take(latest);
        }
    }

    fn take(&mut self, latest: Observation) {
        match (&latest.observed, &mut self.whole) {
            (Ok(observed), whole) => {
                *whole = Some(Whole { observed: Arc::clone(observed), at: latest.at, serves: Serves::On });
            }
            (Err(_), Some(whole)) if whole.serves == Serves::On => {
                whole.serves = Serves::Until(Instant::now() + self.grace);
            }
            (Err(_), _) => {}
        }
        self.latest = Some(latest);
    }

    /// The list that is held against the snapshot: the last whole one, with what a later partial one already showed.
    pub(super) fn observed(&self) -> Option<Arc<Observed>> {
        let whole = self.whole.as_ref()?;
        match &self.latest {
            Some(latest) if !latest.partial.is_empty() => Some(Arc::new(whole.observed.overlaid(&latest.partial))),
            _ => Some(Arc::clone(&whole.observed)),
        }
    }

    /// How well the list is known.
    pub(super) fn knowledge(&self) -> Knowledge {
        let why = match self.latest.as_ref().map(|latest| &latest.observed) {
            Some(Err(error)) => error.to_string(),
            _ => "the server's tool list was not read yet".to_owned(),
        };
        match self.whole.as_ref().map(|whole| whole.serves) {
            None => Knowledge::NeverRead { why },
            Some(Serves::On) => Knowledge::Verified,
            Some(Serves::Until(_)) => Knowledge::Grace { why },
            Some(Serves::No) => Knowledge::Expired { why },
        }
    }

    /// When the list was last read whole.
    pub(super) fn verified_at(&self) -> Option<Timestamp> {
        self.whole.as_ref().map(|whole| whole.at)
    }

    /// What the server says of itself.
    pub(super) fn surface(&self) -> Option<Arc<Surface>> {
        self.latest.as_ref()?.surface.clone()
    }

    /// The server's instructions.
    pub(super) fn instructions(&self) -> Option<Arc<str>> {
        self.latest.as_ref()?.instructions.clone()
    }

    /// Ends the reader, its conversation and every process.
    pub(super) async fn retire(self) {
        self.reader.stop().await;
        self.server.upstream.shutdown().await;
    }
}
