//! Reports, after each change; the keeper makes one every 30 s whether anything changed or not. Charges, a moment after each.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cotter_core::report::Report;
use http::Method;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::{ControlError, Pauses, client::Client};
use crate::{contact::Contact, ledger::Ledger};

/// How long the operator may take to accept one.
const ANSWER: Duration = Duration::from_secs(15);

/// Reports of one burst of changes become one.
const BURST: Duration = Duration::from_millis(50);

/// Charges of so long become one message: other sidecars learn of a call at most this and two ways later.
const GATHER: Duration = Duration::from_millis(100);

/// Sends reports.
pub(super) struct Up {
    pub(super) client: Arc<Client>,
    pub(super) reports: watch::Receiver<Option<Arc<Report>>>,
    pub(super) contact: Contact,
    pub(super) opened: Arc<Notify>,
}

impl Up {
    /// Sends the newest report whenever there is one, and again when a stream opened, until it was accepted.
    pub(super) async fn run(mut self) {
        let mut pauses = Pauses::default();
        loop {
            tokio::select! {
                () = self.opened.notified() => {}
                Ok(()) = self.reports.changed() => {}
                else => return,
            }
            while let Err(error) = self.send().await {
                tracing::debug!(%error, "failed to report");
                pauses.pause().await;
            }
            pauses.reset();
            tokio::time::sleep(BURST).await;
        }
    }

    async fn send(&mut self) -> Result<(), ControlError> {
        let Some(report) = self.reports.borrow_and_update().clone() else { return Ok(()) };
        let body = serde_json::to_vec(&*report).map_err(|error| ControlError::Line(error.to_string()))?;
        let sent = timeout(ANSWER, self.client.send(Method::POST, "reports", Bytes::from(body)));
        sent.await.map_err(|_| ControlError::Silent)??;
        self.contact.heard();
        Ok(())
    }
}

/// Sends what was charged to budgets.
pub(super) struct Spent {
    pub(super) client: Arc<Client>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) contact: Contact,
    pub(super) opened: Arc<Notify>,
}

impl Spent {
    /// Sends the counts of this run whenever they moved, and when a stream opened, until they were accepted.
    pub(super) async fn run(self) {
        let mut pauses = Pauses::default();
        loop {
            tokio::select! {
                () = self.opened.notified() => {}
                () = self.ledger.moved() => {}
            }
            while let Err(error) = self.send().await {
                tracing::debug!(%error, "failed to tell what was charged");
                tokio::select! {
                    () = self.opened.notified() => {}
                    () = pauses.pause() => {}
                }
            }
            pauses.reset();
            tokio::time::sleep(GATHER).await;
        }
    }

    async fn send(&self) -> Result<(), ControlError> {
        let charges = self.ledger.charges();
        if charges.made == 0 {
            return Ok(());
        }
        let body = serde_json::to_vec(&charges).map_err(|error| ControlError::Line(error.to_string()))?;
        let sent = timeout(ANSWER, self.client.send(Method::POST, "charges", Bytes::from(body)));
        sent.await.map_err(|_| ControlError::Silent)??;
        self.contact.heard();
        self.ledger.accepted(charges.made);
        Ok(())
    }
}
