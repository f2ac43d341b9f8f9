//! The server behind the sidecar: one [`Upstream`] for each way to reach it, and [`Conversation`]s with it.
//!
//! Messages to the server are built here, with ids, headers and a session of the sidecar's own: nothing of the caller but the
//! tool's arguments and what its front lets through of `_meta` ever reaches the server. What comes back is read strictly and
//! bounded, and handed on as the exact bytes of the result.

mod call;
mod error;
#[cfg(test)]
pub(crate) mod fake;
mod freshness;
mod handshake;
mod http;
mod message;
mod pipe;
mod places;
mod socket;
mod sse;
mod stdio;
pub(crate) mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cotter_core::catalogue::Observed;
use cotter_core::report::Surface;
use cotter_core::snapshot;
use tokio::sync::watch;
use tokio::time::timeout;

pub use self::call::{Answer, Call};
pub use self::error::{CallError, Fault, UpstreamError};
use self::freshness::Freshness;
use self::handshake::Hello;
use self::http::{Endpoint, HttpSession};
use self::message::Era;
use self::pipe::Pipe;
use self::places::{Place, Places};
use self::stdio::Processes;
use crate::authorize::Permit;
use crate::reader::{self, ReadError};
use crate::session::Owner;

/// Bytes of one tool list, all pages together.
pub(crate) const MAX_LIST: usize = 16 * 1024 * 1024;
/// Time for the one page that a new session is asked for.
const FIRST_PAGE_TIME: Duration = Duration::from_secs(10);

/// What bounds every exchange.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How long a connection may take to open.
    pub connect: Duration,
    /// How long a server may take from its start to the end of the handshake.
    pub start: Duration,
}

/// One way to reach one server. Cheap to clone; processes that it started end when the last clone and the last
/// conversation are gone, or at [`Upstream::shutdown`].
#[derive(Debug, Clone)]
pub struct Upstream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    transport: Transport,
    bounds: Bounds,
    changes: watch::Sender<u64>,
    freshness: Arc<Freshness>,
    processes: Processes,
    /// The bound on processes, where each session has its own.
    places: Option<Arc<Places>>,
    /// The process or connection that all conversations share, where they do.
    shared: Option<tokio::sync::Mutex<Option<std::sync::Weak<Link>>>>,
}

#[derive(Debug)]
enum Transport {
    Http(Arc<Endpoint>),
    Child(stdio::Program),
    Socket(PathBuf),
}

/// One session with the server: an HTTP session, a child process or a connection to the shim. Cheap to clone; it ends when
/// the last clone is gone.
#[derive(Debug, Clone)]
pub struct Conversation {
    link: Arc<Link>,
}

/// Which session of a conversation is meant: an HTTP session that the server forgot is opened anew, and is another one then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionNumber(u64);

/// The number of a conversation's first session.
const FIRST_SESSION: u64 = 1;

/// What a conversation runs over.
#[derive(Debug)]
struct Link {
    wire: Wire,
    bounds: Bounds,
    changes: watch::Sender<u64>,
    /// Whether all conversations of the upstream run over it.
    shared: bool,
    freshness: Arc<Freshness>,
    /// What a connection to the shim takes up; a child's place is with whoever waits for its end.
    _place: Option<Place>,
    /// The session whose list is known to be the one that the reader saw, by its number from 1; 0 for none.
    as_read: AtomicU64,
}

#[derive(Debug)]
enum Wire {
    Http(HttpSession),
    Pipe(Pipe, Arc<Hello>),
}

impl Upstream {
    /// Prepares to reach a server; opens nothing yet. `cwd` is where a child process works.
    ///
    /// # Errors
    /// The configuration names nothing that can be reached, or its certificates cannot be read.
    pub fn new(config: &snapshot::Upstream, bounds: Bounds, cwd: Option<PathBuf>) -> Result<Self, UpstreamError> {
        let (transport, sessions) = match config {
            snapshot::Upstream::Http { url, credentials, ca_file } => {
                let endpoint = Endpoint::new(url, credentials.as_ref(), ca_file.as_deref(), bounds)?;
                (Transport::Http(Arc::new(endpoint)), snapshot::Sessions::PerSession)
            }
            snapshot::Upstream::Child { command, env, sessions } => {
                (Transport::Child(stdio::Program::new(command, env, cwd)?), *sessions)
            }
            snapshot::Upstream::Socket { path, sessions } => (Transport::Socket(path.into()), *sessions),
        };
        let shared = (sessions == snapshot::Sessions::Shared).then(tokio::sync::Mutex::default);
        let has_processes = shared.is_none() && !matches!(transport, Transport::Http(_));
        let places = has_processes.then(Arc::default);
        let (changes, processes) = (watch::Sender::new(0), Processes::default());
        Ok(Self {
            inner: Arc::new(Inner { transport, bounds, changes, freshness: Arc::default(), processes, places, shared }),
        })
    }

