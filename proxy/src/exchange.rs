//! One request whose caller is known: what every step after the token works with.

use std::sync::Arc;

use cotter_core::{decision::Era, reason::DenyReason};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;

use crate::{
    audit::Trail,
    hygiene, metadata,
    respond::{self, Asked, Refusal, Reply, With},
    state::{Caller, Enforced, Shared, Standing},
};

/// The revision that a client says it speaks.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The id of a legacy session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// One request, under one set of rules from beginning to end.
#[derive(Debug)]
pub struct Exchange {
    /// What all requests share.
    pub shared: Arc<Shared>,
    /// The rules.
    pub enforced: Arc<Enforced>,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The headers.
    pub headers: HeaderMap,
    /// The Host that the client meant.
    pub host: String,
}

impl Exchange {
    /// The answer to a refusal, noted on the trail.
    #[must_use]
    pub fn refuse(&self, refusal: &Refusal, id: Option<&str>, era: Option<Era>, trail: &mut Trail) -> Reply {
        trail.refuses(refusal);
        let access = &self.enforced.snapshot().access;
        let asked = Asked {
            id,
            era,
            snapshot: Some(self.enforced.digest()),
            metadata: Some(metadata::url(access, &self.host)),
            advertised: &access.advertised_scopes,
        };
        respond::refuse(refusal, &asked)
    }

    /// A header that may occur once.
    ///
    /// # Errors
    /// `HeaderMismatch` where it is repeated.
    pub fn header(&self, name: &HeaderName) -> Result<Option<&str>, Refusal> {
        match hygiene::single(&self.headers, name) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(Refusal::because(DenyReason::HeaderMismatch, format!("{name} is repeated or not ASCII"))),
        }
    }

    /// The refusal of a revision, with those that may be spoken.
    #[must_use]
    pub fn unsupported(&self, requested: &str) -> Refusal {
        let supported = self.enforced.snapshot().protocol.revisions.iter().cloned().collect();
        let requested: String = requested.chars().take(64).collect();
        Refusal::new(DenyReason::UnsupportedRevision).with(With::Revisions { supported, requested })
    }

    /// Notes a refused call on the delegations that the caller acts under.
    pub fn count_denied(&self, now: Timestamp) {
        let Standing::Delegated(places) = &self.caller.standing else { return };
        for grant in places.iter().filter_map(|place| self.enforced.snapshot().grants.get(*place)) {
            self.shared.uses.denied(&Arc::from(grant.name.as_str()), now);
        }
    }
}
