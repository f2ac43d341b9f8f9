//! The newest snapshot of each server, ready to be sent. Shared by all sidecars of the server: one line of bytes each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use cotter_core::snapshot::{Digest, Sealed};
use tokio::sync::watch;

use crate::key::ServerKey;

/// One line of the stream: `{"digest":"sha256:…","snapshot":…}` and a newline.
#[derive(Debug)]
pub struct Frame {
    /// The digest of the snapshot's bytes.
    pub digest: Digest,
    /// The line as it goes out.
    pub line: Bytes,
}

impl Frame {
    fn new(sealed: &Sealed) -> Self {
        let digest = sealed.digest();
        // The snapshot is already JSON on one line, and the digest is of exactly these bytes.
        let line = format!("{{\"digest\":\"{digest}\",\"snapshot\":{}}}\n", sealed.bytes());
        Self { digest, line: line.into() }
    }
}

/// What a stream follows: nothing until the first good snapshot.
pub type Feed = watch::Receiver<Option<Arc<Frame>>>;

/// The newest good snapshot of each server. A snapshot stays until a newer good one replaces it or the server is gone.
#[derive(Debug, Default)]
pub struct Publisher {
    servers: Mutex<HashMap<ServerKey, watch::Sender<Option<Arc<Frame>>>>>,
}

impl Publisher {
    /// Makes `sealed` the snapshot of the server. Says whether it is another one than before; the same again wakes nobody.
    pub fn publish(&self, key: &ServerKey, sealed: &Sealed) -> bool {
        self.lock().entry(key.clone()).or_insert_with(|| watch::Sender::new(None)).send_if_modified(|current| {
            let changed = current.as_ref().is_none_or(|frame| frame.digest != sealed.digest());
            if changed {
                *current = Some(Arc::new(Frame::new(sealed)));
            }
            changed
        })
    }

    /// The digest that is published now.
    pub fn current(&self, key: &ServerKey) -> Option<Digest> {
        self.lock().get(key).and_then(|sender| sender.borrow().as_ref().map(|frame| frame.digest))
    }

    /// Follows a server, also before it has a snapshot.
    pub fn subscribe(&self, key: &ServerKey) -> Feed {
        self.lock().entry(key.clone()).or_insert_with(|| watch::Sender::new(None)).subscribe()
    }

    /// Forgets a server that is gone: its streams end.
    pub fn retire(&self, key: &ServerKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerKey, watch::Sender<Option<Arc<Frame>>>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
