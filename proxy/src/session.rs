//! Legacy sessions. The id that a client holds is this proxy's own, bound to the principal and never authentication: each request
//! is verified and decided by itself, and a session of somebody else does not exist.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cotter_core::{
    name::{Issuer, Subject, Tenant},
    principal::Principal,
    reason::DenyReason,
};

use crate::{conversation::Slot, random, respond::Refusal};

/// A session that nobody used for this long is forgotten. Clients open a new one when they are told that it is gone.
pub const IDLE: Duration = Duration::from_secs(30 * 60);

/// Where there are fewer sessions than this, one principal may hold them all.
const FEW: u32 = 16;

/// To whom sessions, conversations and rates belong: the token's subject and who acts for it, not its bytes, which change on refresh.
/// Two actors for one subject are two: what one of them leaves in a conversation is not the other's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    issuer: Issuer,
    subject: Subject,
    tenant: Option<Tenant>,
    /// The outermost actor: the issuer that vouches for it, and its subject.
    actor: Option<(Issuer, Subject)>,
}

impl Owner {
    /// The owner that a principal is.
    #[must_use]
    pub fn of(principal: &Principal) -> Self {
        let (issuer, subject) = (principal.issuer.clone(), principal.subject.clone());
        let actor = principal.actor.as_ref().map(|actor| (actor.issuer.clone(), actor.subject.clone()));
        Self { issuer, subject, tenant: principal.tenant.clone(), actor }
    }
}

/// One session.
#[derive(Debug)]
pub struct Session {
    owner: Arc<Owner>,
    /// The revision that was negotiated.
    pub revision: &'static str,
    /// The conversation with the server that belongs to this session alone.
    pub slot: Slot,
    used: AtomicU64,
}

/// All sessions of one sidecar.
#[derive(Debug)]
pub struct Sessions {
    began: Instant,
    open: Mutex<HashMap<Box<str>, Arc<Session>>>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { began: Instant::now(), open: Mutex::default() }
    }
}

impl Sessions {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Opens a session and gives its id.
    ///
    /// # Errors
    /// `TooManySessions` where `limit` are open and none is idle.
    pub fn open(&self, owner: &Arc<Owner>, revision: &'static str, limit: u32) -> Result<String, Refusal> {
        let session =
            Session { owner: Arc::clone(owner), revision, slot: Slot::default(), used: AtomicU64::new(self.now()) };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            self.forget_idle(&mut open);
        }
        if open.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(Refusal::new(DenyReason::TooManySessions));
        }
        if open.values().filter(|session| session.owner == *owner).count() >= share(limit) {
            return Err(Refusal::because(DenyReason::TooManySessions, "one principal has its share of the sessions"));
        }
        let id = random::id();
        open.insert(id.as_str().into(), Arc::new(session));
        Ok(id)
    }

    /// The session of that id, if it is this owner's.
    ///
    /// # Errors
    /// `SessionUnknown`, whether there is none, it ended, or it is somebody else's.
    pub fn find(&self, id: &str, owner: &Owner) -> Result<Arc<Session>, Refusal> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        let session = open.get(id).filter(|session| is_live(session, now));
        let unknown = |why: &str| Refusal::because(DenyReason::SessionUnknown, why);
        let session = session.ok_or_else(|| unknown("no such session"))?;
        if *session.owner != *owner {
            return Err(unknown("the session belongs to another principal"));
        }
        session.used.store(now, Ordering::Relaxed);
        Ok(Arc::clone(session))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn close(&self, id: &str, owner: &Owner) -> Result<Arc<Session>, Refusal> {
        let session = self.find(id, owner)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        Ok(session)
    }

    /// How many are open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Forgets the idle ones. Their conversations end with them.
    pub fn sweep(&self) {
        self.forget_idle(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn forget_idle(&self, open: &mut HashMap<Box<str>, Arc<Session>>) {
        let now = self.now();
        open.retain(|_, session| Arc::strong_count(session) > 1 || is_live(session, now));
    }
}

fn is_live(session: &Session, now: u64) -> bool {
    let idle = now.saturating_sub(session.used.load(Ordering::Relaxed));
    Duration::from_millis(idle) < IDLE
}

/// How many sessions one principal may hold, so that it cannot keep everybody else out: a quarter of all, and where there are few of them
/// all.
fn share(limit: u32) -> usize {
    let share = if limit < FEW { limit } else { limit / 4 };
    usize::try_from(share).unwrap_or(usize::MAX)
}

/// An owner for tests.
#[cfg(test)]
pub(crate) fn owner(subject: &str) -> Arc<Owner> {
    let issuer = "https://login.example".parse().unwrap();
    Arc::new(Owner { issuer, subject: subject.parse().unwrap(), tenant: None, actor: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_somebody_else_does_not_exist() {
        let sessions = Sessions::default();
        let id = sessions.open(&owner("alice"), "2025-11-25", 2).unwrap();
        assert!(sessions.find(&id, &owner("alice")).is_ok());
        let foreign = sessions.find(&id, &owner("mallory")).unwrap_err();
        let unknown = sessions.find("nothing", &owner("mallory")).unwrap_err();
        assert_eq!((foreign.reason, unknown.reason), (DenyReason::SessionUnknown, DenyReason::SessionUnknown));
        assert!(sessions.close(&id, &owner("mallory")).is_err() && sessions.find(&id, &owner("alice")).is_ok());
    }

    #[test]
    fn a_session_that_was_closed_is_gone_and_makes_room() {
        let sessions = Sessions::default();
        let id = sessions.open(&owner("alice"), "2025-11-25", 1).unwrap();
        assert_eq!(sessions.open(&owner("bob"), "2025-11-25", 1).unwrap_err().reason, DenyReason::TooManySessions);
        sessions.close(&id, &owner("alice")).unwrap();
        assert!(sessions.find(&id, &owner("alice")).is_err());
        assert!(sessions.open(&owner("bob"), "2025-11-25", 1).is_ok());
    }

    #[test]
    fn one_principal_cannot_keep_everybody_else_out() {
        let sessions = Sessions::default();
        for _ in 0..10 {
            sessions.open(&owner("mallory"), "2025-11-25", 40).unwrap();
        }
        let refused = sessions.open(&owner("mallory"), "2025-11-25", 40).unwrap_err();
        assert_eq!(refused.reason, DenyReason::TooManySessions);
        assert!(sessions.open(&owner("alice"), "2025-11-25", 40).is_ok());
    }
}
