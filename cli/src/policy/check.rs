//! `cotter policy check`: whether modules could be used, before anybody uses them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cotter_policies::{
    check::{self, Finding},
    guard::{Guard, Review},
};
use serde_json::json;

use super::sources::Sources;
use crate::{
    CHECK_WORD,
    failure::{Doing as _, Failure, Outcome},
};

/// Check policy modules as the operator and `cotter up` do before they use them
#[derive(Debug, Args)]
#[command(
    after_help = "Each finding is one line `file:line:column: message`, then the line itself and what to write instead.\nA warning has `warning:` before its message and does not change the exit status.\nExit status: 0 all may be used, 1 findings, 2 a file could not be read."
)]
pub(crate) struct Options {
    /// Rego files, or folders of them
    #[arg(required_unless_present = "functions")]
    files: Vec<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// List the functions of the language that a policy may call, each with the number of its arguments
    #[arg(long, conflicts_with = "files")]
    functions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    if options.functions {
        functions(options.output);
        return Ok(());
    }
    let sources = Sources::read(&options.files)?;
    if sources.modules.is_empty() && sources.unreadable.is_empty() {
        return Err(Failure::cannot(
            "there is no module here: name *.rego files, or a folder that has some (cotter policy init)",
        ));
    }
    let mut review = Review { findings: sources.unreadable, warnings: Vec::new() };
    let guard = Guard::new(CHECK_WORD).doing("find this program")?;
    let found = guard.review_beside(&sources.modules, sources.left_out);
    let found = found.map_err(|error| Failure::cannot(error.to_string()))?;
    review.findings.extend(found.findings);
    review.findings.sort();
    review.warnings.extend(found.warnings);
    match options.output {
        Format::Json => println!("{}", json!(review)),
        Format::Text => say(&review, sources.modules.len()),
    }
    if review.findings.is_empty() { Ok(()) } else { Err(Failure::no("")) }
}

fn say(review: &Review, modules: usize) {
    review.findings.iter().for_each(|finding| println!("{finding}"));
    for warning in &review.warnings {
        let message = format!("warning: {}", warning.message);
        println!("{}", Finding { message, ..warning.clone() });
    }
    if review.findings.is_empty() {
        println!("{modules} {} may be used", if modules == 1 { "module" } else { "modules" });
    }
}

fn functions(format: Format) {
    match format {
        Format::Json => {
            let named = |(name, arguments): &(&str, usize)| json!({"name": name, "arguments": arguments});
            println!("{}", json!({"functions": check::allowed().iter().map(named).collect::<Vec<_>>()}));
        }
        Format::Text => check::allowed().iter().for_each(|(name, arguments)| println!("{name}/{arguments}")),
    }
}
