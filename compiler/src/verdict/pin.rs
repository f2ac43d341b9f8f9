//! The status of a ToolPin.

use std::collections::BTreeMap;

use cotter_core::{
    catalogue::ToolState,
    name::ToolName,
    report::{Knowledge, Report},
    snapshot::{Digest, ToolRule},
};
use cotter_crds::{
    ToolPin, ToolPinStatus,
    condition::{self as say, Outcome},
    pin::{DriftEntry, PinSummary},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Live, count, not_done, refused, settle, small,
    sync::{self, Row},
};
use crate::{plan::Evidence, validate::PinCheck};

/// A status keeps this many differences; the rest is in the ConfigMap of observed definitions.
const MAX_ROWS: usize = 256;

/// How many names a remark lists.
const MAX_NAMED: usize = 5;

/// What the status of a pin is made of.
pub(crate) struct Case<'a> {
    pub(crate) object: &'a ToolPin,
    pub(crate) check: &'a PinCheck,
    /// The other pins that name the same server.
    pub(crate) rivals: Vec<&'a str>,
    pub(crate) live: Live<'a>,
    pub(crate) rows: &'a [Row],
    /// The namespace's other servers, for shadowing.
    pub(crate) others: &'a BTreeMap<String, Evidence>,
    pub(crate) own: &'a Evidence,
    /// The tools that the McpServer declares; `None` where it cannot be read.
    pub(crate) declared: Option<&'a BTreeMap<ToolName, ToolRule>>,
    pub(crate) now: Timestamp,
}

impl Case<'_> {
    pub(crate) fn status(&self) -> ToolPinStatus {
        let generation = self.object.metadata.generation.unwrap_or_default();
        let old = self.object.status.as_ref();
        let accepted = self.accepted();
        let observed = observed(self.live.reports);
        let in_sync = self.in_sync();
        let enforced = enforced(self.live, accepted.is_true());
        let ready = say::ready_from(&[&accepted, &enforced, &observed, &in_sync]);
        let outcomes = [accepted, observed, in_sync, enforced, ready];
        let previous = old.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let mut status = ToolPinStatus {
            observed_generation: Some(generation),
            conditions: say::merge(previous, &outcomes, generation, &Time(self.now)),
            summary: Some(self.summary()),
            drift: self.drift(old),
            last_verified: last_verified(self.live.reports).map(Time),
            scheme: Some(self.check.pin.scheme.to_string()),
            policy: serde_json::to_vec(&self.check.pin).ok().map(|bytes| Digest::of(&bytes).to_string()),
        };
        let time = |status: &ToolPinStatus| status.last_verified.as_ref().map(|time| time.0);
        settle::settle(&mut status, old, time, |new, old| new.last_verified.clone_from(&old.last_verified));
        status
    }

    fn accepted(&self) -> Outcome {
        if !self.rivals.is_empty() {
            return say::conflict(format!(
                "also {} for this server: nothing is approved until one is left, delete the others",
                self.rivals.join(", ")
            ));
        }
        match self.check.problems.is_empty() {
            true => say::accepted(self.remarks()),
            false => refused(&self.check.problems),
        }
    }

    /// What its owner should know although nothing is wrong.
    fn remarks(&self) -> String {
        let mut remarks = not_done(&self.check.unsupported);
        let Some(declared) = self.declared else { return remarks };
        let names = self.check.pin.tools.keys().filter(|name| !declared.contains_key(*name));
        let undeclared: Vec<&str> = names.map(ToolName::as_str).collect();
        if !undeclared.is_empty() {
            let gap = if remarks.is_empty() { "" } else { " " };
            let names = undeclared.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
            remarks.push_str(&format!(
                "{gap}{} pinned and not declared by the McpServer, so that nobody can call it and it is not compared: {names}.",
                count(undeclared.len(), "tool")
            ));
        }
        remarks
    }

    fn in_sync(&self) -> Outcome {
        if !self.rivals.is_empty() {
            return say::not_observed("not compared, because several pins name the server");
        }
        sync::in_sync(self.rows, self.live, self.check.pin.tools.len())
    }

    fn summary(&self) -> PinSummary {
        let pinned = &self.check.pin.tools;
        if !self.rivals.is_empty() {
            return PinSummary { pinned: small(pinned.len()), ..PinSummary::default() }.with_column();
        }
        let of = |state: ToolState| self.rows_of(state);
        let matched = pinned.keys().filter(|name| matches(name.as_str(), self.live.reports)).count();
        let shadowed = pinned.keys().filter(|name| self.is_shadowed(name.as_str())).count();
        PinSummary {
            pinned: small(pinned.len()),
            matched: small(matched),
            drifted: small(sync::drifted(self.rows).len()),
            removed: small(of(ToolState::Removed)),
            added: small(of(ToolState::Added)),
            shadowed: small(shadowed),
            matched_of_pinned: String::new(),
        }
        .with_column()
    }

    fn rows_of(&self, state: ToolState) -> usize {
        let tools = self.live.reports.iter().flat_map(|report| &report.catalogue.tools);
        let names: std::collections::BTreeSet<&str> =
            tools.filter(|tool| tool.state == state).map(|tool| tool.name.as_str()).collect();
        names.len()
    }

    /// Whether another server of the namespace, open to a tenant of this one, lets the same name be called.
    fn is_shadowed(&self, name: &str) -> bool {
        let any = |evidence: &Evidence| evidence.tenants.contains("*");
        self.others.values().filter(|other| other.callable.contains(name)).any(|other| {
            let open = !other.tenants.is_empty() && !self.own.tenants.is_empty();
            open && (any(other) || any(self.own) || !other.tenants.is_disjoint(&self.own.tenants))
        })
    }

    fn drift(&self, old: Option<&ToolPinStatus>) -> Vec<DriftEntry> {
        let before = old.map(|status| status.drift.as_slice()).unwrap_or_default();
        if !self.rivals.is_empty() {
            return Vec::new();
        }
        self.rows.iter().take(MAX_ROWS).map(|row| self.entry(row, before)).collect()
    }

    fn entry(&self, row: &Row, before: &[DriftEntry]) -> DriftEntry {
        let class = format!("{:?}", row.class);
        let observed = row.observed.map(|found| found.to_string());
        let same = before.iter().find(|old| old.tool == row.tool && old.class == class && old.observed == observed);
        DriftEntry {
            tool: row.tool.clone(),
            fields: row.fields.iter().take(MAX_ROWS).cloned().collect(),
            approved: row.approved.map(|approved| approved.to_string()),
            replicas: small(row.replicas),
            since: same.and_then(|old| old.since.clone()).or(Some(Time(self.now))),
            action: row.action().to_owned(),
            findings: row.findings.iter().map(|finding| format!("{finding:?}")).collect(),
            class,
            observed,
        }
    }
}

