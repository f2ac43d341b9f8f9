//! A server reached over Streamable HTTP, in both eras: one session of the sidecar's own, opened anew where the server forgot
//! it.

mod answer;
mod credential;
mod endpoint;
mod follow;
mod open;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Method, StatusCode};
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

pub(super) use self::endpoint::Endpoint;
use super::Answer;
use super::error::{CallError, UpstreamError};
use super::handshake::Hello;
use super::message::{self, Era};

/// How a modern server refuses a revision (MCP 2026-07-28).
const UNSUPPORTED_VERSION: i64 = -32022;

/// One session. Dropped, the server is told that it ended.
#[derive(Debug)]
pub(super) struct HttpSession {
    session: Arc<Session>,
    follower: std::sync::OnceLock<AbortHandle>,
    closed: AtomicBool,
}

/// What requests of the session share with its background work.
#[derive(Debug)]
struct Session {
    endpoint: Arc<Endpoint>,
    current: ArcSwap<Current>,
    /// Held while the session is opened anew, so that one request does it for all.
    reopening: tokio::sync::Mutex<()>,
    next: AtomicU64,
    changes: watch::Sender<u64>,
}

/// The session as the server knows it now.
#[derive(Debug)]
struct Current {
    hello: Arc<Hello>,
    /// Headers of every request: the endpoint's own, the revision, and the session where the server gave one.
    headers: HeaderMap,
    has_session: bool,
    /// Counted from 1: each opening is another session.
    number: u64,
}

/// Why an attempt gave no answer.
enum Failure {
    /// The server does not know the session any more, or not the revision; nothing was done.
    Forgotten(u16),
    /// Anything else.
    Call(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl HttpSession {
    /// Opens a session.
    pub(super) async fn open(endpoint: Arc<Endpoint>, changes: watch::Sender<u64>) -> Result<Self, UpstreamError> {
        let current = open::open(&endpoint, super::FIRST_SESSION).await?;
        let session = Session {
            endpoint,
            current: ArcSwap::from_pointee(current),
            reopening: tokio::sync::Mutex::default(),
            next: AtomicU64::new(open::FIRST_FREE_ID),
            changes,
        };
        Ok(Self { session: Arc::new(session), follower: std::sync::OnceLock::new(), closed: AtomicBool::new(false) })
    }

    pub(super) fn number(&self) -> u64 {
        self.session.current.load().number
    }

    pub(super) fn hello(&self) -> Arc<Hello> {
        Arc::clone(&self.session.current.load().hello)
    }

    /// One request and its answer. `name` is what `Mcp-Name` says to a modern server.
    ///
    /// # Errors
    /// See [`CallError`]. Where the server forgot the session, it is opened anew, and the request is sent again: a server that does
    /// not know the session cannot have acted. A request for the session of one `number` is not sent in another: `Renewed`.
    pub(super) async fn exchange(
        &self,
        (method, name): (&'static str, Option<&str>),
        number: Option<u64>,
        build: impl Fn(u64, Era) -> Vec<u8>,
        limit: usize,
        deadline: Duration,
    ) -> Result<Answer, CallError> {
        let id = self.session.next.fetch_add(1, Ordering::Relaxed);
        let ask = Ask { id, method, name, number, build: &build, limit };
        match timeout(deadline, self.session.ask(&ask)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.session.give_up(id);
                Err(CallError::Timeout { dispatched: true })
            }
        }
    }

    /// Begins to follow the server's announcements, once.
    pub(super) fn follow(&self) {
        if self.hello().list_changed {
            self.follower.get_or_init(|| tokio::spawn(follow::run(Arc::clone(&self.session))).abort_handle());
        }
    }

    /// Tells the server that the session ended.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.session.delete().await;
    }
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        if let Some(follower) = self.follower.get() {
            follower.abort();
        }
        if self.closed.load(Ordering::Relaxed) || !self.session.current.load().has_session {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let session = Arc::clone(&self.session);
            let patience = session.endpoint.bounds().connect;
            runtime.spawn(async move { timeout(patience, session.delete()).await });
        }
    }
}

/// One request, as often as it has to be sent.
struct Ask<'a, B> {
    id: u64,
    method: &'static str,
    name: Option<&'a str>,
    number: Option<u64>,
    build: &'a B,
    limit: usize,
}

