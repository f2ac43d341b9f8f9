//! The lines of one stream: snapshots, what was charged elsewhere, and something now and then.

use std::{sync::Arc, time::Duration};

use axum::body::Bytes;
use futures::stream;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{Desk, KEEP_ALIVE};
use crate::{fleet::Connection, key::ServerKey, publish::Feed};

/// What is charged in so long becomes one line.
const GATHER: Duration = Duration::from_millis(50);

/// The lines of one stream. They end when the server is gone or the operator stops; the connection is held until then.
pub(super) struct Lines {
    desk: Arc<Desk>,
    server: ServerKey,
    run: Option<String>,
    feed: Feed,
    charged: watch::Receiver<()>,
    stopping: watch::Receiver<bool>,
    /// What was said last of budgets.
    said: Option<Bytes>,
    /// A snapshot that goes out next.
    next: Option<Bytes>,
    _connection: Connection,
}

impl Lines {
    pub(super) fn new(desk: &Arc<Desk>, server: ServerKey, run: Option<String>, connection: Connection) -> Self {
        let mut feed = desk.publisher.subscribe(&server);
        // The first look at the feed counts as a change, so that a snapshot that is already there goes out at once.
        feed.mark_changed();
        let (charged, stopping) = (desk.spending.follow(&server.namespace), desk.stopping.clone());
        let desk = Arc::clone(desk);
        Self { desk, server, run, feed, charged, stopping, said: None, next: None, _connection: connection }
    }

    pub(super) fn stream(self) -> impl futures::Stream<Item = Result<Bytes, std::convert::Infallible>> {
        stream::unfold(self, |mut lines| async move { lines.line().await.map(|line| (Ok(line), lines)) })
    }

    async fn line(&mut self) -> Option<Bytes> {
        if let Some(snapshot) = self.next.take() {
            return Some(snapshot);
        }
        let quiet = Instant::now() + KEEP_ALIVE;
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => return None,
                changed = self.feed.changed() => {
                    changed.ok()?;
                    return Some(self.snapshot());
                }
                () = sleep_until(quiet) => return Some(nothing()),
                Ok(()) = self.charged.changed() => {
                    sleep(GATHER).await;
                    self.charged.mark_unchanged();
                    if let Some(news) = self.news() {
                        return Some(news);
                    }
                }
            }
        }
    }

    /// The newest snapshot, after what was charged to its budgets.
    fn snapshot(&mut self) -> Bytes {
        let snapshot = self.feed.borrow_and_update().as_ref().map(|frame| frame.line.clone());
        match self.news() {
            Some(news) => {
                self.next = snapshot;
                news
            }
            None => snapshot.unwrap_or_else(nothing),
        }
    }

    /// What is to be said of budgets, where it is something else than what was said.
    fn news(&mut self) -> Option<Bytes> {
        let line = self.desk.spending.line(&self.server, self.run.as_deref());
        let is_news = line != self.said;
        self.said.clone_from(&line);
        line.filter(|_| is_news)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some(run) = &self.run {
            self.desk.spending.disconnect(&self.server, run);
        }
    }
}

/// The operator stops, or is gone.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    drop(stopping.wait_for(|stop| *stop).await);
}

const fn nothing() -> Bytes {
    Bytes::from_static(b"{}\n")
}
