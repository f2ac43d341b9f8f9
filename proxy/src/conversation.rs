//! Which conversation with the server a caller's requests go through: one for each legacy session, one for each principal of the
//! modern era. A conversation never serves two principals, unless the server itself shares one process among all.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cotter_core::reason::DenyReason;

use crate::{
    respond::Refusal,
    session::Owner,
    upstream::{Conversation, Upstream},
};

/// A principal's conversation that nobody used for this long is closed: the modern era has no session that it could break.
pub const IDLE: Duration = Duration::from_secs(5 * 60);

/// One way to the server. The number tells conversations of a replaced way from those of this one.
#[derive(Debug, Clone)]
pub struct Server {
    /// The way.
    pub upstream: Upstream,
    /// Its number.
    pub generation: u64,
}

/// Room for one conversation, opened when it is first needed and anew when it ended.
#[derive(Debug, Default)]
pub struct Slot(tokio::sync::Mutex<Option<(u64, Conversation)>>);

impl Slot {
    /// The conversation, opened if there is none, if it ended, or if the server is reached another way now.
    ///
    /// # Errors
    /// The server cannot be reached, has no process to spare for this principal, or does not finish the handshake.
    pub async fn converse(&self, server: &Server, owner: &Arc<Owner>) -> Result<Conversation, Refusal> {
        let mut held = self.0.lock().await;
        if let Some((generation, conversation)) = held.as_ref()
            && *generation == server.generation
            && conversation.is_alive()
        {
            return Ok(conversation.clone());
        }
        *held = None;
        let opened = server.upstream.open_for(Some(owner)).await;
        let conversation = opened.map_err(|error| Refusal::because(DenyReason::from(&error), error.to_string()))?;
        *held = Some((server.generation, conversation.clone()));
        Ok(conversation)
    }

    /// Ends the conversation, if there is one.
    pub async fn close(&self) {
        if let Some((_, conversation)) = self.0.lock().await.take() {
            conversation.close().await;
        }
    }
}

/// The conversations of principals without sessions.
#[derive(Debug)]
pub struct Conversations {
    began: Instant,
    open: Mutex<HashMap<Arc<Owner>, Arc<Kept>>>,
}

/// A slot and when it was last used.
#[derive(Debug, Default)]
pub struct Kept {
    /// The slot.
    pub slot: Slot,
    used: AtomicU64,
}

impl Default for Conversations {
    fn default() -> Self {
        Self { began: Instant::now(), open: Mutex::default() }
    }
}

impl Conversations {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The slot of a principal.
    ///
    /// # Errors
    /// `TooManySessions` where `limit` principals hold one and none is idle.
    pub fn of(&self, owner: &Arc<Owner>, limit: u32) -> Result<Arc<Kept>, Refusal> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if !open.contains_key(owner) && open.len() >= limit {
            self.forget_idle(&mut open);
            if open.len() >= limit {
                return Err(Refusal::because(DenyReason::TooManySessions, "no conversation with the server is free"));
            }
        }
        let kept = Arc::clone(open.entry(Arc::clone(owner)).or_default());
        kept.used.store(self.now(), Ordering::Relaxed);
        Ok(kept)
    }

    /// How many principals hold one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Closes the idle ones.
    pub fn sweep(&self) {
        self.forget_idle(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Closes all.
    pub fn clear(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn forget_idle(&self, open: &mut HashMap<Arc<Owner>, Arc<Kept>>) {
        let idle = |kept: &Kept| self.now().saturating_sub(kept.used.load(Ordering::Relaxed));
        open.retain(|_, kept| Arc::strong_count(kept) > 1 || Duration::from_millis(idle(kept)) < IDLE);
    }
}
