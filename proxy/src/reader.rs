//! The catalogue reader: the sidecar's own eyes on the server's tool list, independent of what any caller asks.
//!
//! It has a conversation of its own, walks all pages at start, when the server announces a change, when a session had to be
//! opened anew, at the interval (or sooner, where the server says that its list is short-lived) and on request. What it saw
//! last is in a channel that keeps the last value; comparing it with what was approved is not its business.

mod pace;
mod walk;

use std::sync::Arc;
use std::time::Duration;

use cotter_core::catalogue::Observed;
use cotter_core::report::Surface;
use cotter_core::tool::ToolObject;
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::pace::Pace;
pub use self::walk::ReadError;
use self::walk::{Memo, Times, Unfinished};
use crate::upstream::{Conversation, Upstream};

/// What one reading brought.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The whole list, or why there is none. The same list read again is the same allocation.
    pub observed: Result<Arc<Observed>, Arc<ReadError>>,
    /// What was seen of a list that could not be read whole: a change in it counts, an absence from it does not. Empty where the
    /// list was read whole.
    pub partial: Arc<[ToolObject]>,
    /// What the server says of itself, as of the last conversation with it.
    pub surface: Option<Arc<Surface>>,
    /// Its instructions, exact text.
    pub instructions: Option<Arc<str>>,
    /// When the reading ended.
    pub at: Timestamp,
}

/// The reader of one upstream. Dropped, it stops.
#[derive(Debug)]
pub struct Reader {
    observations: watch::Receiver<Option<Observation>>,
    interval: watch::Sender<Duration>,
    wanted: Arc<Notify>,
    end: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Reader {
    /// Starts to read, now and then at the interval.
    #[must_use]
    pub fn start(upstream: Upstream, interval: Duration) -> Self {
        let (observe, observations) = watch::channel(None);
        let (set, interval) = watch::channel(interval);
        let (wanted, end) = (Arc::new(Notify::new()), CancellationToken::new());
        let task = Task {
            changes: upstream.changes(),
            upstream,
            observe,
            interval,
            wanted: Arc::clone(&wanted),
            conversation: None,
            last: (None, None),
            memo: Memo::default(),
            pace: Pace::default(),
        };
        let ended = end.clone();
        let task = tokio::spawn(async move { task.run(ended).await });
        Self { observations, interval: set, wanted, end, task: Some(task) }
    }

    /// What was read last; `None` until the first reading ended.
    #[must_use]
    pub fn observations(&self) -> watch::Receiver<Option<Observation>> {
        self.observations.clone()
    }

    /// Reads again soon, for instance after a result that did not fit its schema.
    pub fn refresh(&self) {
        self.wanted.notify_one();
    }

    /// Changes the interval, from now on.
    pub fn set_interval(&self, interval: Duration) {
        self.interval.send_if_modified(|now| std::mem::replace(now, interval) != interval);
    }

    /// Stops, and waits until the reader's own conversation is ended.
    pub async fn stop(mut self) {
        self.end.cancel();
        if let Some(task) = self.task.take() {
            // A reader that panicked has stopped as well.
            let _ = task.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

struct Task {
    upstream: Upstream,
    changes: watch::Receiver<u64>,
    observe: watch::Sender<Option<Observation>>,
    interval: watch::Receiver<Duration>,
    wanted: Arc<Notify>,
    conversation: Option<Conversation>,
    last: (Option<Arc<Surface>>, Option<Arc<str>>),
    memo: Memo,
    pace: Pace,
}

impl Task {
    async fn run(mut self, end: CancellationToken) {
        while !end.is_cancelled() {
            tokio::select! {
                () = self.round() => {}
                () = end.cancelled() => break,
            }
        }
        if let Some(conversation) = self.conversation.take() {
            conversation.close().await;
        }
    }

    /// One reading, and the wait for the next reason to read.
    async fn round(&mut self) {
        // What is announced from here on may or may not be in this reading, and is a reason for another one.
        self.changes.borrow_and_update();
        self.interval.borrow_and_update();
        let began = Instant::now();
        let outcome = self.read().await;
        let interval = *self.interval.borrow();
        let next = match &outcome {
            Ok((_, ttl)) => self.pace.after_success(began, interval, *ttl),
            Err(_) => {
                // A server that hangs, or became another one, is best met anew.
                self.conversation = None;
                self.pace.after_failure(began, interval)
            }
        };
        self.publish(outcome.map(|(observed, _)| observed));
        self.wait(next).await;
        sleep_until(self.pace.earliest(began)).await;
    }

    async fn read(&mut self) -> Result<(Arc<Observed>, Option<Duration>), Unfinished> {
        let outdated = self.upstream.take_outdated();
        let usable = |conversation: &Conversation| !outdated && conversation.is_alive();
        let conversation = match self.conversation.take().filter(usable) {
            Some(conversation) => conversation,
            None => self.open().await?,
        };
        let conversation = self.conversation.insert(conversation);
        let outcome = walk::walk(conversation, &mut self.memo, Times::default()).await;
        self.last = (Some(conversation.surface()), conversation.instructions());
        if let Some(page) = self.memo.first_page() {
            self.upstream.saw(page);
        }
        outcome
    }

    async fn open(&mut self) -> Result<Conversation, Unfinished> {
        let opened = self.upstream.open().await;
        let conversation = opened.map_err(|error| Unfinished::of(ReadError::Open(error)))?;
        conversation.follow();
        self.pace.opened(Instant::now());
        Ok(conversation)
    }

    fn publish(&mut self, outcome: Result<Arc<Observed>, Unfinished>) {
        let (observed, partial) = match outcome {
            Ok(observed) => (Ok(observed), Arc::default()),
            Err(unfinished) => {
                tracing::warn!(error = %unfinished.error, "the tool list could not be read");
                (Err(Arc::new(unfinished.error)), unfinished.partial.into())
            }
        };
        let (surface, instructions) = self.last.clone();
        let at = Timestamp::now();
        self.observe.send_replace(Some(Observation { observed, partial, surface, instructions, at }));
    }

    async fn wait(&mut self, next: Instant) {
        let ended = async {
            match &self.conversation {
                Some(conversation) => conversation.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep_until(next) => return,
            () = self.wanted.notified() => return,
            // The sender of each lives as long as this task.
            _ = self.changes.changed() => return,
            _ = self.interval.changed() => return,
            () = ended => {}
        }
        tracing::warn!("the conversation with the server ended");
        sleep_until(self.pace.after_end(Instant::now())).await;
    }
}

/// The whole list that one conversation shows.
///
/// # Errors
/// It cannot be read whole.
pub(crate) async fn whole_list(conversation: &Conversation) -> Result<Arc<Observed>, ReadError> {
    let read = walk::walk(conversation, &mut Memo::default(), Times::default()).await;
    read.map(|(observed, _)| observed).map_err(|unfinished| unfinished.error)
}

#[cfg(test)]
mod tests;
