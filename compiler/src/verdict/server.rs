//! The status of an McpServer.

use cotter_core::{
    catalogue::ToolState,
    report::{Knowledge, Report},
};
use cotter_crds::{
    McpServer, McpServerStatus,
    condition::{self as say, Outcome},
    server::{Observed, ServerInfo, SnapshotStatus, SurfaceStatus, ToolCounts},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Live, count, settle, small,
    sync::{self, Row},
    tools,
};
use crate::{
    build::{LABEL_SERVER, observed_name},
    server::Server,
    world::{Mode, Unresolved},
};

/// What was found before anything was reported.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) accepted: Outcome,
    /// Absent where the spec could not be read that far.
    pub(crate) keys: Option<Outcome>,
    pub(crate) policies: Option<Outcome>,
}

/// What the status of a server is made of.
pub(crate) struct Case<'a> {
    pub(crate) object: &'a McpServer,
    pub(crate) mode: &'a Mode,
    /// The parsed server; `None` where it could not be parsed.
    pub(crate) server: Option<&'a Server>,
    pub(crate) findings: Findings,
    /// Names of the pins that name it.
    pub(crate) pins: Vec<&'a str>,
    /// How many tools the one pin has.
    pub(crate) pinned: usize,
    pub(crate) live: Live<'a>,
    pub(crate) rows: &'a [Row],
    pub(crate) ready_pods: Option<u32>,
    pub(crate) has_observed: bool,
    pub(crate) now: Timestamp,
}

impl Case<'_> {
    pub(crate) fn status(self) -> McpServerStatus {
        let generation = self.object.metadata.generation.unwrap_or_default();
        let old = self.object.status.as_ref();
        let counts = self.counts();
        let previous = old.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let outcomes = self.outcomes(&counts);
        let mut status = McpServerStatus {
            observed_generation: Some(generation),
            conditions: say::merge(previous, &outcomes, generation, &Time(self.now)),
            endpoint: self.endpoint().or_else(|| old.and_then(|status| status.endpoint.clone())),
            observed: self.observed().or_else(|| old.and_then(|status| status.observed.clone())),
            snapshot: self.snapshot(old),
            surface: surface(self.live.reports).or_else(|| old.and_then(|status| status.surface.clone())),
            tools: Some(counts),
        };
        settle::settle(&mut status, old, checked_at, |new, old| {
            if let (Some(new), Some(old)) = (&mut new.surface, &old.surface) {
                new.checked_at.clone_from(&old.checked_at);
            }
        });
        status
    }

    fn outcomes(&self, counts: &ToolCounts) -> Vec<Outcome> {
        let (available, programmed, in_sync) = (self.available(), self.programmed(), self.in_sync());
        let Findings { accepted, keys, policies } = &self.findings;
        let mut parts: Vec<&Outcome> = vec![accepted];
        parts.extend(policies);
        parts.extend(keys);
        parts.extend([&available, &programmed]);
        // Drift of some tools leaves a server ready: the others go on. With nothing left to call it is not.
        if counts.callable == 0 {
            parts.push(&in_sync);
        }
        let ready = say::ready_from(&parts);
        let mut all = vec![accepted.clone()];
        all.extend(keys.clone());
        all.extend(policies.clone());
        all.extend([available, programmed, in_sync, ready]);
        all
    }

    fn counts(&self) -> ToolCounts {
        let drifted = sync::drifted(self.rows).len();
        match self.server {
            Some(server) => tools::counts(server.tools.keys().map(|name| name.as_str()), self.live.reports, drifted),
            None => tools::counts(tools::in_force(self.live.reports).into_iter(), self.live.reports, drifted),
        }
    }

    fn endpoint(&self) -> Option<String> {
        let server = self.server?;
        Some(match self.mode {
            Mode::Cluster(_) => format!("http://{}.{}.svc:80/mcp", server.id.name, server.id.namespace),
            Mode::Local(folder) => format!("http://127.0.0.1:{}/mcp", folder.port),
        })
    }

    fn observed(&self) -> Option<Observed> {
        let in_cluster = matches!(self.mode, Mode::Cluster(_)) && self.has_observed;
        let name = in_cluster.then_some(self.server)?.map(|server| observed_name(server.id.name.as_str()))?;
        Some(Observed { config_map: name })
    }

    /// Without a wanted snapshot the one that was wanted before is still the one that counts.
    fn snapshot(&self, old: Option<&McpServerStatus>) -> Option<SnapshotStatus> {
        let before = || Some(old?.snapshot.as_ref()?.desired.clone());
        let desired = self.live.desired.map(|digest| digest.to_string()).or_else(before)?;
        let enforced = self.live.reports.iter().filter_map(|report| report.enforced);
        let enforced = enforced.filter(|digest| digest.to_string() == desired).count();
        Some(SnapshotStatus::new(desired, small(enforced), small(self.live.reports.len())))
    }

    fn available(&self) -> Outcome {
        let reports = self.live.reports;
        if reports.is_empty() {
            return match self.server {
                Some(server) if server.replicas == 0 => say::scaled_to_zero("spec.replicas is 0, so that no pod runs"),
                _ => say::no_sidecar(self.pods("no sidecar is connected yet")),
            };
        }
        let serves =
            |report: &&&Report| matches!(report.catalogue.knowledge, Knowledge::Verified | Knowledge::Grace { .. });
        let serving = reports.iter().filter(serves).count();
        let why = reports.iter().find_map(|report| match &report.catalogue.knowledge {
            Knowledge::NeverRead { why } | Knowledge::Expired { why } => Some(why.as_str()),
            Knowledge::Verified | Knowledge::Grace { .. } => None,
        });
        match serving {
            0 => say::upstream_unreachable(why.unwrap_or_default()),
            // A sidecar serves some time before its platform knows: until then a caller would be refused the connection.
            _ if self.ready_pods == Some(0) => say::no_ready_pod(self.pods("no pod is ready to be called yet")),
            some => say::available(format!("{some} of {} sidecars serve", reports.len())),
        }
    }

    /// What is wrong with the pods, and how to look at them.
    fn pods(&self, what: &str) -> String {
        let (Mode::Cluster(_), Some(server)) = (self.mode, self.server) else { return what.to_owned() };
        let id = &server.id;
        format!("{what}; its pods: kubectl get pods -n {} -l {LABEL_SERVER}={}", id.namespace, id.name)
    }

    fn programmed(&self) -> Outcome {
        let (live, all) = (self.live, self.live.reports.len());
        if all == 0 {
            return say::not_programmed("no sidecar is connected, so that nothing is enforced");
        }
        let Some(desired) = live.desired else {
            return say::programming("this revision cannot be used; what was in force before still is");
        };
        let mut refused = live.reports.iter().filter_map(|report| Some((report, report.rejected.as_ref()?)));
        if let Some((report, refusal)) = refused.find(|(_, refusal)| refusal.digest == desired) {
            return say::snapshot_refused(format!("{}: {}", report.sidecar, refusal.why));
        }
        match live.is_programmed() {
            true => say::programmed(format!("{all} of {all} sidecars enforce it")),
            false => say::programming(format!("{} of {all} sidecars enforce it", live.enforced())),
        }
    }

    fn in_sync(&self) -> Outcome {
        match self.pins.as_slice() {
            [] => self.unpinned(),
            [_] => sync::in_sync(self.rows, self.live, self.pinned),
            several => say::pin_conflict(format!(
                "{} ToolPins name this server ({}): nothing is approved until one is left",
                several.len(),
                several.join(", ")
            )),
        }
    }

    fn unpinned(&self) -> Outcome {
        let offered = self.live.reports.iter().map(|report| offered_declared(report)).max().unwrap_or_default();
        if offered == 0 {
            let nothing = || say::not_pinned("no declared tool is offered, and none is approved");
            return sync::not_compared(self.live).unwrap_or_else(nothing);
        }
        let name = self.object.metadata.name.as_deref().unwrap_or_default();
        let command = match self.mode {
            Mode::Cluster(_) => {
                let namespace = self.object.metadata.namespace.as_deref().unwrap_or("default");
                format!("kubectl cotter pin {name} -n {namespace} > pin.yaml && kubectl apply -f pin.yaml")
            }
            Mode::Local(settings) => {
                let folder = settings.folder.trim_end_matches('/');
                format!("cotter pin -f {folder} {name} > {folder}/pin.yaml")
            }
        };
        let offered = format!("{} {} offered", count(offered, "tool"), if offered == 1 { "is" } else { "are" });
        say::not_pinned(format!("{offered} and none is approved. Review them and pin: {command}"))
    }
}

