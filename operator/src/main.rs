//! `cotter-operator`.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use cotter_operator::settings::{LogFormat, Settings};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing_subscriber::EnvFilter;

/// The policy interpreter evaluates deep expressions recursively.
const STACK: usize = 16 * 1024 * 1024;

fn main() -> anyhow::Result<ExitCode> {
    if std::env::args_os().nth(1).is_some_and(|word| word == cotter_operator::CHECK_WORD) {
        return Ok(cotter_compiler::guard::serve());
    }
    let settings = Settings::parse();
    log(&settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = runtime.context("failed to start the runtime")?;
    let ended = runtime.block_on(run(settings));
    // What still runs on blocking threads has nothing to finish: everything that matters was drained.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

async fn run(settings: Settings) -> anyhow::Result<()> {
    let client = kube::Client::try_default().await.context("failed to find the API server")?;
    let (stop, stopping) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        stop.send_replace(true);
    });
    cotter_operator::run(client, settings, stopping).await?;
    tracing::info!("stopped");
    Ok(())
}

fn log(settings: &Settings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.log).context("failed to read --log")?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).init(),
        LogFormat::Text => lines.init(),
    }
    Ok(())
}