    /// Opens a conversation: `initialize` with the newest legacy revision or, where the server knows no handshake,
    /// `server/discover`. Where sessions share the process, every conversation is the same one, opened once.
    ///
    /// # Errors
    /// The server cannot be started or reached, or does not finish the handshake in time and in protocol.
    pub async fn open(&self) -> Result<Conversation, UpstreamError> {
        self.open_for(None).await
    }

    /// The same for a principal, which has its share of the server's processes; without one, for the reader of the tool list.
    ///
    /// # Errors
    /// As [`Upstream::open`], and `Busy` and `Share` where no process is left.
    pub async fn open_for(&self, owner: Option<&Arc<Owner>>) -> Result<Conversation, UpstreamError> {
        let Some(shared) = &self.inner.shared else {
            return Ok(Conversation { link: Arc::new(self.inner.link(owner).await?) });
        };
        let mut shared = shared.lock().await;
        if let Some(link) = shared.as_ref().and_then(std::sync::Weak::upgrade).filter(|link| link.is_alive()) {
            return Ok(Conversation { link });
        }
        let link = Arc::new(self.inner.link(None).await?);
        if shared.replace(Arc::downgrade(&link)).is_some() {
            // Another process than the one whose list was read.
            self.inner.changes.send_modify(|count| *count += 1);
        }
        Ok(Conversation { link })
    }

    /// How many sessions can be served at once, where each has a process of its own.
    #[must_use]
    pub fn most_sessions(&self) -> u32 {
        let most = self.inner.places.as_ref().map_or(usize::MAX, |_| places::CALLERS);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// Counts what may have changed the tool list: `notifications/tools/list_changed` in any conversation, and sessions that
    /// had to be opened anew.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// The reader saw this first page.
    pub(crate) fn saw(&self, page: &Bytes) {
        self.inner.freshness.saw(page);
    }

    /// Whether newer sessions meet another list than the reader's own session shows.
    pub(crate) fn take_outdated(&self) -> bool {
        self.inner.freshness.take_outdated()
    }

    /// Ends every process that was started here, and returns when none is left: first its input is closed, then it is asked
    /// to end, then it is killed together with whatever it started.
    pub async fn shutdown(&self) {
        self.inner.processes.shutdown().await;
    }
}

impl Inner {
    async fn link(&self, owner: Option<&Arc<Owner>>) -> Result<Link, UpstreamError> {
        let mut place = self.places.as_ref().map(|places| places.take(owner)).transpose()?;
        let wire = match &self.transport {
            Transport::Http(endpoint) => {
                Wire::Http(HttpSession::open(Arc::clone(endpoint), self.changes.clone()).await?)
            }
            Transport::Child(program) => {
                let pipe = self.processes.start(program, &self.changes, place.take())?;
                let hello = handshake::over_pipe(&pipe, self.bounds.start).await?;
                Wire::Pipe(pipe, Arc::new(hello))
            }
            Transport::Socket(path) => {
                let pipe = socket::connect(path, self.bounds.connect, &self.processes.end, &self.changes).await?;
                let hello = handshake::over_pipe(&pipe, self.bounds.start).await?;
                Wire::Pipe(pipe, Arc::new(hello))
            }
        };
        let shared = self.shared.is_some();
        let (changes, freshness) = (self.changes.clone(), Arc::clone(&self.freshness));
        Ok(Link { wire, bounds: self.bounds, changes, shared, freshness, _place: place, as_read: AtomicU64::new(0) })
    }
}

impl Link {
    fn is_alive(&self) -> bool {
        match &self.wire {
            Wire::Http(_) => true,
            Wire::Pipe(pipe, _) => pipe.is_alive(),
        }
    }

    /// The number of the session: an HTTP session that was opened anew is another one.
    fn number(&self) -> u64 {
        match &self.wire {
            Wire::Http(session) => session.number(),
            Wire::Pipe(..) => FIRST_SESSION,
        }
    }

    fn hello(&self) -> Arc<Hello> {
        match &self.wire {
            Wire::Http(session) => session.hello(),
            Wire::Pipe(_, hello) => Arc::clone(hello),
        }
    }
}

impl Conversation {
    /// What the server says of itself. It is never used for a decision.
    #[must_use]
    pub fn surface(&self) -> Arc<Surface> {
        Arc::clone(&self.link.hello().surface)
    }

