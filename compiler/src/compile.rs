//! The one function: a world in, a plan out. Total: what cannot be used ends in a condition, never in a failure.

use std::collections::BTreeMap;

use cotter_core::{
    name::ToolName,
    report::Report,
    snapshot::{Pin, Sealed, ToolRule},
};
use cotter_crds::{
    AgentDelegationStatus, ToolPin, ToolPinStatus,
    condition::{self as say, Outcome},
};
use cotter_policies::Policy;

use crate::{
    build,
    delegations::Delegations,
    modules, notice,
    plan::{Children, Evidence, Notice, Observed, Plan},
    problem::Problems,
    server::Server,
    snapshot::{self, Keyring, Parts},
    upstream::{self, Reached},
    validate::{self, PinCheck, Place},
    verdict::{
        Live,
        delegation::{Servers, delegation_status},
        evidence, pin, refused,
        server::{self as server_verdict, Findings},
        sync,
    },
    world::{Mode, Unresolved, World},
};

/// What the resources come to, before anything was reported.
struct Judged {
    server: Option<Server>,
    findings: Findings,
    sealed: Option<Sealed>,
    reached: Option<Reached>,
}

/// From one server's slice of the world to everything that follows from it.
///
/// Guarantees: the same world gives the same plan, whatever the order of its lists; `now` and the reports never change a
/// snapshot (but a delegation in a folder is measured from `now`); nothing is read, and no input makes it fail.
#[must_use]
pub fn compile(world: &World) -> Plan {
    let mut reports: Vec<&Report> = world.reports.iter().collect();
    reports.sort_by(|a, b| a.sidecar.cmp(&b.sidecar));
    let delegations = Delegations::read(&world.delegations, world.mode.longest_delegation(), world.now);
    let mut pins: Vec<(&ToolPin, PinCheck)> = checked_pins(world, &reports);
    pins.sort_by(|(a, _), (b, _)| a.metadata.name.cmp(&b.metadata.name));
    let judged = judge(world, &delegations, effective_pin(&pins));
    let live = Live { reports: &reports, desired: judged.sealed.as_ref().map(Sealed::digest) };
    let rows = sync::rows(&reports);
    let own = evidence::evidence(judged.server.as_ref(), live);
    let seen = build::observed(&world.reports);
    let declared = judged.server.as_ref().map(|server| &server.tools);
    let pin_statuses = pin_statuses(world, &pins, live, &rows, &own, declared);
    let delegation_statuses = delegation_statuses(world, &delegations, &own);
    let name = name_of(&world.server.metadata.name);
    let notices = notices(world, &judged, &pins, &delegations);
    let Judged { server, findings, sealed, reached } = judged;
    let children = children(world, server.as_ref(), sealed.as_ref(), seen.as_ref());
    let server_status = server_verdict::Case {
        object: &world.server,
        mode: &world.mode,
        server: server.as_ref(),
        findings,
        pins: pins.iter().map(|(pin, _)| name_of(&pin.metadata.name)).collect(),
        pinned: pins.first().map(|(_, check)| check.pin.tools.len()).unwrap_or_default(),
        live,
        rows: &rows,
        ready_pods: world.ready_pods,
        has_observed: seen.is_some(),
        now: world.now,
    }
    .status();
    let (process, files) = reached.map(|reached| (reached.process, reached.files)).unwrap_or_default();
    Plan {
        snapshot: sealed,
        children,
        process,
        files,
        observed: seen,
        server_status,
        pin_statuses,
        delegation_statuses,
        evidence: own,
        notices,
        next: delegations.next_change(name, world.now),
    }
}

/// On a cluster, what is made for a server that has a snapshot.
fn children(
    world: &World,
    server: Option<&Server>,
    sealed: Option<&Sealed>,
    seen: Option<&Observed>,
) -> Option<Children> {
    match &world.mode {
        Mode::Cluster(settings) => Some(build::children(server?, settings, sealed?, seen)),
        Mode::Local(_) => None,
    }
}

fn name_of(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}

fn checked_pins<'w>(world: &'w World, reports: &[&Report]) -> Vec<(&'w ToolPin, PinCheck)> {
    let definitions = reports.iter().flat_map(|report| &report.catalogue.definitions);
    let observed = definitions.map(|(name, raw)| (name.as_str(), raw.as_ref())).collect();
    world.pins.iter().map(|object| (object, validate::pin(object, &observed))).collect()
}

/// The pin that is enforced: the one there is, or, of several, none that approves anything.
fn effective_pin(pins: &[(&ToolPin, PinCheck)]) -> Option<Pin> {
    match pins {
        [] => None,
        [(_, check)] => Some(check.pin.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|(object, _)| name_of(&object.metadata.name)).collect();
            Some(validate::conflict(&names))
        }
    }
}

