//! Drift as live sidecars see it, and whether what is offered is what was approved.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    catalogue::ToolState,
    drift::Class,
    fingerprint::Fingerprint,
    report::{Knowledge, Report, ToolReport},
    scan::Finding,
};
use cotter_crds::condition::{self as say, Outcome};

use super::{Live, count};

/// One difference, and how many sidecars see it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) tool: String,
    pub(crate) class: Class,
    pub(crate) fields: Vec<String>,
    pub(crate) approved: Option<Fingerprint>,
    pub(crate) observed: Option<Fingerprint>,
    pub(crate) quarantined: bool,
    pub(crate) findings: Vec<Finding>,
    pub(crate) replicas: usize,
}

impl Row {
    /// What is done about it. A tool that is gone cannot be quarantined.
    pub(crate) const fn action(&self) -> &'static str {
        if self.quarantined { "Quarantined" } else { "Reported" }
    }
}

/// Every difference that a live sidecar sees, sorted by tool and then by how bad it is.
pub(crate) fn rows(reports: &[&Report]) -> Vec<Row> {
    let mut rows: BTreeMap<(String, Class, Option<Fingerprint>, bool), Row> = BTreeMap::new();
    for tool in reports.iter().flat_map(|report| &report.catalogue.tools) {
        let Some(class) = class(tool) else { continue };
        let quarantined = !tool.callable && class != Class::Removed;
        let row = rows.entry((tool.name.clone(), class, tool.observed, quarantined));
        row.or_insert_with(|| Row {
            tool: tool.name.clone(),
            class,
            fields: tool.fields.clone(),
            approved: tool.approved,
            observed: tool.observed,
            quarantined,
            findings: tool.findings.clone(),
            replicas: 0,
        })
        .replicas += 1;
    }
    rows.into_values().collect()
}

fn class(tool: &ToolReport) -> Option<Class> {
    match tool.state {
        ToolState::Matched | ToolState::Unpinned | ToolState::Missing => None,
        ToolState::Drifted => Some(tool.class.unwrap_or(Class::AuthorityExpanding)),
        ToolState::Added => Some(Class::Added),
        ToolState::Ambiguous => Some(Class::Ambiguous),
        ToolState::Removed => Some(Class::Removed),
    }
}

/// Tools that are pinned, offered, and not what was approved.
pub(crate) fn drifted(rows: &[Row]) -> BTreeSet<&str> {
    let differs = |row: &&Row| row.approved.is_some() && row.class != Class::Removed;
    rows.iter().filter(differs).map(|row| row.tool.as_str()).collect()
}

/// `InSync`: False as soon as one sidecar sees a difference; True only where every live sidecar has compared the whole
/// list with exactly what is wanted; Unknown otherwise. "Could not check" is never shown as clean.
pub(crate) fn in_sync(rows: &[Row], live: Live<'_>, pinned: usize) -> Outcome {
    let worst = rows.iter().map(|row| row.class).min();
    match worst {
        Some(Class::Cosmetic) | None => {}
        Some(class) => return different(class, &differences(rows)),
    }
    if let Some(unknown) = not_compared(live) {
        return unknown;
    }
    match worst {
        Some(_) => say::cosmetic_only(differences(rows)),
        None => say::verified(format!("{} as approved", are(pinned))),
    }
}

fn are(pinned: usize) -> String {
    format!("{} {}", count(pinned, "tool"), if pinned == 1 { "is" } else { "are" })
}

fn different(class: Class, message: &str) -> Outcome {
    match class {
        Class::AuthorityExpanding => say::authority_expanding(message),
        Class::Ambiguous => say::ambiguous(message),
        Class::Added => say::added(message),
        Class::Text => say::text(message),
        Class::Additive => say::additive(message),
        Class::Narrowing => say::narrowing(message),
        Class::Removed => say::removed(message),
        Class::Cosmetic => say::cosmetic_only(message),
    }
}

/// How many differences a message names.
const NAMED: usize = 5;

fn differences(rows: &[Row]) -> String {
    let named: Vec<String> =
        rows.iter().take(NAMED).map(|row| format!("{}: {:?}, {}", row.tool, row.class, row.action())).collect();
    let more = rows.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("{}{more}", named.join("; "))
}

/// Why it cannot be told whether everything is as approved; `None` where every live sidecar has compared.
pub(crate) fn not_compared(live: Live<'_>) -> Option<Outcome> {
    if live.reports.is_empty() {
        return Some(say::not_observed("no sidecar is connected"));
    }
    for report in live.reports {
        match &report.catalogue.knowledge {
            Knowledge::Verified => {}
            Knowledge::NeverRead { why } => return Some(say::not_observed(why)),
            Knowledge::Grace { why } | Knowledge::Expired { why } => return Some(say::unreachable(why)),
        }
    }
    let behind = live.reports.len() - live.enforced();
    (behind > 0).then(|| say::not_observed(format!("{} not compared with this revision yet", have(behind))))
}

fn have(behind: usize) -> String {
    format!("{} {}", count(behind, "sidecar"), if behind == 1 { "has" } else { "have" })
}
