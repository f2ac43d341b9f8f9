//! The sidecar's side of the snapshot stream: one long answer down, short reports up, both with the pod's own token.
//!
//! # Flow
//! `GET {operator}/v1/namespaces/{namespace}/servers/{name}/snapshots` answers with lines of JSON: `{"digest","snapshot"}` at once
//! and for each new snapshot, `{"budgets"}` before the first and whenever other sidecars charged something, `{}` now and then.
//! `POST …/reports` takes a report after each change, `POST …/charges` what was charged to budgets.
//!
//! # Guarantees
//! A line that is broken, or whose snapshot is not what its digest names, ends the connection and changes nothing. Without the
//! operator the last snapshot goes on; how long it was silent is in [`Contact`].

mod client;
mod down;
mod up;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use cotter_core::{
    budget::Share,
    name::ServerRef,
    report::Report,
    snapshot::{Digest, Sealed},
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{contact::Contact, ledger::Ledger, random};
use client::Client;

/// First and longest pause between attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Where the operator is and who asks.
#[derive(Debug)]
pub struct Operator {
    /// Its URL.
    pub url: String,
    /// The certificates that its chain ends in, as PEM.
    pub ca: String,
    /// The file with the pod's token; read for each request, since it is renewed.
    pub token_file: PathBuf,
    /// The server that is guarded.
    pub server: ServerRef,
}

/// Why the operator cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The configuration does not hold.
    #[error("failed to use the operator's {0}: {1}")]
    Config(&'static str, String),
    /// The token file cannot be read.
    #[error("failed to read the token file {path}: {source}")]
    Token {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The operator cannot be reached, or the connection broke.
    #[error("failed to reach the operator: {0}")]
    Reach(String),
    /// The operator did not answer in time, or fell silent.
    #[error("failed to hear the operator in time")]
    Silent,
    /// The operator refused.
    #[error("failed to be accepted by the operator: it answered {0}")]
    Refused(u16),
    /// The operator sent something else than a snapshot.
    #[error("failed to read a line of the operator: {0}")]
    Line(String),
}

/// Talks to the operator until the token ends it: snapshots go into one channel, reports come out of the other.
///
/// # Errors
/// The URL or the certificates cannot be used; everything else is tried again.
pub fn start(
    operator: Operator,
    snapshots: watch::Sender<Option<Sealed>>,
    reports: watch::Receiver<Option<Arc<Report>>>,
    ledger: Arc<Ledger>,
    contact: Contact,
    end: &CancellationToken,
) -> Result<JoinSet<()>, ControlError> {
    let namespace = operator.server.namespace.clone();
    let client = Arc::new(Client::new(operator, ledger.run())?);
    let opened = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    let [reporting, charging] = opened.clone();
    let mut tasks = JoinSet::new();
    let (down_client, down_contact) = (Arc::clone(&client), contact.clone());
    let heard = (namespace, Arc::clone(&ledger));
    let down = down::Down { client: down_client, snapshots, contact: down_contact, opened, heard };
    let up = up::Up { client: Arc::clone(&client), reports, contact: contact.clone(), opened: reporting };
    let spent = up::Spent { client, ledger, contact, opened: charging };
    let ends = [end.clone(), end.clone(), end.clone()];
    let [down_ends, up_ends, spent_ends] = ends;
    tasks.spawn(async move { down_ends.run_until_cancelled(down.run()).await.unwrap_or_default() });
    tasks.spawn(async move { up_ends.run_until_cancelled(up.run()).await.unwrap_or_default() });
    tasks.spawn(async move { spent_ends.run_until_cancelled(spent.run()).await.unwrap_or_default() });
    Ok(tasks)
}

/// Pauses that double, with a random part, so that a thousand sidecars do not come back at once.
#[derive(Debug, Default)]
struct Pauses(u32);

impl Pauses {
    fn reset(&mut self) {
        self.0 = 0;
    }

    async fn pause(&mut self) {
        let (first, longest) = PAUSES;
        let full = first.saturating_mul(1 << self.0.min(16)).min(longest);
        self.0 = self.0.saturating_add(1);
        tokio::time::sleep(full.mul_f64(0.5 + 0.5 * random::fraction())).await;
    }
}

/// What a line announces; a line without it keeps the connection alive.
#[derive(Debug, serde::Deserialize)]
struct Announced<'a> {
    #[serde(default)]
    digest: Option<Digest>,
    #[serde(borrow, default)]
    snapshot: Option<&'a serde_json::value::RawValue>,
    /// What was charged elsewhere to every budget in the snapshot that follows, or that is in force.
    #[serde(default)]
    budgets: Option<BTreeMap<String, Share>>,
}
