//! `cotter policy`: check, test, try, replay and begin policy modules. The rules and their reading are the sidecar's.

mod check;
mod eval;
mod init;
mod replay;
mod sources;
mod test;

use clap::Subcommand;

use crate::failure::Outcome;

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    Check(check::Options),
    Test(test::Options),
    Eval(eval::Options),
    Replay(replay::Options),
    Init(init::Options),
}

/// Runs one of them.
pub(crate) fn run(command: &Policy) -> Outcome {
    match command {
        Policy::Check(options) => check::run(options),
        Policy::Test(options) => test::run(options),
        Policy::Eval(options) => eval::run(options),
        Policy::Replay(options) => replay::run(options),
        Policy::Init(options) => init::run(options),
    }
}
