//! Revisions of MCP, and which of the two lines of the protocol each belongs to.

use std::collections::BTreeSet;

use cotter_core::decision::Era;

/// Revisions with the `initialize` handshake, oldest first.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Revisions in which every request stands alone, oldest first.
pub const MODERN: [&str; 1] = ["2026-07-28"];

/// The line that a revision belongs to; `None` where it is not known here.
#[must_use]
pub fn era(revision: &str) -> Option<Era> {
    if LEGACY.contains(&revision) {
        Some(Era::Legacy)
    } else if MODERN.contains(&revision) {
        Some(Era::Modern)
    } else {
        None
    }
}

/// Whether a revision of this line may be spoken.
#[must_use]
pub fn allowed(revision: &str, line: Era, pinned: &BTreeSet<String>) -> bool {
    era(revision) == Some(line) && pinned.contains(revision)
}

/// What an `initialize` that asks for `wanted` is answered with: the same where it may be spoken, else the newest legacy
/// revision that may be; `None` where there is none to offer.
#[must_use]
pub fn negotiate(wanted: &str, pinned: &BTreeSet<String>) -> Option<&'static str> {
    let offered = || LEGACY.iter().rev().copied().filter(|revision| pinned.contains(*revision));
    offered().find(|revision| *revision == wanted).or_else(|| offered().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(revisions: &[&str]) -> BTreeSet<String> {
        revisions.iter().map(|r| (*r).to_owned()).collect()
    }

    #[test]
    fn an_unknown_or_unpinned_revision_is_answered_with_the_newest_pinned_one() {
        let both = pinned(&["2025-06-18", "2025-11-25", "2026-07-28"]);
        assert_eq!(negotiate("2025-06-18", &both), Some("2025-06-18"));
        for other in ["2099-01-01", "2024-11-05", "2026-07-28", ""] {
            assert_eq!(negotiate(other, &both), Some("2025-11-25"), "{other}");
        }
    }

    #[test]
    fn with_no_legacy_revision_pinned_nothing_is_offered() {
        assert_eq!(negotiate("2025-11-25", &pinned(&["2026-07-28"])), None);
    }

    #[test]
    fn a_revision_is_allowed_only_in_its_own_era() {
        let both = pinned(&["2025-11-25", "2026-07-28"]);
        assert!(allowed("2026-07-28", Era::Modern, &both));
        assert!(!allowed("2025-11-25", Era::Modern, &both));
        assert!(!allowed("2025-06-18", Era::Legacy, &both));
    }
}
