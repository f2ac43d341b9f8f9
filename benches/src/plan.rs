//! The measurement: which runs, in which order, and what is shown of them.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Duration,
};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::{
    error::BenchError,
    load::{self, Outcome},
    process::{self, Server},
    role::{Orders, Role},
    table::{self, Run},
    world::{self, Issuer, Module},
};

/// What a started proxy gets to settle before its memory is read.
const SETTLE: Duration = Duration::from_millis(300);

/// Who answers the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Peer {
    /// The server itself: what upstream and load alone can do.
    Direct,
    /// The pass-through.
    Floor,
    /// The sidecar.
    Sidecar,
}

/// What is measured, and for how long.
#[derive(Debug, Clone, Args)]
pub(crate) struct Plan {
    /// Seconds of each run that count
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds before them that do not
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    warm_up: f64,
    /// Connections, each with a session of its own
    #[arg(long, value_delimiter = ',', default_values_t = [1_u16, 16, 64], value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: Vec<u16>,
    /// How often each run is repeated; the table shows medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    rounds: u8,
    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Peer::Floor, Peer::Sidecar])]
    only: Vec<Peer>,
    /// Bytes of text in the arguments of a call
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=500_000))]
    bytes: u32,
    /// Threads of the sidecar that serve requests: one, since it has one core here
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    /// What the user's policy module looks at
    #[arg(long, value_enum, default_value_t = Module::Principal)]
    module: Module,
    /// Scopes of the token; without the right one every call is refused, and the measurement says so
    #[arg(long, default_value = world::SCOPE)]
    scopes: String,
    /// File for the audit records of the sidecar; they are thrown away otherwise
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Print one line of JSON for each run instead of the table
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("has to be a number of seconds from 0 to 600".to_owned()),
    }
}

/// Where upstream and load run, and where the proxy. On one core everything runs where it can.
fn cores() -> (Option<usize>, Option<usize>) {
    let several = thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    if several { (Some(0), Some(1)) } else { (None, None) }
}

impl Plan {
    /// Runs it and prints what came of it.
    ///
    /// # Errors
    /// A process does not start, or an answer was not the right one.
    pub(crate) fn run(&self) -> Result<(), BenchError> {
        let (near, far) = cores();
        let upstream = Server::start(&Orders { core: near, role: Role::Upstream }, Stdio::null())?;
        let issuer = Issuer::new()?;
        let token = issuer.token(&self.scopes)?;
        let snapshot = world::snapshot(upstream.address, &issuer, self.module)?;
        let mut runs = Vec::new();
        for round in 0..self.rounds {
            for connections in &self.connections {
                for peer in &self.only {
                    let outcome = self.measure(*peer, *connections, &upstream, &snapshot, &token)?;
                    let run = Run { peer: *peer, connections: *connections, round, outcome };
                    self.show(&run);
                    runs.push(run);
                }
            }
        }
        let fault = fault(&runs);
        let units = Orders { core: far, role: Role::Units { snapshot, token } };
        let units =
            (fault.is_none() && self.only.contains(&Peer::Sidecar)).then(|| process::result(&units)).transpose()?;
        if !self.json {
            print!("{}", table::render(&runs, units.as_ref()));
        }
        fault.map_or(Ok(()), Err)
    }

    fn measure(
        &self,
        peer: Peer,
        connections: u16,
        upstream: &Server,
        snapshot: &Value,
        token: &str,
    ) -> Result<Outcome, BenchError> {
        let (near, far) = cores();
        let proxy = match peer {
            Peer::Direct => None,
            Peer::Floor => {
                let role = Role::Floor { upstream: upstream.address };
                Some(Server::start(&Orders { core: far, role }, Stdio::null())?)
            }
            Peer::Sidecar => {
                let role = Role::Sidecar { snapshot: snapshot.clone(), workers: self.workers.into() };
                Some(Server::start(&Orders { core: far, role }, sink(self.audit.as_deref())?)?)
            }
        };
        thread::sleep(SETTLE);
        let measured = proxy.as_ref().unwrap_or(upstream);
        let orders = load::Orders {
            to: measured.address,
            connections: connections.into(),
            warm_up_seconds: self.warm_up,
            seconds: self.seconds,
            bytes: usize::try_from(self.bytes).unwrap_or(usize::MAX),
            token: token.to_owned(),
            proxy: measured.pid(),
            upstream: upstream.pid(),
        };
        process::result(&Orders { core: near, role: Role::Load(orders) })
    }

    fn show(&self, run: &Run) {
        if self.json {
            println!("{}", run.json());
        } else {
            eprintln!("{}", run.line());
        }
    }
}

/// The first thing that went wrong in any run.
fn fault(runs: &[Run]) -> Option<BenchError> {
    runs.iter().find_map(|run| {
        let (fault, count) = run.outcome.faults.iter().next()?;
        let (peer, connections) = (run.peer.name(), run.connections);
        Some(BenchError::Wrong(format!("{peer} with {connections} connections: {count} times: {fault}")))
    })
}

fn sink(audit: Option<&Path>) -> Result<Stdio, BenchError> {
    let Some(path) = audit else { return Ok(Stdio::null()) };
    let file = File::options().create(true).append(true).open(path);
    Ok(file.map_err(BenchError::system(format!("open {}", path.display())))?.into())
}
