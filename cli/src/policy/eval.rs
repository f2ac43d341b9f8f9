//! `cotter policy eval`: the decision on one input, as a sidecar would make it.

use std::path::PathBuf;

use clap::Args;
use cotter_core::strict::{self, Limits};
use cotter_policies::{Coverage, guard::Guard, unlike};
use serde_json::{Value, json};

use super::sources::{self, Sources};
use crate::{
    CHECK_WORD,
    failure::{Doing as _, Failure, Outcome},
};

/// Bytes of an input: what a sidecar takes of a request by default, and some more for the rest.
const MAX_INPUT: u64 = 4 << 20;

/// Decide on one input and print the decision
#[derive(Debug, Args)]
#[command(
    after_help = "The form of the input is in policies/schema/input.json, that of the decision in policies/schema/decision.json; --explain adds layers, rules and evaluated to it.\nExit status: 0 allowed, 1 refused, 2 it could not be decided."
)]
pub(crate) struct Options {
    /// The input, a JSON document
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Policy modules, or folders of them; only the library by default
    #[arg(long, value_name = "FILE", num_args = 1..)]
    policy: Vec<PathBuf>,
    /// Say too what each layer found, which rules fired, where each of the others stopped, and which lines were evaluated
    #[arg(long)]
    explain: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let name = options.input.display();
    let bytes = sources::bytes(&options.input, MAX_INPUT)?
        .ok_or_else(|| Failure::cannot(format!("the input {name} has more than {MAX_INPUT} bytes")))?;
    let input = strict::parse(&bytes, Limits::default()).doing(format!("read {name}"))?;
    unlike(&input).map_or(Ok(()), |unlike| Err(Failure::cannot(format!("the input {name} is none: {unlike}"))))?;
    let sources = Sources::read(&options.policy)?;
    if let Some(finding) = sources.unreadable.first() {
        return Err(Failure::cannot(finding.to_string()));
    }
    let guard = Guard::new(CHECK_WORD).doing("find this program")?;
    let evaluation = guard.eval(&sources.modules, &input, options.explain);
    let evaluation = evaluation.map_err(|error| Failure::cannot(error.to_string()))?;
    let mut told = serde_json::to_value(&evaluation.decision).doing("write the decision")?;
    if let (Some(told), Some(explanation)) = (told.as_object_mut(), &evaluation.explanation) {
        told.insert("layers".to_owned(), json!(explanation.layers));
        told.insert("rules".to_owned(), json!(explanation.rules));
        told.insert("evaluated".to_owned(), evaluated(&explanation.coverage, &sources));
    }
    println!("{}", serde_json::to_string_pretty(&told).doing("write the decision")?);
    if evaluation.decision.allow { Ok(()) } else { Err(Failure::no("")) }
}

/// The lines of the person's own modules: those that were evaluated, and those that were not.
fn evaluated(coverage: &[Coverage], sources: &Sources) -> Value {
    let own = coverage.iter().filter(|coverage| sources.modules.contains_key(&coverage.file));
    let line = |file: &str, line: &u32| {
        let text = sources.modules.get(file).and_then(|text| text.lines().nth(line.saturating_sub(1) as usize));
        json!({"line": line, "text": text.unwrap_or_default().trim()})
    };
    let told = own.map(|coverage| {
        let of = |lines: &[u32]| lines.iter().map(|number| line(&coverage.file, number)).collect::<Vec<_>>();
        json!({"file": coverage.file, "reached": of(&coverage.covered), "notReached": of(&coverage.missed)})
    });
    Value::Array(told.collect())
}