fn judge(world: &World, delegations: &Delegations, pin: Option<Pin>) -> Judged {
    let place = match world.mode {
        Mode::Cluster(_) => Place::Cluster,
        Mode::Local(_) => Place::Laptop,
    };
    let reached = validate::server(&world.server, place)
        .and_then(|server| upstream::reach(&server, &world.mode).map(|reached| (server, reached)));
    match reached {
        Ok((server, reached)) => accepted(world, delegations, pin, server, reached),
        Err(problems) => not_accepted(&problems),
    }
}

fn not_accepted(problems: &Problems) -> Judged {
    let findings = Findings { accepted: refused(problems), keys: None, policies: None };
    Judged { server: None, findings, sealed: None, reached: None }
}

fn accepted(world: &World, delegations: &Delegations, pin: Option<Pin>, server: Server, reached: Reached) -> Judged {
    let Keyring { issuers, problems } = snapshot::keyring(&server, &world.mode, &world.keys);
    let keys = server_verdict::keys(issuers.len(), &problems);
    let parts = |policies| Parts {
        upstream: reached.upstream.clone(),
        issuers,
        pin,
        grants: delegations.grants(server.id.name.as_str()),
        policies,
    };
    let (policies, sealed) = match modules::of(&server, world) {
        Ok(modules) => enforce(&server, &world.mode, parts(modules)),
        Err(why) => (policy_missing(&why), None),
    };
    let findings = Findings { accepted: server_verdict::accepted(&server), keys: Some(keys), policies: Some(policies) };
    Judged { server: Some(server), findings, sealed, reached: Some(reached) }
}

fn policy_missing(why: &Unresolved) -> Outcome {
    match why {
        Unresolved::Malformed(why) => say::policy_invalid(why),
        Unresolved::NotFound(why) | Unresolved::Unreachable(why) | Unresolved::Pending(why) => {
            say::policy_not_found(why)
        }
    }
}

/// Builds and seals the snapshot, if its policy passes: one that does not never meets a sidecar.
fn enforce(server: &Server, mode: &Mode, parts: Parts) -> (Outcome, Option<Sealed>) {
    let told = parts.policies.told();
    let has_modules = !parts.policies.0.is_empty();
    let snapshot = snapshot::build(server, mode, parts);
    if has_modules && let Err(why) = Policy::prepare(&snapshot) {
        return (say::policy_invalid(why.to_string()), None);
    }
    match Sealed::seal(snapshot) {
        Ok(sealed) => (say::policies_ready(told), Some(sealed)),
        Err(why) => (say::policy_invalid(why.to_string()), None),
    }
}

fn pin_statuses(
    world: &World,
    pins: &[(&ToolPin, PinCheck)],
    live: Live<'_>,
    rows: &[sync::Row],
    own: &Evidence,
    declared: Option<&BTreeMap<ToolName, ToolRule>>,
) -> BTreeMap<String, ToolPinStatus> {
    let status = |(at, (object, check)): (usize, &(&ToolPin, PinCheck))| {
        let rivals = pins.iter().enumerate().filter(|(other, _)| *other != at);
        let case = pin::Case {
            object,
            check,
            rivals: rivals.map(|(_, (rival, _))| name_of(&rival.metadata.name)).collect(),
            live,
            rows,
            others: &world.others,
            own,
            declared,
            now: world.now,
        };
        (name_of(&object.metadata.name).to_owned(), case.status())
    };
    pins.iter().enumerate().map(status).collect()
}

fn delegation_statuses(
    world: &World,
    delegations: &Delegations,
    own: &Evidence,
) -> BTreeMap<String, AgentDelegationStatus> {
    let server = name_of(&world.server.metadata.name);
    let mut servers: Servers<'_> = world.others.iter().map(|(name, seen)| (name.as_str(), seen)).collect();
    servers.insert(server, own);
    let concerned = world
        .delegations
        .iter()
        .filter(|object| object.spec.to.servers.iter().flatten().any(|named| named.name == server));
    concerned
        .map(|object| {
            let status = delegation_status(object, delegations, &servers, &world.charged, world.now);
            (name_of(&object.metadata.name).to_owned(), status)
        })
        .collect()
}

fn notices(world: &World, judged: &Judged, pins: &[(&ToolPin, PinCheck)], delegations: &Delegations) -> Vec<Notice> {
    if let Mode::Cluster(_) = world.mode {
        return Vec::new();
    }
    let mut notices: Vec<Notice> = judged.reached.iter().flat_map(|reached| reached.notices.clone()).collect();
    let remarks = judged.server.iter().flat_map(Server::remarks);
    notices.extend(remarks.map(|text| Notice { about: "server", text }));
    notices.extend(pins.iter().map(|(_, check)| notice::pin(&check.pin)));
    notices.extend(delegations.grants(name_of(&world.server.metadata.name)).iter().map(notice::grant));
    notices
}
