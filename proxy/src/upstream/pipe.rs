//! A conversation over newline-delimited JSON: a child's stdin and stdout, or a connection to the shim.
//!
//! Requests of many callers are in flight at once and are told apart by ids of the sidecar's own. The writer is a task of its
//! own, so that a caller who goes away cannot leave half a line behind.

mod lines;
mod pending;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::lines::{LineError, Lines};
use self::pending::Pending;
use super::Answer;
use super::error::{CallError, Fault};
use super::message::{self, Incoming};

/// Longest line that is read: a whole tool list of the largest size that the reader takes, with its envelope.
const MAX_LINE: usize = super::MAX_LIST + 64 * 1024;
/// Lines that wait to be written. Beyond it callers wait, and their deadlines count.
const QUEUE: usize = 64;
/// Lines that are no message, until the server is given up. Some servers print a banner, or log to stdout now and then.
const MAX_NOISE: u32 = 1000;

/// How a pipe ended, told by whoever knows: the supervisor of a process. `None` until then.
pub(super) type Ending = watch::Receiver<Option<String>>;

/// One connected peer.
#[derive(Debug)]
pub(super) struct Pipe {
    out: mpsc::Sender<Vec<u8>>,
    pending: Arc<Pending>,
    next: AtomicU64,
    end: CancellationToken,
    ending: Ending,
}

