//! The listening side of the stream: TLS, and bounds on connections that nobody has identified yet.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, http::Request};
use axum_server::{
    Handle,
    accept::{Accept, NoDelayAcceptor},
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::rt::TokioTimer;
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
};

/// Two connections for each of 10,000 sidecars, and some.
const MAX_CONNECTIONS: usize = 25_000;
/// A client that has not sent its request's head by then is not one of ours.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long open answers may take to end when the operator stops. Streams end at once.
const DRAIN: Duration = Duration::from_secs(5);

/// Why the stream is not served.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}")]
pub struct ListenError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// A bound port that is not served yet: whoever connects waits.
pub struct Listener {
    listener: std::net::TcpListener,
    handle: Handle<SocketAddr>,
}

impl Listener {
    /// Binds.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, handle: Handle::new() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// [`ListenError`], for a socket that is no more.
    pub fn address(&self) -> Result<SocketAddr, ListenError> {
        let address = SocketAddr::from(([0, 0, 0, 0], 0));
        self.listener.local_addr().map_err(|source| ListenError { address, source })
    }

    /// Ends [`serve`].
    pub fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let handle = self.handle.clone();
        move || handle.graceful_shutdown(Some(DRAIN))
    }
}

/// Serves until the stopper is called.
///
/// # Errors
/// When the socket fails.
pub async fn serve(listener: Listener, tls: RustlsConfig, router: Router) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let acceptor = RustlsAcceptor::new(tls).acceptor(Limited { slots });
    let mut server = axum_server::from_tcp(listener.listener)?.acceptor(acceptor).handle(listener.handle).http1_only();
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(64 * 1024);
    server.serve(router.into_make_service()).await
}

/// Accepts while there is room. One too many is closed at once, which its client sees as a failed connection.
#[derive(Clone)]
struct Limited {
    slots: Arc<Semaphore>,
}

type Accepted<S> = io::Result<(TcpStream, Held<S>)>;

impl<S: Send + 'static> Accept<TcpStream, S> for Limited {
    type Stream = TcpStream;
    type Service = Held<S>;
    type Future = Pin<Box<dyn Future<Output = Accepted<S>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let slot = self.slots.clone().try_acquire_owned();
        Box::pin(async move {
            let slot = slot.map_err(|_| io::Error::other("too many connections"))?;
            let (stream, service) = NoDelayAcceptor::new().accept(stream, service).await?;
            Ok((stream, Held { service, _slot: Arc::new(slot) }))
        })
    }
}

/// A connection's service, which holds the connection's slot as long as it lives.
#[derive(Clone)]
struct Held<S> {
    service: S,
    _slot: Arc<OwnedSemaphorePermit>,
}

impl<S: tower::Service<Request<B>>, B> tower::Service<Request<B>> for Held<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.service.call(request)
    }
}
