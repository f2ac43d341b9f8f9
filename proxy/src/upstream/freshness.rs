//! Whether the list that the reader verified is still the one that new sessions meet.
//!
//! A server may be replaced while the reader's own session goes on as before: a new process of a program that was upgraded on
//! disk, another replica behind one address. So each new session is asked for the first page before the first call goes through
//! it. If that is not what the reader saw, the call is decided again on the session's own list, and the reader is sent to look
//! again, with a session of its own that is as new.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

/// What the reader saw last.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    first_page: Mutex<Option<Bytes>>,
    outdated: AtomicBool,
}

impl Freshness {
    /// The reader saw this first page.
    pub(super) fn saw(&self, page: &Bytes) {
        *self.first_page.lock().unwrap_or_else(PoisonError::into_inner) = Some(page.clone());
    }

    /// A new session was given this first page. Whether it is the one that the reader saw.
    pub(super) fn compare(&self, page: &Bytes, changes: &watch::Sender<u64>) -> bool {
        let seen = self.first_page.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let same = seen.as_ref() == Some(page);
        if !same && seen.is_some() {
            self.outdated.store(true, Ordering::Release);
            changes.send_modify(|count| *count += 1);
        }
        same
    }

    /// Whether the reader's session is older than what it should see. Asked once, it is forgotten.
    pub(super) fn take_outdated(&self) -> bool {
        self.outdated.swap(false, Ordering::AcqRel)
    }
}
