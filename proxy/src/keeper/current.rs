//! The snapshot in force with what belongs to it: rules, keys, the way to the server and the reader of its list.

use std::{path::PathBuf, sync::Arc, time::Duration};

use cotter_core::{
    catalogue::{self, Catalogue},
    name::ServerRef,
    report::Definitions,
    snapshot::{Digest, Sealed},
};
use cotter_policies::Policy;

use super::{Kept, way::Way};
use crate::{
    ledger::Budgets,
    schemas::Schemas,
    state::{Enforced, Tokens},
    upstream::{Bounds, Upstream},
};

/// Bounds of the way to the server. What a request and a result may have is bounded by the snapshot, call by call; these are the
/// same for all, so that a change of limits does not restart a server.
const BOUNDS: Bounds = Bounds { connect: Duration::from_secs(5), start: Duration::from_secs(30) };

/// A snapshot in force.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) sealed: Sealed,
    pub(super) way: Way,
    pub(super) budgets: Arc<Budgets>,
    policy: Arc<Policy>,
    tokens: Arc<Tokens>,
    verified: Option<Verified>,
}

/// A catalogue with the digests of the snapshot and of the list that it was made from.
#[derive(Debug)]
struct Verified {
    from: (Digest, Digest),
    catalogue: Arc<Catalogue>,
    schemas: Arc<Schemas>,
    definitions: Arc<Definitions>,
}

/// A snapshot that can be enforced, not yet in force.
pub(super) struct Prepared {
    sealed: Sealed,
    policy: Arc<Policy>,
    tokens: Arc<Tokens>,
    upstream: Upstream,
    /// Whether the way to the server is the one before.
    same: bool,
}

impl Prepared {
    /// Checks everything that can refuse a snapshot, and changes nothing.
    pub(super) async fn new(
        sealed: Sealed,
        server: &ServerRef,
        before: Option<&Current>,
        work_dir: Option<PathBuf>,
    ) -> Result<Self, String> {
        if sealed.snapshot().server != *server {
            return Err(format!("it is for {}, and this sidecar guards {server}", sealed.snapshot().server));
        }
        let snapshot = Arc::clone(sealed.snapshot());
        // Parsing rules takes a while: on a thread that serves no request.
        let former = before.map(|before| Arc::clone(&before.policy));
        let prepare = move || Policy::after(former.as_deref(), &snapshot).map_err(|error| error.to_string());
        let policy = tokio::task::spawn_blocking(prepare);
        let policy = Arc::new(policy.await.map_err(|_| "the policy could not be prepared".to_owned())??);
        let tokens = Arc::new(Tokens::new(sealed.snapshot()));
        let config = &sealed.snapshot().upstream;
        let same = before.filter(|before| before.sealed.snapshot().upstream == *config);
        let upstream = match same {
            Some(before) => before.way.server.upstream.clone(),
            None => Upstream::new(config, BOUNDS, work_dir).map_err(|error| error.to_string())?,
        };
        Ok(Self { same: same.is_some(), sealed, policy, tokens, upstream })
    }

    /// Puts it in force after another one, and gives back the way to the server that is left behind.
    pub(super) fn enter(self, before: Option<Current>) -> (Current, Option<Way>) {
        let verify = self.sealed.snapshot().verify;
        let before = before.map(|before| before.way);
        let generation = before.as_ref().map_or(0, |way| way.server.generation + 1);
        let (way, left) = match before {
            Some(mut way) if self.same => {
                way.adapt(verify);
                (way, None)
            }
            before => (Way::new(self.upstream, generation, verify), before),
        };
        let budgets = Arc::new(Budgets::of(self.sealed.snapshot()));
        let Self { sealed, policy, tokens, .. } = self;
        (Current { sealed, way, budgets, policy, tokens, verified: None }, left)
    }
}

impl Current {
    /// What is enforced now.
    pub(super) async fn enforced(&mut self) -> Kept {
        let (catalogue, schemas, definitions) = self.verify().await;
        let snapshot = self.sealed.snapshot();
        let approved = snapshot.pin.as_ref().and_then(|pin| pin.instructions);
        let enforced = Enforced {
            sealed: self.sealed.clone(),
            policy: Arc::clone(&self.policy),
            tokens: Arc::clone(&self.tokens),
            budgets: Arc::clone(&self.budgets),
            server: self.way.server.clone(),
            catalogue,
            schemas,
            knowledge: self.way.knowledge(),
            verified_at: self.way.verified_at(),
            surface: self.way.surface(),
            instructions: self.way.instructions().filter(|text| approved == Some(Digest::of(text.as_bytes()))),
        };
        (Arc::new(enforced), definitions)
    }

    /// The catalogue of this snapshot and of what was read last; made anew only when one of the two changed.
    async fn verify(&mut self) -> (Arc<Catalogue>, Arc<Schemas>, Arc<Definitions>) {
        let Some(observed) = self.way.observed() else { return <_>::default() };
        let from = (self.sealed.digest(), observed.digest);
        match &self.verified {
            Some(verified) if verified.from == from => {}
            _ => {
                let catalogue = Arc::new(Catalogue::verify(self.sealed.snapshot(), &observed));
                let definitions = Arc::new(catalogue::definitions(&observed));
                let before = self.verified.as_ref().map(|verified| Arc::clone(&verified.schemas));
                let schemas = Arc::new(Schemas::prepare(Arc::clone(&catalogue), before).await);
                self.verified = Some(Verified { from, catalogue, schemas, definitions });
            }
        }
        let made = self.verified.as_ref();
        let parts =
            |made: &Verified| (Arc::clone(&made.catalogue), Arc::clone(&made.schemas), Arc::clone(&made.definitions));
        made.map(parts).unwrap_or_default()
    }
}
