//! One record for each decision. Writing never holds up a request for long: a sink that does not keep up loses records, and the
//! loss is counted, in `cotter_audit_records_lost` and in the log.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cotter_core::{audit::Record, decision::Reason, principal::Principal, snapshot::Digest};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use crate::{random, respond::Refusal, state::Shared, upstream::text::printable};

/// Records that wait for the sink: a second of full load.
const WAITING: usize = 16_384;

/// Characters of a caller's own text that are repeated in a record.
const SHOWN: usize = 128;

/// How long a request waits for a sink that is full.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long the writer gathers records after it wrote some. Waking a thread for each record, and writing each by itself, costs
/// more than deciding: a third of all CPU under load. The first record after a pause is written at once.
const GATHER: Duration = Duration::from_millis(5);

/// Seconds between two log lines on lost records.
const TELL: u64 = 10;

/// How long the end waits for the last records.
const LAST: Duration = Duration::from_secs(1);

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
    taken: AtomicU64,
    lost: Losses,
    /// How many the writer has written; absent where somebody else does.
    written: Option<watch::Receiver<u64>>,
}

/// Records that nobody took.
#[derive(Debug)]
struct Losses {
    began: Instant,
    count: AtomicU64,
    /// When it was last said, in seconds since the beginning, from 1; 0 for never.
    told: AtomicU64,
}

impl Losses {
    fn new() -> Self {
        Self { began: Instant::now(), count: AtomicU64::new(0), told: AtomicU64::new(0) }
    }

    fn add(&self) {
        let lost = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_due(1 + self.began.elapsed().as_secs()) {
            tracing::warn!(lost, "audit records were lost: whoever reads them does not keep up");
        }
    }

    /// Whether it is time to say so again; true for one caller.
    fn is_due(&self, now: u64) -> bool {
        let told = self.told.load(Ordering::Relaxed);
        let is_due = told == 0 || now >= told + TELL;
        is_due && self.told.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Audit {
    /// Opens a sink. Records are written until the last handle is gone.
    #[must_use]
    pub fn open(sink: Sink) -> Self {
        let (to, written) = match sink {
            Sink::Channel(to) => (to, None),
            Sink::Stdout => {
                let (to, from) = mpsc::channel(WAITING);
                let (count, written) = watch::channel(0);
                // A thread of its own: standard output may block, and blocks nobody else then.
                let write = move || write_lines(from, &count, std::io::stdout());
                std::thread::Builder::new().name("audit".to_owned()).spawn(write).map_or_else(
                    |error| tracing::error!(%error, "failed to start the audit writer; records are lost"),
                    drop,
                );
                (to, Some(written))
            }
        };
        Self { to, taken: AtomicU64::new(0), lost: Losses::new(), written }
    }

    /// Waits until every record so far is written, or a second is over, or there is nobody who writes.
    pub async fn settle(&self) {
        let Some(mut written) = self.written.clone() else { return };
        let taken = self.taken.load(Ordering::Relaxed);
        let _ = tokio::time::timeout(LAST, written.wait_for(|written| *written >= taken)).await;
    }

    /// Records that were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.count.load(Ordering::Relaxed)
    }

    async fn record(&self, record: Record) {
        let record = Arc::new(record);
        let full = match self.to.try_send(record) {
            Ok(()) => return self.take(true),
            Err(mpsc::error::TrySendError::Full(record)) => record,
            Err(mpsc::error::TrySendError::Closed(_)) => return self.take(false),
        };
        self.take(self.to.send_timeout(full, PATIENCE).await.is_ok());
    }

    fn record_now(&self, record: Record) {
        self.take(self.to.try_send(Arc::new(record)).is_ok());
    }

    fn take(&self, taken: bool) {
        if taken {
            self.taken.fetch_add(1, Ordering::Relaxed);
        } else {
            self.lost.add();
        }
    }
}

fn write_lines(mut from: mpsc::Receiver<Arc<Record>>, count: &watch::Sender<u64>, out: impl io::Write) {
    let mut out = io::BufWriter::with_capacity(64 * 1024, out);
    while let Some(record) = from.blocking_recv() {
        let (mut next, mut written) = (Some(record), 0);
        while let Some(record) = next {
            if serde_json::to_writer(&mut out, &*record).is_err() || out.write_all(b"\n").is_err() {
                return;
            }
            written += 1;
            next = from.try_recv().ok();
        }
        if out.flush().is_err() {
            return;
        }
        count.send_modify(|count| *count += written);
        std::thread::sleep(GATHER);
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
            let took = self.count();
            let record = self.record(status, took);
            self.shared.audit.record(record).await;
        }
    }

    /// Counts the decision, and says how long it took.
    fn count(&self) -> Duration {
        let (refused, took) = (self.reasons.first().map(|reason| reason.code), self.started.elapsed());
        self.shared.metrics.decided(self.method.as_deref(), refused, took);
        took
    }

    fn record(&mut self, status: u16, took: Duration) -> Record {
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
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

impl Drop for Trail {
    /// The client went away: what was decided up to there is recorded, with the status that nginx made known for it.
    fn drop(&mut self) {
        if self.open {
            let took = self.count();
            let record = self.record(499, took);
            self.shared.audit.record_now(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: usize) -> Record {
        Record {
            id: id.to_string(),
            time: Timestamp::UNIX_EPOCH,
            server: serde_json::from_str(r#"{"namespace":"n","name":"s"}"#).unwrap(),
            principal: None,
            method: None,
            tool: None,
            allow: true,
            reasons: Vec::new(),
            delegation: None,
            snapshot: None,
            fingerprint: None,
            status: 200,
            micros: 1,
        }
    }

    /// A writer's output that a test can look at.
    #[derive(Clone, Default)]
    struct Page(Arc<std::sync::Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn the_end_waits_until_every_record_is_written() {
        let (to, from) = mpsc::channel(WAITING);
        let (count, written) = watch::channel(0);
        let page = Page::default();
        let out = page.clone();
        let writer = std::thread::spawn(move || write_lines(from, &count, out));
        let audit = Audit { to, taken: AtomicU64::new(0), lost: Losses::new(), written: Some(written) };
        for id in 0..1000 {
            audit.record(record(id)).await;
            if id % 100 == 0 {
                tokio::time::sleep(GATHER).await;
            }
        }
        audit.settle().await;
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        let ids: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(ids.iter().enumerate().all(|(place, record)| record.id == place.to_string()), "in order and whole");
        assert_eq!((ids.len(), audit.lost()), (1000, 0));
        drop(audit);
        writer.join().unwrap();
    }

    #[test]
    fn a_loss_is_told_at_once_and_then_not_more_than_every_ten_seconds() {
        let losses = Losses::new();
        let told: Vec<u64> = (1..=35).flat_map(|second| [second; 3]).filter(|second| losses.is_due(*second)).collect();
        assert_eq!(told, [1, 11, 21, 31]);
    }

    #[tokio::test]
    async fn a_record_that_nobody_writes_is_lost_and_the_end_does_not_wait_for_it() {
        let (to, from) = mpsc::channel(1);
        drop(from);
        let (count, written) = watch::channel(0);
        drop(count);
        let audit = Audit { to, taken: AtomicU64::new(0), lost: Losses::new(), written: Some(written) };
        audit.record(record(1)).await;
        let began = Instant::now();
        audit.settle().await;
        assert!(audit.lost() == 1 && began.elapsed() < LAST);
    }
}
