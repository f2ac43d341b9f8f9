//! `cotter up`: the folder's servers behind enforcing sidecars, on this computer, without a cluster.
//!
//! The same compile as the operator's, with a world from files instead of watches and a plan for processes instead of the API.

mod audit_log;
mod board;
mod child;
mod house;
pub(crate) mod inventory;
mod printer;
mod program;
mod runner;
mod socket;
mod watch;
pub(crate) mod world;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use cotter_compiler::{gate::Gate, guard::Guard};
use cotter_core::{
    report::Report,
    snapshot::{ClaimNames, TrustedIssuer},
};
use jiff::Timestamp;
use tokio::{sync::mpsc, time::MissedTickBehavior};

use crate::{
    CHECK_WORD,
    failure::{Doing as _, Failure, Outcome},
    issuer::DevIssuer,
    state::State,
};
use audit_log::AuditLog;
use board::Board;
use house::House;

/// Policies are evaluated on the workers; a chain of 200 rules does not fit into the 2 MiB that a thread has by default.
const STACK: usize = 16 * 1024 * 1024;

/// How often programs are looked at, and time alone may change a condition.
const TICK: Duration = Duration::from_millis(500);

/// Reports that wait for the next pass.
const REPORTS: usize = 256;

/// Run the servers of a folder behind enforcing sidecars on loopback, watch the files, and show what kubectl would show
#[derive(Debug, Args)]
#[command(
    after_help = "Changed files take effect at once. A broken file is named with line and column; the other servers go on.\nExit status: 0 stopped, 2 it could not start."
)]
pub(crate) struct Options {
    /// The folder of manifests: McpServers, ToolPins, AgentDelegations, and the Secrets and ConfigMaps that they name
    #[arg(short, long, value_name = "DIR")]
    folder: PathBuf,
}

/// Runs the command until it is told to stop.
pub(crate) fn run(options: &Options) -> Outcome {
    log();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_stack_size(STACK).enable_all().build();
    let runtime = runtime.doing("start the runtime")?;
    let ended = runtime.block_on(serve(options));
    // Not waiting for threads: an evaluation that does not end would keep this program from ending.
    runtime.shutdown_background();
    ended
}

/// Warnings on standard error; `COTTER_LOG` takes the directives of tracing's filters.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("COTTER_LOG");
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    drop(tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init());
}

async fn serve(options: &Options) -> Outcome {
    let state = State::of(&options.folder)?;
    let listener = socket::take(&state).await?;
    let board = Arc::new(Board::default());
    let (audit, records) = mpsc::channel(audit_log::WAITING);
    tokio::spawn(AuditLog::open(&state)?.run(records, Arc::clone(&board)));
    let (reports, mut reported) = mpsc::channel(REPORTS);
    let dev = DevIssuer::open(&state)?;
    let issuer = TrustedIssuer {
        name: "cotter-up".to_owned(),
        issuer: dev.issuer().clone(),
        jwks: dev.jwks().clone(),
        claims: ClaimNames::default(),
        service_accounts: None,
    };
    let gate = Gate::new(Guard::new(CHECK_WORD).doing("find this program")?);
    let given = options.folder.display().to_string();
    let mut house = House::new(given, gate, state.clone(), Arc::clone(&board), issuer, reports, audit);
    let mut files = watch::folder(state.folder())?;
    house.reload(Timestamp::now()).await?;
    tokio::spawn(socket::serve(listener, board));
    let outcome = keep(&mut house, &mut files, &mut reported).await;
    house.stop().await;
    drop(std::fs::remove_file(state.socket()));
    outcome
}

async fn keep(house: &mut House, files: &mut watch::Changes, reported: &mut mpsc::Receiver<Report>) -> Outcome {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = std::pin::pin!(told_to_stop());
    let ledger = house.ledger();
    loop {
        tokio::select! {
            told = &mut stop => return told,
            () = files.changed() => house.reload(Timestamp::now()).await?,
            Some(report) = reported.recv() => {
                house.take(report);
                while let Ok(report) = reported.try_recv() {
                    house.take(report);
                }
                house.pass(Timestamp::now()).await?;
            }
            () = ledger.moved() => house.note_charge(),
            _ = tick.tick() => house.tick(Timestamp::now()).await?,
        }
    }
}

async fn told_to_stop() -> Outcome {
    let kind = tokio::signal::unix::SignalKind::terminate();
    let mut terminate = tokio::signal::unix::signal(kind).doing("listen for the signal to stop")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.doing("listen for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

/// What a command could not do because of the system, as a failure of `up` itself.
fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::cannot(error.to_string())
}
