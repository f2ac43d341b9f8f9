//! The folder as it runs: every server with its sidecar, and the passes that keep it in step with files and reports.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use cotter_compiler::{
    Charged, compile,
    gate::Gate,
    plan::{Evidence, Notice, Plan},
};
use cotter_core::{
    audit::Record,
    effect::Effect,
    report::Report,
    snapshot::{Sealed, TrustedIssuer},
};
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use cotter_proxy::ledger::Ledger;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::{
    board::{Board, Shown},
    broken,
    inventory::Inventory,
    printer::Printer,
    program,
    runner::Runner,
    world::{self, Surroundings},
};
use crate::{
    cluster::held_back,
    columns::Kind,
    failure::{Failure, Outcome},
    folder::Folder,
    state::State,
    wire,
};

/// A server's place: namespace and name.
pub(crate) type Place = (String, String);

/// Everything that runs for one folder.
pub(crate) struct House {
    given: String,
    gate: Gate,
    state: State,
    board: Arc<Board>,
    issuer: TrustedIssuer,
    reports: mpsc::Sender<Report>,
    audit: mpsc::Sender<Arc<Record>>,
    folder: Folder,
    inventory: Inventory,
    runners: BTreeMap<Place, Runner>,
    evidence: BTreeMap<Place, Evidence>,
    ledger: Arc<Ledger>,
    charged: bool,
    printer: Printer,
    next: Option<Timestamp>,
    welcomed: bool,
}

impl House {
    /// An empty one.
    pub(crate) fn new(
        given: String,
        gate: Gate,
        state: State,
        board: Arc<Board>,
        issuer: TrustedIssuer,
        reports: mpsc::Sender<Report>,
        audit: mpsc::Sender<Arc<Record>>,
    ) -> Self {
        let ledger = Arc::clone(board.ledger());
        Self {
            given,
            gate,
            state,
            board,
            issuer,
            reports,
            audit,
            folder: Folder::default(),
            inventory: Inventory::default(),
            runners: BTreeMap::new(),
            evidence: BTreeMap::new(),
            ledger,
            charged: false,
            printer: Printer::default(),
            next: None,
            welcomed: false,
        }
    }

    /// Reads the folder again and makes it so.
    pub(crate) async fn reload(&mut self, now: Timestamp) -> Outcome {
        if !self.folder.reload(self.state.folder()).map_err(broken)? && self.welcomed {
            return Ok(());
        }
        self.inventory.replace(&self.folder.objects(), now);
        self.printer.problems(self.folder.problems());
        self.pass(now).await
    }

    /// Takes what a sidecar says.
    pub(crate) fn take(&mut self, report: Report) {
        let place = (report.server.namespace.to_string(), report.server.name.to_string());
        if let Some(runner) = self.runners.get_mut(&place) {
            runner.take(report);
        }
    }

    /// What the sidecars of all servers charge to budgets.
    pub(crate) fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// Something was charged: the next tick shows it.
    pub(crate) const fn note_charge(&mut self) {
        self.charged = true;
    }

    /// Looks at what changes without a file or a report: programs that were replaced, conditions that end by time.
    pub(crate) async fn tick(&mut self, now: Timestamp) -> Outcome {
        let mut replaced = false;
        for ((_, name), runner) in &mut self.runners {
            if runner.is_replaced() {
                self.printer.event(now, name, "the program was replaced: starting it again");
                runner.stop().await;
                replaced = true;
            }
        }
        if replaced || self.charged || self.next.is_some_and(|next| next <= now) {
            return self.pass(now).await;
        }
        Ok(())
    }