fn offered_declared(report: &Report) -> usize {
    let offered = |state| {
        matches!(
            state,
            ToolState::Unpinned | ToolState::Ambiguous | ToolState::Added | ToolState::Matched | ToolState::Drifted
        )
    };
    report.catalogue.tools.iter().filter(|tool| tool.declared && offered(tool.state)).count()
}

/// `Accepted` True, with what its owner should know.
pub(crate) fn accepted(server: &Server) -> Outcome {
    say::accepted(server.remarks().join(" "))
}

/// `KeysReady`. The worst kind of problem gives the reason, and the message names every issuer concerned.
pub(crate) fn keys(issuers: usize, problems: &[(String, Unresolved)]) -> Outcome {
    if issuers == 0 && problems.is_empty() {
        return say::no_issuer(
            "nobody can have a token: write access.issuers, or access.serviceAccounts: {enabled: true}",
        );
    }
    let lines: Vec<String> = problems.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let message = lines.join("; ");
    let has = |kind: fn(&Unresolved) -> bool| problems.iter().any(|(_, why)| kind(why));
    if problems.is_empty() {
        say::keys_ready(count(issuers, "issuer"))
    } else if has(|why| matches!(why, Unresolved::NotFound(_))) {
        say::keys_not_found(message)
    } else if has(|why| matches!(why, Unresolved::Malformed(_))) {
        say::no_usable_key(message)
    } else if has(|why| matches!(why, Unresolved::Unreachable(_))) {
        say::keys_unreachable(message)
    } else {
        say::keys_pending(message)
    }
}

fn checked_at(status: &McpServerStatus) -> Option<Timestamp> {
    Some(status.surface.as_ref()?.checked_at.as_ref()?.0)
}

/// What the server says of itself at the first sidecar that knows.
fn surface(reports: &[&Report]) -> Option<SurfaceStatus> {
    let (report, surface) = reports.iter().find_map(|report| Some((report, report.surface.as_ref()?)))?;
    Some(SurfaceStatus {
        protocol: Some(surface.protocol.clone()),
        server_info: Some(ServerInfo { name: surface.server_name.clone(), version: surface.server_version.clone() }),
        transport: Some(surface.transport.clone()),
        image_id: None,
        instructions_digest: surface.instructions_digest.map(|digest| digest.to_string()),
        capabilities: surface.capabilities.clone(),
        checked_at: report.catalogue.verified_at.map(Time),
    })
}