/// Whether every live sidecar sees the approved tool, and there is one.
fn matches(name: &str, reports: &[&Report]) -> bool {
    let matched = |report: &&Report| {
        report.catalogue.tools.iter().any(|tool| tool.name == name && tool.state == ToolState::Matched)
    };
    !reports.is_empty() && reports.iter().all(matched)
}

fn observed(reports: &[&Report]) -> Outcome {
    if reports.is_empty() {
        return say::not_yet_observed("no sidecar is connected");
    }
    for report in reports {
        match &report.catalogue.knowledge {
            Knowledge::Verified => {}
            Knowledge::NeverRead { why } => return say::not_yet_observed(why),
            Knowledge::Grace { why } | Knowledge::Expired { why } => return say::lost(why),
        }
    }
    say::observed("")
}

fn enforced(live: Live<'_>, accepted: bool) -> Outcome {
    if !accepted {
        return say::enforcing("what was not accepted matches nothing");
    }
    match (live.desired, live.reports.len()) {
        (_, 0) => say::not_enforced("no sidecar is connected"),
        (None, _) => say::enforcing("the McpServer cannot be used as it is; what was in force before still is"),
        (Some(_), all) if live.is_programmed() => say::enforced(format!("{all} of {all} sidecars")),
        (Some(_), all) => say::enforcing(format!("{} of {all} sidecars", live.enforced())),
    }
}

/// The oldest of the sidecars' last whole readings; none while one of them has not read yet.
fn last_verified(reports: &[&Report]) -> Option<Timestamp> {
    let times: Option<Vec<Timestamp>> = reports.iter().map(|report| report.catalogue.verified_at).collect();
    times?.into_iter().min()
}

/// The status of a pin whose McpServer does not exist: it is checked all the same, and compared with nothing.
#[must_use]
pub fn orphan_pin_status(object: &ToolPin, now: Timestamp) -> ToolPinStatus {
    let check = crate::validate::pin(object, &BTreeMap::new());
    let live = Live { reports: &[], desired: None };
    let (others, own) = (BTreeMap::new(), Evidence::default());
    let rivals = Vec::new();
    let case = Case { object, check: &check, rivals, live, rows: &[], others: &others, own: &own, declared: None, now };
    let mut status = case.status();
    let missing = format!(
        "there is no McpServer {} in this namespace: create it, or correct spec.serverRef.name",
        object.spec.server_ref.name
    );
    let generation = object.metadata.generation.unwrap_or_default();
    let accepted = case.accepted();
    let (observed, in_sync, enforced) =
        (say::not_yet_observed(&missing), say::not_observed(&missing), say::not_enforced(&missing));
    let ready = say::ready_from(&[&accepted, &observed, &enforced, &in_sync]);
    let old = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let outcomes = [accepted, observed, in_sync, enforced, ready];
    status.conditions = say::merge(old, &outcomes, generation, &Time(now));
    status
}
