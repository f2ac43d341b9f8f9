//! How many tools are in which state, all live sidecars together: the worst of them counts.

use std::collections::BTreeSet;

use cotter_core::{
    catalogue::ToolState,
    report::{Knowledge, Report},
};
use cotter_crds::server::ToolCounts;

use super::small;

/// A declared tool as all sidecars together see it. Worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Quarantined,
    Missing,
    Callable,
}

/// The counts. Before a sidecar has read the list, every declared tool is uncallable and so counts as quarantined.
pub(crate) fn counts<'a>(declared: impl Iterator<Item = &'a str>, reports: &[&Report], drifted: usize) -> ToolCounts {
    let seen: Vec<Seen> = declared.map(|name| worst(name, reports)).collect();
    let total = seen.len();
    let number = |wanted: Seen| small(seen.iter().filter(|seen| **seen == wanted).count());
    let most = |pick: fn(&Report) -> u32| {
        let most = reports.iter().map(|report| pick(report)).max().unwrap_or_default();
        i32::try_from(most).unwrap_or(i32::MAX)
    };
    ToolCounts {
        declared: small(total),
        callable: number(Seen::Callable),
        quarantined: number(Seen::Quarantined),
        missing: number(Seen::Missing),
        offered: most(|report| report.catalogue.offered),
        unlisted: most(|report| report.catalogue.unlisted),
        drifted: small(drifted),
        callable_of_declared: String::new(),
    }
    .with_column()
}

fn worst(name: &str, reports: &[&Report]) -> Seen {
    reports.iter().map(|report| seen(name, report)).min().unwrap_or(Seen::Quarantined)
}

fn seen(name: &str, report: &Report) -> Seen {
    let serves = matches!(report.catalogue.knowledge, Knowledge::Verified | Knowledge::Grace { .. });
    let tool = report.catalogue.tools.iter().find(|tool| tool.name == name);
    match tool {
        Some(tool) if tool.callable && serves => Seen::Callable,
        Some(tool) if matches!(tool.state, ToolState::Removed | ToolState::Missing) => Seen::Missing,
        _ => Seen::Quarantined,
    }
}

/// Names of the tools that the sidecars' own snapshots declare: what is in force where a newer spec cannot be used.
pub(crate) fn in_force<'a>(reports: &[&'a Report]) -> BTreeSet<&'a str> {
    let tools = reports.iter().flat_map(|report| &report.catalogue.tools);
    tools.filter(|tool| tool.declared).map(|tool| tool.name.as_str()).collect()
}

/// Names of the tools that every live sidecar lets through.
pub(crate) fn callable(reports: &[&Report]) -> BTreeSet<String> {
    let names = reports.iter().flat_map(|report| &report.catalogue.tools).map(|tool| tool.name.as_str());
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().filter(|name| worst(name, reports) == Seen::Callable).map(str::to_owned).collect()
}