impl Pipe {
    /// Starts to read and write. Ends when `end` is cancelled, and cancels it when the peer ends.
    pub(super) fn start(
        from: impl AsyncRead + Send + Unpin + 'static,
        to: impl AsyncWrite + Send + Unpin + 'static,
        end: CancellationToken,
        ending: Ending,
        changes: watch::Sender<u64>,
    ) -> Self {
        let (out, queue) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending::default());
        tokio::spawn(write(to, queue, end.clone()));
        let reader = Reader { pending: Arc::clone(&pending), replies: out.downgrade(), changes, noise: 0 };
        tokio::spawn(reader.run(Lines::new(from, MAX_LINE), end.clone(), ending.clone()));
        Self { out, pending, next: AtomicU64::new(1), end, ending }
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.end.is_cancelled() && self.pending.is_open()
    }

    /// Returns when the peer ended.
    pub(super) async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// One request and its answer.
    ///
    /// # Errors
    /// The peer ended or ends meanwhile, answers out of protocol, or not before the deadline; then it is told that nobody
    /// waits any more.
    pub(super) async fn exchange(
        &self,
        build: impl FnOnce(u64) -> Vec<u8>,
        deadline: Duration,
    ) -> Result<Answer, CallError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let waiting = self.pending.expect(id)?;
        let request = line(build(id));
        let mut dispatched = false;
        let outcome = timeout(deadline, async {
            self.out.send(request).await.map_err(|_| self.pending.why(false))?;
            dispatched = true;
            waiting.outcome().await
        });
        match outcome.await {
            Ok(outcome) => outcome,
            Err(_) => {
                if dispatched {
                    // Without room in the queue nobody reads anyway.
                    let _ = self.out.try_send(line(message::cancelled(id)));
                }
                Err(CallError::Timeout { dispatched })
            }
        }
    }

    /// Sends something that has no answer.
    pub(super) async fn tell(&self, message: Vec<u8>) -> Result<(), CallError> {
        self.out.send(line(message)).await.map_err(|_| self.pending.why(false))
    }

    /// Subscribes to announcements of a modern server. Its answer is the end of the subscription, which nobody waits for.
    pub(super) fn follow(&self) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let _ = self.out.try_send(line(message::listen(id)));
    }

    /// Ends the peer and waits until it is gone.
    pub(super) async fn close(&self) {
        self.end.cancel();
        let mut ending = self.ending.clone();
        // An error means that whoever would tell is gone, and so is the peer.
        let _ = ending.wait_for(Option::is_some).await;
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// A message as one line. JSON text may hold line ends between its tokens, and nowhere else: there they become spaces.
fn line(mut message: Vec<u8>) -> Vec<u8> {
    let mut from = 0;
    while let Some(at) = message.get(from..).and_then(|rest| memchr::memchr2(b'\r', b'\n', rest)) {
        from += at;
        if let Some(byte) = message.get_mut(from) {
            *byte = b' ';
        }
    }
    message.push(b'\n');
    message
}

async fn write(mut to: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Vec<u8>>, end: CancellationToken) {
    let copy = async {
        while let Some(line) = queue.recv().await {
            to.write_all(&line).await?;
            if queue.is_empty() {
                to.flush().await?;
            }
        }
        std::io::Result::Ok(())
    };
    tokio::select! {
        // A peer that does not read any more is found out by the reader or by deadlines.
        written = copy => { if written.is_err() { end.cancel(); } }
        () = end.cancelled() => {}
    }
}

/// The reading half.
struct Reader {
    pending: Arc<Pending>,
    replies: mpsc::WeakSender<Vec<u8>>,
    changes: watch::Sender<u64>,
    noise: u32,
}

impl Reader {
    async fn run<R: AsyncRead + Unpin>(mut self, mut lines: Lines<R>, end: CancellationToken, mut ending: Ending) {
        let why = tokio::select! {
            why = self.read(&mut lines) => why,
            () = end.cancelled() => CallError::lost("the conversation was ended"),
        };
        end.cancel();
        let why = match why {
            CallError::Unreachable { .. } => CallError::lost(said(&mut ending).await),
            other => other,
        };
        tracing::debug!(%why, "the server's conversation ended");
        self.pending.close(why);
    }

    /// Reads until there is no point in it any more, and says why.
    async fn read<R: AsyncRead + Unpin>(&mut self, lines: &mut Lines<R>) -> CallError {
        loop {
            match lines.next().await {
                Ok(Some(line)) => {
                    self.take(&line);
                    if self.noise > MAX_NOISE {
                        return CallError::Malformed(Fault::Noise(MAX_NOISE));
                    }
                }
                Ok(None) | Err(LineError::Io) => return CallError::lost("it closed the connection"),
                Err(LineError::Truncated) => return CallError::Malformed(Fault::Truncated),
                Err(LineError::TooLong) => return CallError::TooLarge { limit: MAX_LINE as u64 },
            }
        }
    }

    fn take(&mut self, line: &Bytes) {
        match message::read(line) {
            Ok(Incoming::Response { id, answer }) => {
                self.pending.answer(id, answer.map_err(CallError::Malformed));
            }
            Ok(Incoming::Request { id, method }) => self.reply(&id, &method),
            Ok(Incoming::Notification { method }) if method == message::LIST_CHANGED => {
                self.changes.send_modify(|count| *count += 1);
            }
            Ok(Incoming::Notification { .. }) => {}
            Ok(Incoming::Stray) => self.noise += 1,
            Err(fault) => self.misread(line, fault),
        }
    }

    /// A line that is no message: log output that strayed to stdout, or an answer that cannot be trusted. The latter fails
    /// its own request where the id can still be told, and otherwise every request that waits.
    fn misread(&mut self, line: &[u8], fault: Fault) {
        self.noise += 1;
        if !matches!(line.first(), Some(b'{' | b'[')) {
            tracing::debug!("the server wrote a line that is no message");
            return;
        }
        tracing::warn!(%fault, "the server wrote a message that cannot be read");
        match message::id_of(line) {
            Some(id) => self.pending.answer(id, Err(CallError::Malformed(fault))),
            None => self.pending.fail(&CallError::Malformed(fault)),
        }
    }

    fn reply(&self, id: &str, method: &str) {
        let Some(replies) = self.replies.upgrade() else { return };
        // A server that asks faster than it reads gets no answer.
        let _ = replies.try_send(line(message::reply(id, method)));
    }
}

/// What the supervisor says about the end, where there is one and it is quick.
async fn said(ending: &mut Ending) -> String {
    let told = timeout(Duration::from_millis(500), ending.wait_for(Option::is_some)).await;
    let told = told.ok().and_then(Result::ok).and_then(|told| told.clone());
    told.unwrap_or_else(|| "it closed the connection".to_owned())
}
