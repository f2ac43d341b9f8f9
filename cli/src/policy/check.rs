//! `cotter policy check`: whether modules could be used, before anybody uses them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cotter_policies::{check::Finding, guard::Guard};
use serde_json::json;

use super::sources::Sources;
use crate::{
    CHECK_WORD,
    failure::{Doing as _, Failure, Outcome},
};

/// Check policy modules as the operator and `cotter up` do before they use them
#[derive(Debug, Args)]
#[command(
    after_help = "Each finding is one line `file:line:column: message`, then the line itself and what to write instead.\nExit status: 0 all may be used, 1 findings, 2 a file could not be read."
)]
pub(crate) struct Options {
    /// Rego files, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let sources = Sources::read(&options.files)?;
    if sources.modules.is_empty() && sources.unreadable.is_empty() {
        return Err(Failure::cannot(
            "there is no module here: name *.rego files, or a folder that has some (cotter policy init)",
        ));
    }
    let mut findings: Vec<Finding> = sources.unreadable;
    let guard = Guard::new(CHECK_WORD).doing("find this program")?;
    if let Err(found) = guard.check(&sources.modules).map_err(|error| Failure::cannot(error.to_string()))? {
        findings.extend(found.0);
    }
    match options.output {
        Format::Json => println!("{}", json!({"findings": findings})),
        Format::Text if findings.is_empty() => println!("{} modules may be used", sources.modules.len()),
        Format::Text => findings.iter().for_each(|finding| println!("{finding}")),
    }
    if findings.is_empty() { Ok(()) } else { Err(Failure::no("")) }
}
