//! One record for each decision. Writing never holds up a request for long: a sink that does not keep up loses records, and the
//! loss is counted.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cotter_core::{audit::Record, decision::Reason, principal::Principal, snapshot::Digest};
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::{random, respond::Refusal, state::Shared, upstream::text::printable};

/// Records that wait for the sink: a second of full load.
const WAITING: usize = 16_384;

/// Characters of a caller's own text that are repeated in a record.
const SHOWN: usize = 128;

/// How long a request waits for a sink that is full.
const PATIENCE: Duration = Duration::from_millis(50);

/// Where records go.
#[derive(Debug)]
pub enum Sink {
    /// Lines of JSON on standard output.
    Stdout,
    /// To somebody in this process.
    Channel(mpsc::Sender<Arc<Record>>),
}

/// The way to the sink.
#[derive(Debug)]
pub struct Audit {
    to: mpsc::Sender<Arc<Record>>,
    lost: AtomicU64,
}

impl Audit {
    /// Opens a sink. Records are written until the last handle is gone.
    #[must_use]
    pub fn open(sink: Sink) -> Self {
        let to = match sink {
            Sink::Channel(to) => to,
            Sink::Stdout => {
                let (to, from) = mpsc::channel(WAITING);
                // A thread of its own: standard output may block, and blocks nobody else then.
                std::thread::Builder::new().name("audit".to_owned()).spawn(move || write_lines(from)).map_or_else(
                    |error| tracing::error!(%error, "failed to start the audit writer; records are lost"),
                    drop,
                );
                to
            }
        };
        Self { to, lost: AtomicU64::new(0) }
    }

    /// Records that were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    async fn record(&self, record: Record) {
        let record = Arc::new(record);
        let full = match self.to.try_send(record) {
            Ok(()) => return,
            Err(mpsc::error::TrySendError::Full(record)) => record,
            Err(mpsc::error::TrySendError::Closed(_)) => return self.lose(),
        };
        if self.to.send_timeout(full, PATIENCE).await.is_err() {
            self.lose();
        }
    }

    fn record_now(&self, record: Record) {
        if self.to.try_send(Arc::new(record)).is_err() {
            self.lose();
        }
    }

    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

fn write_lines(mut from: mpsc::Receiver<Arc<Record>>) {
    let mut out = std::io::BufWriter::with_capacity(64 * 1024, std::io::stdout());
    while let Some(record) = from.blocking_recv() {
        let mut next = Some(record);
        while let Some(record) = next {
            if serde_json::to_writer(&mut out, &*record).is_err() || out.write_all(b"\n").is_err() {
                return;
            }
            next = from.try_recv().ok();
        }
        if out.flush().is_err() {
            return;
        }
    }
}

/// What is learned of one request on its way, for its record. A request that is given up on the way is recorded too.
#[derive(Debug)]
pub struct Trail {
    shared: Arc<Shared>,
    /// The opaque id of the decision.
    pub id: String,
    /// When the request began.
    pub started: Instant,
    /// The time that everything about it is decided at.
    pub now: Timestamp,
    /// Who asks.
    pub principal: Option<Arc<Principal>>,
    /// The method, bounded and printable.
    pub method: Option<String>,
    /// The tool, bounded and printable.
    pub tool: Option<String>,
    /// Why it is refused; empty where it is not.
    pub reasons: Vec<Reason>,
    /// The delegation that permitted it.
    pub delegation: Option<Arc<str>>,
    /// The snapshot that decided.
    pub snapshot: Option<Digest>,
    /// The definition that was verified.
    pub fingerprint: Option<String>,
    open: bool,
}

impl Trail {
    /// The trail of a request that begins now.
    #[must_use]
    pub fn begin(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            id: random::id(),
            started: Instant::now(),
            now: Timestamp::now(),
            principal: None,
            method: None,
            tool: None,
            reasons: Vec::new(),
            delegation: None,
            snapshot: None,
            fingerprint: None,
            open: true,
        }
    }

    /// Notes what is asked for.
    pub fn asks(&mut self, method: &str) {
        self.method = Some(printable(method, SHOWN));
    }

    /// Notes which tool is asked for.
    pub fn names(&mut self, tool: &str) {
        self.tool = Some(printable(tool, SHOWN));
    }

    /// Notes why it is refused.
    pub fn refuses(&mut self, refusal: &Refusal) {
        self.reasons.clone_from(&refusal.reasons);
        if self.reasons.is_empty() {
            self.reasons.push(Reason { code: refusal.reason, detail: None });
        }
    }

    /// The request was no decision: nothing is recorded.
    pub fn forget(&mut self) {
        self.open = false;
    }

    /// Records the decision.
    pub async fn end(&mut self, status: u16) {
        if std::mem::take(&mut self.open) {
            self.count();
            let record = self.record(status);
            self.shared.audit.record(record).await;
        }
    }

    fn count(&self) {
        let refused = self.reasons.first().map(|reason| reason.code);
        self.shared.metrics.decided(self.method.as_deref(), refused, self.started.elapsed());
    }

    fn record(&mut self, status: u16) -> Record {
        Record {
            id: self.id.clone(),
            time: self.now,
            server: self.shared.server.clone(),
            principal: self.principal.take(),
            method: self.method.take(),
            tool: self.tool.take(),
            allow: self.reasons.is_empty(),
            reasons: std::mem::take(&mut self.reasons),
            delegation: self.delegation.take().map(|name| name.to_string()),
            snapshot: self.snapshot,
            fingerprint: self.fingerprint.take(),
            status,
            micros: u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
        }
    }
}

impl Drop for Trail {
    /// The client went away: what was decided up to there is recorded, with the status that nginx made known for it.
    fn drop(&mut self) {
        if self.open {
            self.count();
            let record = self.record(499);
            self.shared.audit.record_now(record);
        }
    }
}
