//! When the operator was last heard.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Shared between whoever talks to the operator and whoever has to know how long ago that was.
#[derive(Debug, Clone)]
pub struct Contact(Arc<Clock>);

#[derive(Debug)]
struct Clock {
    began: Instant,
    heard: AtomicU64,
}

impl Default for Contact {
    /// Counts the beginning as contact: what was just started has the whole time to find its operator.
    fn default() -> Self {
        Self(Arc::new(Clock { began: Instant::now(), heard: AtomicU64::new(0) }))
    }
}

impl Contact {
    /// The operator was heard just now.
    pub fn heard(&self) {
        let now = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.heard.store(now, Ordering::Relaxed);
    }

    /// How long it has been silent.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.0.began.elapsed().saturating_sub(Duration::from_millis(self.0.heard.load(Ordering::Relaxed)))
    }
}
