//! What the operator told of one budget, and what follows from it in time.

use std::time::Duration;

use cotter_core::budget::{MINUTE, Share};

/// The newest share with what of earlier ones still counts.
///
/// A share of a minute that grows does so a minute later: until then the others may have used what they had before. One that shrinks
/// does so at once. A sidecar that is told for the first time leaves alone what others, or its own last run, used in the last minute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    share: Share,
    smaller: Option<(Share, Duration)>,
    beginning: Option<(u64, Duration)>,
}

impl Told {
    /// Nobody else charges to it.
    pub(super) const fn alone() -> Self {
        Self { share: Share { elsewhere: 0, recent: 0, sidecars: 1, place: 0 }, smaller: None, beginning: None }
    }

    /// A share that was told after another one.
    pub(super) fn new(before: Option<Self>, share: Share, now: Duration) -> Self {
        let until = now + MINUTE;
        let Some(before) = before else { return Self { share, smaller: None, beginning: Some((share.recent, until)) } };
        // An operator that restarted may not have heard of everything yet that was known before.
        let share = Share { elsewhere: share.elsewhere.max(before.share.elsewhere), ..share };
        let held = before.smaller.filter(|(_, until)| *until > now);
        let order = |share: &Share| (share.sidecars, share.place);
        let smaller = if order(&share) < order(&before.share) {
            let least = held.map(|(held, _)| held).filter(|held| order(held) > order(&before.share));
            Some((least.unwrap_or(before.share), until))
        } else {
            held
        };
        Self { share, smaller, beginning: before.beginning }
    }

    pub(super) const fn elsewhere(&self) -> u64 {
        self.share.elsewhere
    }

    pub(super) const fn is_alone(&self) -> bool {
        self.share.sidecars <= 1
    }

    /// How many calls this sidecar may make in a minute.
    pub(super) fn limit(&self, per_minute: u64, now: Duration) -> u64 {
        let own = self.share.of(per_minute);
        let held = self.smaller.filter(|(_, until)| *until > now).map(|(share, _)| share.of(per_minute));
        let first = self.beginning.filter(|(_, until)| *until > now).map(|(used, _)| per_minute.saturating_sub(used));
        [held, first].into_iter().flatten().fold(own, u64::min)
    }
}
