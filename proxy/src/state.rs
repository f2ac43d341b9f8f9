//! What is enforced at one moment: snapshot, policy, keys and verified catalogue, swapped as one, so that no request is decided by
//! half of each.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use cotter_core::{
    catalogue::Catalogue,
    name::ServerRef,
    principal::Principal,
    reason::DenyReason,
    report::{Knowledge, Surface},
    snapshot::{Digest, Sealed, Snapshot},
};
use cotter_policies::{Authority, Policy};
use jiff::{SignedDuration, Timestamp};

use crate::{
    audit::Audit,
    contact::Contact,
    conversation::{Conversations, Server},
    ledger::{Budgets, Ledger},
    limit::{Bodies, Bucket, Buckets, InFlight},
    metrics::Metrics,
    respond::Refusal,
    schemas::Schemas,
    session::{Owner, Sessions},
    token::{LEEWAY_SECONDS, Verifier},
    uses::UseCounts,
};

/// Verified tokens that are remembered. A hit costs 0.3 µs against 20 to 50 for a signature.
const TOKENS: usize = 10_000;

/// Everything that the requests of one sidecar share.
#[derive(Debug)]
pub struct Shared {
    /// The server that is guarded.
    pub server: ServerRef,
    /// What is enforced now; nothing before the first snapshot.
    pub enforced: ArcSwapOption<Enforced>,
    /// Legacy sessions.
    pub sessions: Sessions,
    /// Conversations of principals without sessions.
    pub conversations: Conversations,
    /// Rates.
    pub buckets: Buckets,
    /// Requests in flight.
    pub in_flight: InFlight,
    /// Bodies that are being read.
    pub bodies: Bodies,
    /// Where decisions are recorded.
    pub audit: Audit,
    /// Numbers.
    pub metrics: Metrics,
    /// Uses of delegations.
    pub uses: UseCounts,
    /// What was charged to budgets of delegations.
    pub ledger: Arc<Ledger>,
    /// When the operator was last heard; absent where there is none to hear.
    pub contact: Option<Contact>,
}

/// What one snapshot and one reading of the server's list amount to.
#[derive(Debug)]
pub struct Enforced {
    /// The snapshot.
    pub sealed: Sealed,
    /// Its rules.
    pub policy: Arc<Policy>,
    /// Its keys, and the tokens that they verified.
    pub tokens: Arc<Tokens>,
    /// Its budgets.
    pub budgets: Arc<Budgets>,
    /// The way to the server.
    pub server: Server,
    /// What may be listed and called.
    pub catalogue: Arc<Catalogue>,
    /// The schemas of its tools.
    pub schemas: Arc<Schemas>,
    /// How well the catalogue is known.
    pub knowledge: Knowledge,
    /// When the catalogue was last read whole.
    pub verified_at: Option<Timestamp>,
    /// What the server says of itself.
    pub surface: Option<Arc<Surface>>,
    /// The server's instructions, where the pin covers them.
    pub instructions: Option<Arc<str>>,
}

impl Enforced {
    /// The snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.sealed.snapshot()
    }

    /// Its name.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.sealed.digest()
    }

    /// How many sessions may be open: as many as the owner says, and no more than the server can have processes for.
    #[must_use]
    pub fn most_sessions(&self) -> u32 {
        self.snapshot().limits.sessions.min(self.server.upstream.most_sessions())
    }

    /// The catalogue, if it may be served from.
    ///
    /// # Errors
    /// `NotReady` where it was never read whole, or the grace after the last reading ended.
    pub fn catalogue(&self) -> Result<&Catalogue, Refusal> {
        match &self.knowledge {
            Knowledge::Verified | Knowledge::Grace { .. } => Ok(&self.catalogue),
            Knowledge::NeverRead { why } | Knowledge::Expired { why } => {
                Err(Refusal::because(DenyReason::NotReady, why.as_str()))
            }
        }
    }
}

/// A caller whose token verified.
#[derive(Debug)]
pub struct Caller {
    /// Who it is.
    pub principal: Arc<Principal>,
    /// What the policy makes of it; `None` where that failed, and then it is made anew with each question.
    pub authority: Option<Authority>,
    /// To whom its sessions belong.
    pub owner: Arc<Owner>,
    /// Its rate.
    pub bucket: Arc<Bucket>,
    /// Whether it acts under delegations only, and under which.
    pub standing: Standing,
    until: Timestamp,
}