impl Session {
    async fn ask<B: Fn(u64, Era) -> Vec<u8>>(self: &Arc<Self>, ask: &Ask<'_, B>) -> Result<Answer, CallError> {
        let current = self.current.load_full();
        if ask.number.is_some_and(|number| number != current.number) {
            return Err(CallError::Renewed);
        }
        let status = match self.attempt(&current, ask).await {
            Ok(answer) => return Ok(answer),
            Err(Failure::Call(error)) => return Err(error),
            Err(Failure::Forgotten(status)) => status,
        };
        tracing::debug!(status, "the server does not know the session any more");
        let current = self.reopen(&current).await?;
        if ask.number.is_some() {
            return Err(CallError::Renewed);
        }
        self.attempt(&current, ask).await.map_err(|failure| match failure {
            Failure::Call(error) => error,
            Failure::Forgotten(status) => CallError::Refused { status },
        })
    }

    async fn attempt<B: Fn(u64, Era) -> Vec<u8>>(
        self: &Arc<Self>,
        current: &Current,
        ask: &Ask<'_, B>,
    ) -> Result<Answer, Failure> {
        let era = current.hello.era;
        let mut headers = current.headers.clone();
        if era == Era::Modern {
            route(&mut headers, ask.method, ask.name);
        }
        let body = Bytes::from((ask.build)(ask.id, era));
        let response = self.endpoint.send(Method::POST, headers, body).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(answer::read(response, ask.id, ask.limit, self).await?);
        }
        let forgotten = Failure::Forgotten(status.as_u16());
        match answer::refusal(response, ask.id).await {
            // It became another server, of another era.
            Ok(Answer::Error(error)) if message::code(&error) == Some(UNSUPPORTED_VERSION) => Err(forgotten),
            Ok(answer) => Ok(answer),
            Err(_) if matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) => Err(forgotten),
            Err(error) => Err(Failure::Call(error)),
        }
    }

    /// Opens the session anew, unless another request has done it meanwhile. The server may be another one now, so this counts
    /// as a change of its list.
    async fn reopen(&self, before: &Arc<Current>) -> Result<Arc<Current>, CallError> {
        let _one = self.reopening.lock().await;
        let now = self.current.load_full();
        if !Arc::ptr_eq(before, &now) {
            return Ok(now);
        }
        let opened = open::open(&self.endpoint, now.number + 1).await.map_err(|error| {
            error.exchange().cloned().unwrap_or_else(|| CallError::unreachable(error.to_string())).not_dispatched()
        })?;
        let opened = Arc::new(opened);
        self.current.store(Arc::clone(&opened));
        self.changes.send_modify(|count| *count += 1);
        Ok(opened)
    }

    /// Tells a legacy server that nobody waits for an answer any more; to a modern one the closed stream says it.
    fn give_up(self: &Arc<Self>, id: u64) {
        if self.current.load().hello.era == Era::Legacy {
            self.tell(message::cancelled(id));
        }
    }

    /// Sends something that has no answer, in the background.
    fn tell(self: &Arc<Self>, message: Vec<u8>) {
        let session = Arc::clone(self);
        let patience = session.endpoint.bounds().connect;
        tokio::spawn(async move {
            let headers = session.current.load().headers.clone();
            let sent = timeout(patience, session.endpoint.send(Method::POST, headers, message.into())).await;
            tracing::trace!(arrived = matches!(sent, Ok(Ok(_))), "told the server");
        });
    }

    async fn delete(&self) {
        let current = self.current.load_full();
        if current.has_session {
            let sent = self.endpoint.send(Method::DELETE, current.headers.clone(), Bytes::new()).await;
            tracing::trace!(arrived = sent.is_ok(), "ended the session");
        }
    }
}

/// The headers by which a modern server's infrastructure may route: a mirror of the body.
fn route(headers: &mut HeaderMap, method: &'static str, name: Option<&str>) {
    headers.insert("mcp-method", HeaderValue::from_static(method));
    if let Some(name) = name {
        headers.insert("mcp-name", header_text(name));
    }
}

/// A text as a header carries it: plain where that is safe, else as `=?base64?…?=`.
fn header_text(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.starts_with("=?base64?");
    let coded = || HeaderValue::from_str(&format!("=?base64?{}?=", STANDARD.encode(text)));
    let value = if plain { HeaderValue::from_str(text) } else { coded() };
    // Neither form has a byte that a header refuses.
    value.unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_header_cannot_carry_is_coded() {
        assert_eq!(header_text("case_tag"), "case_tag");
        assert_eq!(header_text("naïve"), "=?base64?bmHDr3Zl?=");
        assert_eq!(header_text("a b"), "=?base64?YSBi?=");
        assert_eq!(header_text("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
    }
}
