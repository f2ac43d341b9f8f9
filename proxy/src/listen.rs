//! Connections: bounded in number, in all and for each peer, in the size of a head and in the time that it and an answer take; drained
//! at the end.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    respond::Reply,
    socket::{Peers, Seat, Socket, UNREAD},
};

/// Connections at once. More wait in the kernel's queue, so that memory stays bounded.
const CONNECTIONS: usize = 4096;

/// How long a head may take to arrive.
const HEAD: Duration = Duration::from_secs(10);

/// Beyond these the connection is cut; from 32 KiB and 100 headers on there is an answer that says so.
const HEAD_BYTES: usize = 64 * 1024;
const HEADERS: usize = 160;

/// What a head that does not end is answered with.
const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// How long requests in flight may take to end at shutdown.
const DRAIN: Duration = Duration::from_secs(10);

/// After a failed accept (no file descriptors left, most likely) others get time to end.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until the token ends it, and then those that are open until they are done.
pub async fn serve<H, F>(listener: TcpListener, end: CancellationToken, handle: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let (room, peers) = (Arc::new(Semaphore::new(CONNECTIONS)), Peers::default());
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => break,
            accepted = accept(&listener, &room, &peers) => accepted,
            Some(_) = open.join_next() => continue,
        };
        let Some((stream, place)) = accepted else { continue };
        let (end, handle) = (end.clone(), handle.clone());
        open.spawn(async move {
            connection(stream, end, handle).await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN, async { while open.join_next().await.is_some() {} }).await;
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    peers: &Peers,
) -> Option<(TcpStream, (Seat, OwnedSemaphorePermit))> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, from)) => {
            // Who has too many is not told: that would take as long as a connection.
            let seat = peers.enter(from.ip().to_canonical())?;
            // Answers are small and whole: waiting for more bytes to send would only add latency.
            let _ = stream.set_nodelay(true);
            Some((stream, (seat, place)))
        }
        Err(error) => {
            tracing::warn!(%error, "failed to accept a connection");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

async fn connection<H, F>(stream: TcpStream, end: CancellationToken, handle: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = handle(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_header_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(Socket::new(stream, UNREAD)), service);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = end.cancelled() => {
            Pin::new(&mut serving).graceful_shutdown();
            (&mut serving).await
        }
    };
    // A client that breaks the connection or the protocol concerns nobody else. One that began a head and did not end it is told;
    // a connection that was only idle is closed without a word.
    if ended.is_err_and(|error| error.is_timeout()) {
        let parts = serving.into_parts();
        if !parts.read_buf.is_empty() {
            let _ = parts.io.into_inner().write_all(TIMED_OUT).await;
        }
    }
}