    /// Compiles every server and makes it so.
    pub(crate) async fn pass(&mut self, now: Timestamp) -> Outcome {
        let servers: Vec<McpServer> = self.inventory.typed(Kind::McpServer);
        self.stop_gone(&servers).await;
        self.next = None;
        self.charged = false;
        let mut shown = Shown::default();
        for server in &servers {
            let place = place(server);
            let plan = self.compile(server, &place, now)?;
            self.take_over(&place, &plan);
            self.printer.notices(&place.1, &as_written(server, &plan, self.state.folder()));
            let runner = self.runners.entry(place.clone()).or_default();
            runner.apply(&plan, &self.state, (&self.reports, &self.audit, &self.ledger)).await?;
            shown.servers.push(facts(server, &plan, runner));
            if let Some(sealed) = runner.in_force() {
                shown.snapshots.insert(place.1.clone(), sealed.clone());
            }
            if let Some(definitions) = runner.definitions() {
                shown.observed.insert(place.1.clone(), definitions);
            }
        }
        self.orphans(&servers, now);
        self.show(shown, now);
        Ok(())
    }

    fn compile(&self, server: &McpServer, place: &Place, now: Timestamp) -> Result<Plan, Failure> {
        let manifests = self.folder.objects();
        let (pins, delegations): (Vec<ToolPin>, Vec<AgentDelegation>) =
            (self.inventory.typed(Kind::ToolPin), self.inventory.typed(Kind::AgentDelegation));
        let surroundings = Surroundings {
            given: &self.given,
            folder: self.state.folder(),
            state_dir: self.state.root(),
            issuer: Some(&self.issuer),
            secrets: world::data(&manifests, "Secret"),
            config_maps: world::data(&manifests, "ConfigMap"),
            cluster_policies: world::cluster_policies(&manifests),
            pins: &pins,
            delegations: &delegations,
        };
        let others = self.evidence.iter().filter(|(other, _)| other.0 == place.0 && *other != place);
        let others = others.map(|((_, name), evidence)| (name.clone(), evidence.clone())).collect();
        let reports = self.runners.get(place).and_then(|runner| runner.report.clone()).into_iter().collect();
        let port = self.state.port(&format!("{}/{}", place.0, place.1))?;
        let mut world = surroundings.world(server, port, reports, others, now);
        world.charged = self.spent(&place.0, &delegations);
        self.gate.pass(&mut world);
        Ok(compile(&world))
    }

    /// What was charged to the budgets of a namespace since this program started.
    fn spent(&self, namespace: &str, delegations: &[AgentDelegation]) -> cotter_compiler::Ledger {
        let own = delegations.iter().filter(|one| one.metadata.namespace.as_deref() == Some(namespace));
        let spent = own.filter_map(|one| {
            let (name, uid) = (one.metadata.name.clone()?, one.metadata.uid.as_deref());
            let calls = self.ledger.charged(namespace, uid.unwrap_or(&name));
            Some((name, Charged { calls, ..Charged::default() }))
        });
        spent.collect()
    }

    fn take_over(&mut self, place: &Place, plan: &Plan) {
        let key = |kind: Kind, name: &str| (kind, place.0.clone(), name.to_owned());
        self.inventory.set_status(&key(Kind::McpServer, &place.1), &plan.server_status);
        for (name, status) in &plan.pin_statuses {
            self.inventory.set_status(&key(Kind::ToolPin, name), status);
        }
        for (name, status) in &plan.delegation_statuses {
            self.inventory.set_status(&key(Kind::AgentDelegation, name), status);
        }
        self.evidence.insert(place.clone(), plan.evidence.clone());
        self.next = [self.next, plan.next].into_iter().flatten().min();
    }

    /// Pins of servers that do not exist.
    fn orphans(&mut self, servers: &[McpServer], now: Timestamp) {
        let pins: Vec<ToolPin> = self.inventory.typed(Kind::ToolPin);
        for pin in pins {
            let namespace = pin.metadata.namespace.clone().unwrap_or_default();
            let wanted = (namespace.clone(), pin.spec.server_ref.name.clone());
            if !servers.iter().any(|server| place(server) == wanted) {
                let status = cotter_compiler::orphan_pin_status(&pin, now);
                let name = pin.metadata.name.clone().unwrap_or_default();
                self.inventory.set_status(&(Kind::ToolPin, namespace, name), &status);
            }
        }
    }

