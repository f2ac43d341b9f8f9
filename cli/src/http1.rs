//! One HTTP/1.1 exchange over a fresh connection: to an endpoint on loopback, or to the socket of a running `up`.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use crate::failure::{Doing as _, Failure};

/// An answer is at most this large.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What is sent.
pub(crate) struct Ask<'a> {
    /// The method.
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: &'a str,
    /// Headers beside Host and Content-Type.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body; JSON where there is one.
    pub(crate) body: Option<String>,
}

/// What came back.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: Bytes,
}

/// Asks an endpoint, by `host:port`.
pub(crate) async fn tcp(authority: &str, ask: Ask<'_>) -> Result<Answer, Failure> {
    let stream = TcpStream::connect(authority).await.doing(format!("connect to {authority}"))?;
    exchange(stream, authority, ask).await
}

/// Asks a running `up` through its socket.
pub(crate) async fn unix(socket: &Path, ask: Ask<'_>) -> Result<Answer, Failure> {
    let stream = UnixStream::connect(socket).await.doing(format!("connect to {}", socket.display()))?;
    exchange(stream, "cotter", ask).await
}

async fn exchange<S>(stream: S, host: &str, ask: Ask<'_>) -> Result<Answer, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.doing(format!("speak HTTP with {host}"))?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(ask.method).uri(ask.path).header(header::HOST, host);
    for (name, value) in &ask.headers {
        request = request.header(*name, value);
    }
    if ask.body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = Full::new(Bytes::from(ask.body.unwrap_or_default()));
    let request = request.body(body).doing("make the request")?;
    let response = sender.send_request(request).await.doing(format!("ask {host}"))?;
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, MAX_BYTES).collect().await;
    let body =
        body.map_err(|error| Failure::cannot(format!("failed to read the answer of {host}: {error}")))?.to_bytes();
    Ok(Answer { status: parts.status, headers: parts.headers, body })
}
