//! What the sidecar costs: calls/s, latency, CPU and memory, beside a bare pass-through in the same run.
//!
//! `cargo run --release -p cotter-bench`. How to read it is in `benches/README.md`.

mod error;
mod floor;
mod guarded;
mod load;
mod plan;
mod process;
mod role;
mod table;
mod units;
mod upstream;
mod world;

use clap::Parser;

use crate::plan::Plan;

/// Measures the sidecar with everything on against a bare pass-through: calls/s, latency, CPU per call and memory.
///
/// Upstream and load run on one core, the proxy in question on another. Each proxy is started afresh for each run; the runs are
/// interleaved, and the table shows medians. Only loopback addresses are used.
#[derive(Debug, Parser)]
#[command(name = "cotter-bench", version)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Hidden>,
    #[command(flatten)]
    plan: Plan,
}

#[derive(Debug, clap::Subcommand)]
enum Hidden {
    /// One process of a measurement; its orders are a line of JSON on standard input.
    #[command(hide = true)]
    Role,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Hidden::Role) => role::play()?,
        None => arguments.plan.run()?,
    }
    Ok(())
}
