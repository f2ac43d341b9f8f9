//! The command line of Cotter: local mode, pins, drift, tokens, and a small client.

mod caller;
mod client;
mod cluster;
mod columns;
mod diff;
mod failure;
mod fingerprint;
mod folder;
mod get;
mod http1;
mod issuer;
mod located;
mod offline;
mod pin;
mod policy;
mod running;
mod session;
mod state;
mod table;
mod tools_file;
mod up;
mod why;
mod wire;
mod yaml;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::failure::{Doing as _, Failure, Outcome};

/// The word that makes this program the child that checks policy modules.
const CHECK_WORD: &str = "check-policy-modules";

/// Decide on every request whether this caller may see or use this tool of an MCP server, and prove it afterwards
#[derive(Debug, Parser)]
#[command(name = "cotter", version, arg_required_else_help = true)]
#[command(
    after_help = "Begin with: cotter up -f examples/support-desk\n\nExit status: 0 done or clean, 1 refused, differing or drifted, 2 it could not be done or checked."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Options),
    Get(get::Options),
    List(client::ListOptions),
    Call(client::CallOptions),
    Why(why::Options),
    Token(caller::TokenOptions),
    Pin(pin::Options),
    Diff(diff::Options),
    Fingerprint(fingerprint::Options),
    /// Check, test, try, replay and begin policy modules
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Print the CustomResourceDefinitions, for kubectl apply --server-side -f -
    Crds,
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == CHECK_WORD) {
        return cotter_policies::guard::serve();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; everything else could not be done.
            let code = if error.use_stderr() { 2 } else { 0 };
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Diff(options) => diff::run(&options),
        Command::Fingerprint(options) => fingerprint::run(&options),
        Command::Policy(command) => policy::run(&command),
        Command::Crds => crds(),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "cotter", &mut std::io::stdout());
            Ok(())
        }
        Command::Up(options) => up::run(&options),
        Command::Get(options) => block_on(get::run(&options)),
        Command::List(options) => block_on(client::list(&options)),
        Command::Call(options) => block_on(client::call(&options)),
        Command::Why(options) => block_on(why::run(&options)),
        Command::Token(options) => block_on(caller::token(&options)),
        Command::Pin(options) => block_on(pin::run(&options)),
    }
}

fn crds() -> Outcome {
    let yaml = cotter_crds::install::yaml();
    print!("{}", yaml.map_err(|error| Failure::cannot(error.to_string()))?);
    Ok(())
}

fn block_on(command: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.doing("start the runtime")?.block_on(command)
}
