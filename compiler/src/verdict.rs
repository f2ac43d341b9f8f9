//! Status: made of what was accepted and of what live sidecars report, never of what was intended.

mod budget;
pub(crate) mod delegation;
pub(crate) mod evidence;
pub(crate) mod pin;
pub(crate) mod server;
mod settle;
pub(crate) mod sync;
pub(crate) mod tools;

use cotter_core::{report::Report, snapshot::Digest};
use cotter_crds::condition::{self as say, Outcome};

use crate::problem::{Kind, Problems};

/// What the live sidecars report, and which snapshot they are to enforce.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live<'a> {
    /// The reports, sorted by sidecar.
    pub(crate) reports: &'a [&'a Report],
    /// The wanted snapshot; `None` where there is none to want.
    pub(crate) desired: Option<Digest>,
}

impl Live<'_> {
    /// How many live sidecars enforce exactly the wanted snapshot.
    pub(crate) fn enforced(&self) -> usize {
        self.reports.iter().filter(|report| self.is_current(report)).count()
    }

    /// Whether every live sidecar does, and there is one.
    pub(crate) fn is_programmed(&self) -> bool {
        !self.reports.is_empty() && self.enforced() == self.reports.len()
    }

    fn is_current(&self, report: &Report) -> bool {
        self.desired.is_some() && report.enforced == self.desired
    }
}

/// `Accepted` False, with the reason that the problems have.
pub(crate) fn refused(problems: &Problems) -> Outcome {
    let text = problems.to_string();
    match problems.kind() {
        Kind::Invalid => say::invalid(text),
        Kind::Unsupported => say::unsupported(text),
        Kind::PeriodTooLong => say::period_too_long(text),
        Kind::DefinitionMismatch => say::definition_mismatch(text),
    }
}

/// A sentence about what is declared and not done; empty where there is nothing of the kind.
pub(crate) fn not_done<S: AsRef<str>>(parts: &[S]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    format!("This version does nothing with {}.", names.join(", "))
}

/// `1 tool`, `2 tools`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A number for a status, which counts in 32 bits.
pub(crate) fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