    async fn stop_gone(&mut self, servers: &[McpServer]) {
        let wanted: Vec<Place> = servers.iter().map(place).collect();
        let gone: Vec<Place> = self.runners.keys().filter(|place| !wanted.contains(place)).cloned().collect();
        for place in gone {
            if let Some(mut runner) = self.runners.remove(&place) {
                runner.stop().await;
                self.evidence.remove(&place);
            }
        }
    }

    fn show(&mut self, mut shown: Shown, now: Timestamp) {
        shown.objects = self.inventory.objects();
        let objects = shown.objects.clone();
        self.board.show(shown.clone());
        self.printer.drift(&objects, now);
        self.printer.conditions(&objects, now);
        let changed = self.printer.table(&objects, now);
        if changed && !self.welcomed {
            self.welcome(&shown);
        }
        self.welcomed = true;
    }

    fn welcome(&self, shown: &Shown) {
        // Of a server that nothing is in force for, there is nothing to try.
        if let Some(server) = shown.servers.iter().find(|server| !server.tools.is_empty()) {
            let tool = server.tools.iter().find(|tool| tool.effect == Effect::Read).or(server.tools.first());
            let scope = tool.map_or("SCOPE", |tool| tool.scope.as_str());
            let tenant = server.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default();
            println!("Try, in another terminal:");
            println!("  cotter list {}{tenant} --scope {scope}", server.name);
            println!("  cotter token{tenant} --scope {scope}      for any MCP client");
        }
        println!("Stop with Ctrl-C. State: {}", self.state.root().display());
    }

    /// Stops everything.
    pub(crate) async fn stop(&mut self) {
        for runner in self.runners.values_mut() {
            runner.stop().await;
        }
    }
}

/// The notices with the program as the manifest names it, not as the path where it was found.
fn as_written(server: &McpServer, plan: &Plan, folder: &Path) -> Vec<Notice> {
    let written = server.spec.upstream.container.as_ref().and_then(|container| container.command.first());
    let found = written.and_then(|written| program::find(written, folder));
    let (Some(written), Some(found)) = (written, found) else { return plan.notices.clone() };
    let found = found.to_string_lossy();
    let written = |notice: &Notice| Notice { about: notice.about, text: notice.text.replace(&*found, written) };
    plan.notices.iter().map(written).collect()
}

fn place(server: &McpServer) -> Place {
    (server.metadata.namespace.clone().unwrap_or_default(), server.metadata.name.clone().unwrap_or_default())
}

/// A server as its owner sees it. While nothing is in force there are no tools to speak of.
fn facts(server: &McpServer, plan: &Plan, runner: &Runner) -> wire::Server {
    let snapshot = runner.in_force().map(Sealed::snapshot);
    let report = |name: &str| {
        let tools = runner.report.as_ref().map(|report| report.catalogue.tools.iter());
        tools.into_iter().flatten().find(|tool| tool.name == name)
    };
    let tools = snapshot.into_iter().flat_map(|snapshot| snapshot.tools.iter());
    let tools = tools.map(|(name, rule)| wire::Tool {
        name: name.to_string(),
        scope: rule.scope.to_string(),
        effect: rule.effect,
        callable: report(name.as_str()).is_some_and(|tool| tool.callable),
        state: report(name.as_str()).map(|tool| tool.state),
        class: report(name.as_str()).and_then(|tool| tool.class),
    });
    let namespace = server.metadata.namespace.clone().filter(|namespace| namespace != "default");
    wire::Server {
        name: server.metadata.name.clone().unwrap_or_default(),
        namespace,
        endpoint: plan.server_status.endpoint.clone().unwrap_or_default(),
        audience: snapshot
            .map_or_else(|| server.spec.audience.clone(), |snapshot| snapshot.access.audience.to_string()),
        tenant: server.spec.access.tenants.first().filter(|tenant| *tenant != "*").cloned(),
        held_back: match &plan.snapshot {
            None => held_back(&plan.server_status.conditions),
            Some(wanted) if runner.in_force().map(Sealed::digest) == Some(wanted.digest()) => None,
            Some(_) => Some("its sidecar has not taken it".to_owned()),
        },
        tools: tools.collect(),
    }
}
