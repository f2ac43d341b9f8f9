//! A server behind `cotter-shim`: one connection is one process of it, which the shim starts and ends.

use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::UpstreamError;
use super::pipe::Pipe;

/// Connects, with the same small patience for a socket that is not there yet as for one that does not accept: the server's
/// container may start after the sidecar's.
pub(super) async fn connect(
    path: &Path,
    patience: Duration,
    end: &CancellationToken,
    changes: &watch::Sender<u64>,
) -> Result<Pipe, UpstreamError> {
    let late = || std::io::Error::from(std::io::ErrorKind::TimedOut);
    let connected = timeout(patience, UnixStream::connect(path)).await.unwrap_or_else(|_| Err(late()));
    let failed = |source| UpstreamError::Socket { path: path.display().to_string(), source };
    let (from, to) = connected.map_err(failed)?.into_split();
    // Nobody tells how the process behind the shim ended, and nobody has to be waited for.
    let (_, ending) = watch::channel(None);
    Ok(Pipe::start(from, to, end.child_token(), ending, changes.clone()))
}
