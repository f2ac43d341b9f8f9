//! Drift between consecutive releases of real servers, against verdicts that a person has reviewed.

use std::collections::BTreeMap;

use cotter_core::drift::{Class, Drift, classify};
use cotter_core::fingerprint::Ignore;
use cotter_core::scan::Finding;
use serde::Serialize;

use super::captures::{Capture, all};

#[derive(Serialize)]
struct Pair {
    server: String,
    from: String,
    to: String,
    matched: usize,
    added: Vec<String>,
    removed: Vec<String>,
    drifted: Vec<Drifted>,
}

#[derive(Serialize)]
struct Drifted {
    tool: String,
    class: Class,
    /// Each field with its own class and reason.
    fields: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifted: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

#[test]
fn consecutive_releases_have_the_reviewed_verdicts() {
    let golden = crate::path("golden/drift.yaml");
    let found = serde_saphyr::to_string(&pairs()).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &found).unwrap();
    }
    let reviewed = std::fs::read_to_string(&golden).unwrap();
    let line = found.lines().zip(reviewed.lines()).position(|(found, reviewed)| found != reviewed);
    assert!(found == reviewed, "verdicts moved from line {:?} of {} on", line.map(|l| l + 1), golden.display());
}

#[test]
fn the_flip_of_move_file_is_the_only_drift_of_its_release() {
    let pair = pair(&Capture::read("filesystem@2026.1.14"), &Capture::read("filesystem@2026.7.4"));
    assert_eq!((pair.matched, pair.added.len(), pair.removed.len(), pair.drifted.len()), (13, 0, 0, 1));
    let drifted = &pair.drifted[0];
    assert_eq!((drifted.tool.as_str(), drifted.class), ("move_file", Class::AuthorityExpanding));
    assert_eq!(drifted.fields, ["/annotations/destructiveHint: AuthorityExpanding, behaviour hint changed"]);
}

#[test]
fn an_upgrade_of_the_sdk_alone_is_cosmetic_for_all_fourteen_tools() {
    let pair = pair(&Capture::read("filesystem@2026.8.31"), &Capture::read("filesystem@2.0.1"));
    assert_eq!(pair.drifted.len(), 14);
    assert!(pair.drifted.iter().all(|drifted| drifted.class == Class::Cosmetic));
}

#[test]
fn one_release_never_drifts_against_itself_whatever_the_revision() {
    for capture in all() {
        let again = pair(&capture, &capture);
        assert_eq!((again.matched, again.drifted.len()), (capture.tools.len(), 0));
    }
    let modern = pair(&Capture::read("filesystem@2.0.1"), &Capture::read("filesystem@2.0.1+modern"));
    assert_eq!((modern.matched, modern.drifted.len()), (14, 0));
}

fn pairs() -> Vec<Pair> {
    let mut servers: BTreeMap<String, Vec<Capture>> = BTreeMap::new();
    for capture in all().into_iter().filter(|capture| !capture.version.contains('+')) {
        servers.entry(capture.server.clone()).or_default().push(capture);
    }
    let mut pairs = Vec::new();
    for mut releases in servers.into_values() {
        releases.sort_by_key(|release| age(&release.version));
        pairs.extend(releases.windows(2).map(|two| pair(&two[0], &two[1])));
    }
    pairs
}

/// Releases in the order of publication: 0.x, then those named by their date, then 2.x, which came after them.
fn age(version: &str) -> (u8, Vec<u32>) {
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
    let line = match parts[0] {
        0 => 0,
        2000.. => 1,
        _ => 2,
    };
    (line, parts)
}

fn pair(before: &Capture, after: &Capture) -> Pair {
    let missing = |from: &Capture, names: &Capture| {
        let known = |name: &str| from.tools.iter().any(|tool| tool.name == name);
        let mut missing: Vec<String> = names.tools.iter().map(|tool| tool.name.clone()).collect();
        missing.retain(|name| !known(name));
        missing.sort();
        missing
    };
    let (added, removed) = (missing(before, after), missing(after, before));
    let mut kept: Vec<_> = before.tools.iter().filter(|tool| !removed.contains(&tool.name)).collect();
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    let verdicts = kept.iter().map(|old| classify(&old.value, &after.tool(&old.name).value, &Ignore::NONE));
    let drifted = kept.iter().zip(verdicts).filter_map(|(old, drift)| Some(drifted(&old.name, drift?)));
    let drifted: Vec<Drifted> = drifted.collect();
    Pair {
        server: before.server.clone(),
        from: before.version.clone(),
        to: after.version.clone(),
        matched: kept.len() - drifted.len(),
        added,
        removed,
        drifted,
    }
}

fn drifted(tool: &str, drift: Drift) -> Drifted {
    let field = |change: &cotter_core::drift::Change| format!("{}: {}, {}", change.pointer, change.class, change.why);
    Drifted {
        tool: tool.to_owned(),
        class: drift.class,
        fields: drift.changes.iter().map(field).collect(),
        lifted: drift.lifted.map(|why| why.to_string()),
        findings: drift.findings,
    }
}
