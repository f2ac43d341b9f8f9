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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sealed(generation: i64) -> Sealed {
        let rate = json!({"tokens": 1, "perMs": 1000, "burst": 1});
        let snapshot = json!({
            "version": "cotter.snapshot/v1", "server": {"namespace": "n", "name": "a"}, "generation": generation,
            "upstream": {"http": {"url": "https://mcp.example.com/mcp"}}, "protocol": {"revisions": []},
            "access": {"audience": "x://y", "hosts": [], "origins": [], "issuers": [], "tenants": [],
                "insufficientScope": "Hide", "advertisedScopes": []},
            "tools": {}, "pinning": "Quarantine", "grants": [], "policies": {},
            "limits": {"requestBytes": 1, "resultBytes": 1, "timeoutMs": 1, "concurrent": 1, "ratePerPrincipal": rate, "sessions": 1},
            "verify": {"intervalMs": 1, "graceMs": 1}, "stale": {"afterMs": 1, "action": "Report"},
        });
        Sealed::seal(serde_json::from_value(snapshot).unwrap()).unwrap()
    }

    #[test]
    fn the_same_snapshot_wakes_nobody_and_a_slow_reader_gets_the_newest() {
        let (publisher, key) = (Publisher::default(), ServerKey::new("n", "a"));
        let mut feed = publisher.subscribe(&key);
        assert!(feed.borrow_and_update().is_none());
        assert!(publisher.publish(&key, &sealed(1)));
        assert!(!publisher.publish(&key, &sealed(1)));
        assert!(publisher.publish(&key, &sealed(2)));
        assert!(feed.has_changed().unwrap());
        assert_eq!(feed.borrow_and_update().as_ref().unwrap().digest, sealed(2).digest());
        publisher.retire(&key);
        assert!(feed.has_changed().is_err(), "a server that is gone ends its streams");
        assert_eq!(publisher.current(&key), None);
    }

    #[test]
    fn a_line_holds_the_announced_bytes() {
        let frame = Frame::new(&sealed(1));
        let line = std::str::from_utf8(&frame.line).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        #[derive(serde::Deserialize)]
        struct Line<'a> {
            digest: Digest,
            #[serde(borrow)]
            snapshot: &'a serde_json::value::RawValue,
        }
        let read: Line<'_> = serde_json::from_str(line).unwrap();
        assert!(Sealed::open(read.snapshot.get(), Some(read.digest)).is_ok());
    }
}
