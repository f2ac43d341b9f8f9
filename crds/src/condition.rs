//! Conditions: every type and reason that Cotter writes, with one constructor for each outcome.
//!
//! An [`Outcome`] says nothing about time. [`merge`] turns outcomes into conditions: the transition time of a condition
//! moves only when its status does, and conditions that are unchanged compare equal, so that an unchanged status is not
//! written again.

use cotter_core::scan::is_hidden;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

mod outcomes;

pub use outcomes::*;

/// Types of conditions. `Ready` is the summary and stands last.
pub mod types {
    /// The spec can be used.
    pub const ACCEPTED: &str = "Accepted";
    /// Everything that the spec refers to is there.
    pub const RESOLVED_REFS: &str = "ResolvedRefs";
    /// Every issuer has usable keys.
    pub const KEYS_READY: &str = "KeysReady";
    /// Every Rego module is in force.
    pub const POLICIES_READY: &str = "PoliciesReady";
    /// A sidecar serves.
    pub const AVAILABLE: &str = "Available";
    /// Every live sidecar enforces the snapshot of this generation.
    pub const PROGRAMMED: &str = "Programmed";
    /// The server's list was read.
    pub const OBSERVED: &str = "Observed";
    /// What is offered is what was approved.
    pub const IN_SYNC: &str = "InSync";
    /// The delegation permits calls now.
    pub const ACTIVE: &str = "Active";
    /// Every live sidecar concerned enforces this generation.
    pub const ENFORCED: &str = "Enforced";
    /// The summary.
    pub const READY: &str = "Ready";
}

/// Whether something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is.
    True,
    /// It is not.
    False,
    /// It could not be told.
    Unknown,
}

impl Status {
    /// As conditions write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// What is to be said under one type of condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// One of [`types`].
    pub type_: &'static str,
    /// Whether it is so.
    pub status: Status,
    /// Why, in one word that does not change.
    pub reason: &'static str,
    /// What is so, where, and what to do about it.
    pub message: String,
}

/// The longest message, in characters: a table of conditions has to stay readable, and a status small.
const MAX_MESSAGE: usize = 1024;

impl Outcome {
    fn new(type_: &'static str, status: Status, reason: &'static str, message: &str) -> Self {
        Self { type_, status, reason, message: printable(message) }
    }

    /// Whether this is what one hopes for.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == Status::True
    }
}

/// One line without control and invisible characters, bounded: parts of a message may come from a server.
fn printable(message: &str) -> String {
    let mut text = String::new();
    for (at, c) in message.chars().enumerate() {
        if at == MAX_MESSAGE {
            text.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => text.push(' '),
            c if c.is_control() || is_hidden(c) => text.extend(c.escape_unicode()),
            c => text.push(c),
        }
    }
    text
}

/// `Ready` from the outcomes that it sums up, in the order of their importance: the first that is False gives status,
/// reason and message, else the first that is Unknown; with neither it is True.
#[must_use]
pub fn ready_from(parts: &[&Outcome]) -> Outcome {
    let with = |status: Status| parts.iter().find(|part| part.status == status);
    match with(Status::False).or_else(|| with(Status::Unknown)) {
        Some(part) => Outcome { type_: types::READY, ..Outcome::clone(part) },
        None => ready(""),
    }
}

/// The conditions for these outcomes, in their order.
///
/// Guarantees: `observedGeneration` is always the given one; `lastTransitionTime` is `now` for a type that is new or whose
/// status changed, and the old one otherwise; types that are not among the outcomes are gone.
#[must_use]
pub fn merge(old: &[Condition], new: &[Outcome], generation: i64, now: &Time) -> Vec<Condition> {
    let condition = |outcome: &Outcome| {
        let same = old.iter().find(|c| c.type_ == outcome.type_ && c.status == outcome.status.as_str());
        Condition {
            type_: outcome.type_.to_owned(),
            status: outcome.status.as_str().to_owned(),
            reason: outcome.reason.to_owned(),
            message: outcome.message.clone(),
            observed_generation: Some(generation),
            last_transition_time: same.map_or_else(|| now.clone(), |c| c.last_transition_time.clone()),
        }
    };
    new.iter().map(condition).collect()
}

#[cfg(test)]
mod tests;
