//! The sidecar of a pod: follows its operator, guards its server.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use cotter_proxy::{
    Config, Sidecar,
    audit::Sink,
    bootstrap::Bootstrap,
    contact::Contact,
    control::{self, Operator},
    keeper,
    ledger::Ledger,
    sidecar,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// How long the operator may take to accept what was charged last. Without it a pod would wait for nothing.
const LAST_CHARGES: Duration = Duration::from_secs(3);

/// Decides on every request whether this caller may see or use this tool of the server behind it.
///
/// Decisions go to standard output, one line of JSON each; everything else that it has to say goes to standard error.
#[derive(Debug, Parser)]
#[command(name = "cotter-proxy", version)]
struct Arguments {
    /// File with the operator's address and certificates, the server's name and the first snapshot
    #[arg(long, value_name = "FILE", env = "COTTER_BOOTSTRAP")]
    bootstrap: PathBuf,
    /// File with the token that the operator knows this pod by; read again for each request
    #[arg(long, value_name = "FILE", env = "COTTER_TOKEN_FILE")]
    token_file: PathBuf,
    /// Where clients connect
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", env = "COTTER_LISTEN")]
    listen: SocketAddr,
    /// Where the platform finds /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9090", env = "COTTER_ADMIN")]
    admin: SocketAddr,
    /// Folder in which the last good snapshot is kept, for a start without the operator
    #[arg(long, value_name = "DIR", env = "COTTER_STATE_DIR")]
    state_dir: Option<PathBuf>,
    /// Name of this sidecar in status
    #[arg(long, value_name = "NAME", default_value = "sidecar", env = "POD_NAME")]
    name: String,
    /// Threads that serve requests
    #[arg(long, value_name = "N", default_value_t = 2, env = "COTTER_WORKERS")]
    workers: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_env("COTTER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "ended");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = sidecar::runtime(arguments.workers).context("failed to start the threads")?;
    let ended = runtime.block_on(serve(arguments));
    // Not waiting for threads: an evaluation that does not end would keep this program from ending.
    runtime.shutdown_background();
    ended
}

async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let bootstrap = Bootstrap::read(&arguments.bootstrap)?;
    let kept = arguments.state_dir.as_deref().and_then(keeper::load);
    // One that cannot be used is no reason not to start: the operator has another one.
    let given = bootstrap.snapshot.as_ref().and_then(|given| {
        given.open().inspect_err(|error| tracing::warn!(%error, "failed to use the bootstrap's snapshot")).ok()
    });
    let (snapshots, snapshot) = watch::channel(keeper::newer(kept, given));
    let (reports, reported) = watch::channel(None);
    let (contact, end) = (Contact::default(), CancellationToken::new());
    let ledger = Arc::new(Ledger::governed());
    let charged = Arc::clone(&ledger);
    let operator = Operator {
        url: bootstrap.operator,
        ca: bootstrap.ca,
        token_file: arguments.token_file,
        server: bootstrap.server.clone(),
    };
    let mut talk = control::start(operator, snapshots, reported, Arc::clone(&ledger), contact.clone(), &end)?;
    let sidecar = Sidecar::start(Config {
        name: arguments.name,
        server: bootstrap.server,
        listen: arguments.listen,
        admin: Some(arguments.admin),
        snapshots: snapshot,
        reports,
        audit: Sink::Stdout,
        state_dir: arguments.state_dir,
        work_dir: None,
        ledger,
        contact: Some(contact),
    })
    .await?;
    tracing::info!(clients = %sidecar.local_addr(), admin = ?sidecar.admin_addr(), "listening");
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    tracing::info!("ending");
    sidecar.shutdown().await;
    // What was charged last is told before the stream ends: a run that is gone cannot tell it any more.
    if tokio::time::timeout(LAST_CHARGES, charged.told_all()).await.is_err() {
        tracing::warn!("the operator did not accept what was charged last");
    }
    end.cancel();
    while talk.join_next().await.is_some() {}
    Ok(())
}
