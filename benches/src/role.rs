//! The processes of a measurement: this same program, told by a line on its standard input who it is.

use std::{
    io::{self, BufRead as _, Read as _, Write as _},
    net::SocketAddr,
    thread,
};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{error::BenchError, floor, guarded, load, units, upstream};

/// What one process has to do, and where.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// The core that it stays on; any, where absent.
    pub(crate) core: Option<usize>,
    /// What it is.
    pub(crate) role: Role,
}

/// What a process is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    /// The MCP server.
    Upstream,
    /// The pass-through.
    Floor { upstream: SocketAddr },
    /// The sidecar.
    Sidecar { snapshot: Value, workers: usize },
    /// The clients.
    Load(load::Orders),
    /// No server: the parts of a decision, one by one.
    Units { snapshot: Value, token: String },
}

/// What a server says on standard error once it serves.
pub(crate) const READY: &str = "ready ";

/// Reads the orders and follows them until standard input ends.
///
/// # Errors
/// The orders are not any, or cannot be followed.
pub(crate) fn play() -> Result<(), BenchError> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(BenchError::system("read the orders"))?;
    let orders: Orders = serde_json::from_str(&line).map_err(BenchError::wrong("read the orders"))?;
    if let Some(core) = orders.core {
        let mut cores = CpuSet::new();
        cores.set(core);
        sched_setaffinity(None, &cores).map_err(io::Error::from).map_err(BenchError::system("stay on one core"))?;
    }
    end_with_the_parent()?;
    match orders.role {
        Role::Upstream => upstream::serve(),
        Role::Floor { upstream } => floor::serve(upstream),
        Role::Sidecar { snapshot, workers } => guarded::serve(snapshot, workers),
        Role::Load(orders) => tell(&load::run(orders)?),
        Role::Units { snapshot, token } => tell(&units::measure(&snapshot, &token)?),
    }
}

/// Nothing outlives the measurement, however that ends.
fn end_with_the_parent() -> Result<(), BenchError> {
    let wait = || {
        let _ = io::stdin().lock().read(&mut [0]);
        std::process::exit(0);
    };
    thread::Builder::new().spawn(wait).map(drop).map_err(BenchError::system("start a thread"))
}

fn tell(result: &impl Serialize) -> Result<(), BenchError> {
    let text = serde_json::to_string(result).map_err(BenchError::wrong("write the result"))?;
    writeln!(io::stdout(), "{text}").map_err(BenchError::system("write the result"))
}

/// Says where a server listens.
pub(crate) fn ready(address: SocketAddr) {
    eprintln!("{READY}{address}");
}

/// A runtime of one thread.
pub(crate) fn single() -> Result<tokio::runtime::Runtime, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(BenchError::system("start the runtime"))
}
