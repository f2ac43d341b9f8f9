//! One server as it runs: its sidecar, its process where it has one, and what the sidecar last said.

use std::{
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::Arc,
};

use cotter_compiler::plan::{Plan, SecretFile};
use cotter_core::{
    audit::Record,
    report::{Definitions, Report},
    snapshot::{Sealed, Upstream},
};
use cotter_proxy::{
    audit::Sink,
    ledger::Ledger,
    sidecar::{Config, Sidecar},
};
use tokio::sync::{mpsc, watch};

use super::{child::Child, program::Release};
use crate::{
    failure::{Doing as _, Failure, Outcome},
    state::State,
};

/// One server.
#[derive(Default)]
pub(crate) struct Runner {
    /// What its sidecar last said.
    pub(crate) report: Option<Report>,
    sidecar: Option<(Sidecar, watch::Sender<Option<Sealed>>)>,
    /// What the sidecar was last given.
    given: Option<Sealed>,
    /// What it said that it enforces.
    enforced: Option<Sealed>,
    child: Option<Child>,
    program: Option<String>,
    release: Option<Release>,
}

/// Where reports, decisions and charges go.
pub(crate) type Ears<'a> = (&'a mpsc::Sender<Report>, &'a mpsc::Sender<Arc<Record>>, &'a Arc<Ledger>);

impl Runner {
    /// Makes it as the plan says. Without a snapshot everything stays as it is.
    pub(crate) async fn apply(&mut self, plan: &Plan, state: &State, ears: Ears<'_>) -> Outcome {
        let Some(sealed) = &plan.snapshot else { return Ok(()) };
        for file in &plan.files {
            write(file)?;
        }
        let server = sealed.snapshot().server.name.as_str();
        self.keep_process(plan, server, state).await;
        self.watch_program(plan, sealed);
        if self.sidecar.is_none() {
            self.start(sealed, plan, state, ears).await?;
        } else if self.given.as_ref().map(Sealed::digest) != Some(sealed.digest())
            && let Some((_, snapshots)) = &self.sidecar
        {
            snapshots.send_replace(Some(sealed.clone()));
        }
        self.given = Some(sealed.clone());
        Ok(())
    }

    /// Takes what the sidecar says.
    pub(crate) fn take(&mut self, report: Report) {
        if let Some(given) = self.given.as_ref().filter(|given| report.enforced == Some(given.digest())) {
            self.enforced = Some(given.clone());
        }
        self.report = Some(report);
    }

    /// What the sidecar enforces. One that has just started has not said so yet, and serves nobody before it does.
    pub(crate) fn in_force(&self) -> Option<&Sealed> {
        self.enforced.as_ref().or(self.given.as_ref())
    }

    /// The definitions that the sidecar read, where it has read them all.
    pub(crate) fn definitions(&self) -> Option<Definitions> {
        let catalogue = self.report.as_ref().map(|report| &report.catalogue)?;
        catalogue.verified_at.map(|_| catalogue.definitions.clone())
    }

    async fn start(
        &mut self,
        sealed: &Sealed,
        plan: &Plan,
        state: &State,
        (reports, audit, ledger): Ears<'_>,
    ) -> Outcome {
        let endpoint = plan.server_status.endpoint.clone().unwrap_or_default();
        let (snapshots, current) = watch::channel(Some(sealed.clone()));
        let (report, reported) = watch::channel(None);
        tokio::spawn(forward(reported, reports.clone()));
        let config = Config {
            name: "local".to_owned(),
            server: sealed.snapshot().server.clone(),
            listen: address(&endpoint)?,
            admin: None,
            snapshots: current,
            reports: report,
            audit: Sink::Channel(audit.clone()),
            state_dir: None,
            work_dir: Some(state.folder().to_path_buf()),
            ledger: Arc::clone(ledger),
            contact: None,
        };
        let sidecar =
            Sidecar::start(config).await.doing(format!("start the sidecar of {}", sealed.snapshot().server))?;
        self.sidecar = Some((sidecar, snapshots));
        Ok(())
    }

    async fn keep_process(&mut self, plan: &Plan, server: &str, state: &State) {
        if let (Some(child), Some(wanted)) = (&mut self.child, &plan.process)
            && child.is(wanted)
        {
            return child.keep();
        }
        if let Some(mut child) = self.child.take() {
            child.stop().await;
        }
        self.child = plan.process.clone().map(|process| Child::start(process, server, state));
    }

    fn watch_program(&mut self, plan: &Plan, sealed: &Sealed) {
        let command = match (&plan.process, &sealed.snapshot().upstream) {
            (Some(process), _) => process.command.first(),
            (None, Upstream::Child { command, .. }) => command.first(),
            _ => None,
        };
        if self.program.as_ref() != command {
            self.program = command.cloned();
            self.release = None;
        }
        if self.release.is_none() {
            self.release = self.program.as_ref().and_then(|program| Release::of(Path::new(program)));
        }
    }

    /// Whether the program was replaced by another release. Looks after the process too.
    pub(crate) fn is_replaced(&mut self) -> bool {
        if let Some(child) = &mut self.child {
            child.keep();
        }
        let now = self.program.as_ref().and_then(|program| Release::of(Path::new(program)));
        match (&self.release, &now) {
            (Some(then), Some(now)) => then != now,
            // In the middle of an upgrade there is no program: it is replaced when there is one again.
            _ => false,
        }
    }

    /// Stops the sidecar and the process.
    pub(crate) async fn stop(&mut self) {
        if let Some((sidecar, _)) = self.sidecar.take() {
            sidecar.shutdown().await;
        }
        if let Some(mut child) = self.child.take() {
            child.stop().await;
        }
        (self.given, self.enforced, self.program, self.release) = (None, None, None, None);
    }
}

/// Passes on what one sidecar says, until it ends. Only the newest counts: a report is the whole state.
async fn forward(mut reported: watch::Receiver<Option<Arc<Report>>>, to: mpsc::Sender<Report>) {
    while reported.changed().await.is_ok() {
        let report = reported.borrow_and_update().clone();
        if let Some(report) = report
            && to.send(Report::clone(&report)).await.is_err()
        {
            return;
        }
    }
}

fn address(endpoint: &str) -> Result<SocketAddr, Failure> {
    let authority = endpoint.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    authority.parse().doing(format!("read the endpoint {endpoint:?}"))
}

fn write(file: &SecretFile) -> Outcome {
    let doing = || format!("write {}", file.path.display());
    if let Some(parent) = file.path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).doing(doing())?;
    }
    let mut options = std::fs::OpenOptions::new();
    let mut open = options.write(true).create(true).truncate(true).mode(0o600).open(&file.path).doing(doing())?;
    open.write_all(file.contents.as_bytes()).doing(doing())
}