/// By what right a caller acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// By its token's own scopes.
    Own,
    /// Under these grants of the snapshot, by place, as far as they are active; by nothing else.
    Delegated(Vec<usize>),
}

impl Standing {
    /// The standing of a principal under a snapshot.
    #[must_use]
    pub fn of(principal: &Principal, snapshot: &Snapshot) -> Self {
        let grants = || snapshot.grants.iter().enumerate();
        if !principal.needs_delegation() && !grants().any(|(_, grant)| grant.names(principal)) {
            return Self::Own;
        }
        Self::Delegated(grants().filter(|(_, grant)| grant.matches(principal)).map(|(place, _)| place).collect())
    }

    /// Refuses a caller that acts under delegations and has none that is active: for every operation alike.
    ///
    /// # Errors
    /// `NoDelegation`.
    pub fn check(&self, snapshot: &Snapshot, now: Timestamp) -> Result<(), Refusal> {
        let active = |place: &usize| snapshot.grants.get(*place).is_some_and(|grant| grant.is_active(now));
        match self {
            Self::Delegated(places) if !places.iter().any(active) => Err(Refusal::new(DenyReason::NoDelegation)),
            _ => Ok(()),
        }
    }
}

/// The verifier of one snapshot with the tokens that it verified. A new snapshot starts with none: keys, tenants and delegations
/// may have changed.
#[derive(Debug)]
pub struct Tokens {
    verifier: Verifier,
    known: quick_cache::sync::Cache<[u8; 32], Arc<Caller>>,
}

impl Tokens {
    /// For one snapshot.
    #[must_use]
    pub fn new(snapshot: &Snapshot) -> Self {
        Self { verifier: Verifier::new(&snapshot.access), known: quick_cache::sync::Cache::new(TOKENS) }
    }

    /// The caller that presents this token.
    ///
    /// # Errors
    /// One of the `Token…` reasons.
    pub fn caller(
        &self,
        token: &str,
        snapshot: &Snapshot,
        policy: &Policy,
        buckets: &Buckets,
        now: Timestamp,
    ) -> Result<Arc<Caller>, Refusal> {
        let key = *Digest::of(token.as_bytes()).as_bytes();
        let principal = match self.known.get(&key) {
            Some(caller) if now >= caller.until => {
                self.known.remove(&key);
                return Err(Refusal::new(DenyReason::TokenExpired));
            }
            Some(caller) if caller.authority.as_ref().is_some_and(|known| policy.accepts(known, now)) => {
                return Ok(caller);
            }
            // A delegation began or ended: the token is still good, what it amounts to is not.
            Some(caller) => Arc::clone(&caller.principal),
            None => Arc::new(self.verifier.verify(token)?),
        };
        let owner = Arc::new(Owner::of(&principal));
        let leeway = SignedDuration::from_secs(LEEWAY_SECONDS);
        let caller = Arc::new(Caller {
            authority: policy.authority(&principal, now).ok(),
            bucket: buckets.principal(&owner),
            standing: Standing::of(&principal, snapshot),
            until: principal.expires_at.checked_add(leeway).unwrap_or(Timestamp::MAX),
            owner,
            principal,
        });
        self.known.insert(key, Arc::clone(&caller));
        Ok(caller)
    }

    /// Whether any issuer has a key that can verify a token.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.verifier.usable_issuers().is_empty()
    }
}

impl Shared {
    /// Refuses where the operator has not been heard for too long and the snapshot says to refuse then.
    ///
    /// # Errors
    /// `SnapshotStale`.
    pub fn check_fresh(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        use cotter_core::snapshot::StaleAction;
        let Some(contact) = self.contact.as_ref().filter(|_| snapshot.stale.action == StaleAction::Refuse) else {
            return Ok(());
        };
        if contact.silence() > Duration::from_millis(snapshot.stale.after_ms) {
            return Err(Refusal::new(DenyReason::SnapshotStale));
        }
        Ok(())
    }
}