    /// The server's instructions, exact text. They are for a pin to cover, not for a caller to see.
    #[must_use]
    pub fn instructions(&self) -> Option<Arc<str>> {
        self.link.hello().instructions.clone()
    }

    /// Whether calls can still be answered. An HTTP session is opened anew by itself; a process or connection that ended is
    /// not, and the conversation has to be opened anew.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    /// The session that calls go through now.
    #[must_use]
    pub fn session(&self) -> SessionNumber {
        SessionNumber(self.link.number())
    }

    /// The list of this very session, where it is not the one that the reader saw last. Before a call goes through a session, it is
    /// decided on that list: the catalogue speaks of another server.
    ///
    /// # Errors
    /// The session does not show its list.
    pub(crate) async fn own_list(&self, session: SessionNumber) -> Result<Option<Arc<Observed>>, ReadError> {
        if self.link.as_read.load(Ordering::Acquire) == session.0 {
            return Ok(None);
        }
        let page = self.list_page(None, MAX_LIST, FIRST_PAGE_TIME).await;
        let page = page.map_err(|source| ReadError::Page { page: 1, source })?;
        if self.link.freshness.compare(&page, &self.link.changes) {
            self.link.as_read.store(session.0, Ordering::Release);
            return Ok(None);
        }
        reader::whole_list(self).await.map(Some)
    }

    /// Sends one tool call, which the permit allows and names, through the session whose list was looked at.
    ///
    /// # Errors
    /// See [`CallError`], which also tells whether the server may have acted. `Renewed` where the session is another one now: its list
    /// has to be looked at first.
    pub async fn call(&self, permit: &Permit, call: Call<'_>, session: SessionNumber) -> Result<Answer, CallError> {
        self.send(permit.tool().as_str(), call, Some(session.0)).await
    }

    async fn send(&self, tool: &str, call: Call<'_>, number: Option<u64>) -> Result<Answer, CallError> {
        let limit = usize::try_from(call.result_bytes).unwrap_or(usize::MAX);
        let answer = match &self.link.wire {
            Wire::Http(session) => {
                let build = |id, era| message::call(id, era, tool, &call);
                session.exchange(("tools/call", Some(tool)), number, build, limit, call.deadline).await
            }
            Wire::Pipe(pipe, hello) => {
                pipe.exchange(|id| message::call(id, hello.era, tool, &call), call.deadline).await
            }
        }?;
        answer.within(call.result_bytes)
    }

    /// One page of the server's tool list, for the reader alone: what callers see is the verified catalogue.
    pub(crate) async fn list_page(
        &self,
        cursor: Option<&str>,
        limit: usize,
        deadline: Duration,
    ) -> Result<Bytes, UpstreamError> {
        const DOING: &str = "read the tool list";
        let answer = match &self.link.wire {
            Wire::Http(session) => {
                session
                    .exchange(("tools/list", None), None, |id, era| message::list(id, era, cursor), limit, deadline)
                    .await
            }
            Wire::Pipe(pipe, hello) => pipe.exchange(|id| message::list(id, hello.era, cursor), deadline).await,
        };
        let answer = answer.and_then(|answer| answer.within(limit as u64));
        answer.map_err(|source| UpstreamError::Exchange { doing: DOING, source })?.result(DOING)
    }

    /// Follows the server's own announcements of changes, where the transport does not carry them anyway and the server
    /// offers them. Only the reader does: one stream for each server is enough.
    pub(crate) fn follow(&self) {
        match &self.link.wire {
            Wire::Http(session) => session.follow(),
            Wire::Pipe(pipe, hello) if hello.era == Era::Modern && hello.list_changed => pipe.follow(),
            Wire::Pipe(..) => {}
        }
    }

    /// Returns when [`Conversation::is_alive`] turns false, and never for HTTP.
    pub async fn ended(&self) {
        match &self.link.wire {
            Wire::Http(_) => std::future::pending().await,
            Wire::Pipe(pipe, _) => pipe.ended().await,
        }
    }

    /// See [`Upstream::changes`].
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.link.changes.subscribe()
    }

    /// Ends the conversation and waits until the server's process, where this conversation has one of its own, is gone. A
    /// process that others share ends with the last of them.
    pub async fn close(self) {
        match &self.link.wire {
            Wire::Http(session) => drop(timeout(self.link.bounds.connect, session.close()).await),
            Wire::Pipe(pipe, _) if !self.link.shared || Arc::strong_count(&self.link) == 1 => pipe.close().await,
            Wire::Pipe(..) => {}
        }
    }
}

#[cfg(test)]
mod tests;
