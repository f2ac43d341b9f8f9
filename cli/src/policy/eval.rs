//! `cotter policy eval`: the decision on one input, as a sidecar would make it.

use std::path::PathBuf;

use clap::Args;
use cotter_core::strict::{self, Limits};
use cotter_policies::{Layer, Sandbox};
use serde_json::{Value, json};

use super::sources::Sources;
use crate::failure::{Doing as _, Failure, Outcome};

/// Decide on one input and print the decision
#[derive(Debug, Args)]
#[command(
    after_help = "The form of the input is in policies/schema/input.json.\nExit status: 0 allowed, 1 refused, 2 it could not be decided."
)]
pub(crate) struct Options {
    /// The input, a JSON document
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Policy modules, or folders of them; only the library by default
    #[arg(long, value_name = "FILE", num_args = 1..)]
    policy: Vec<PathBuf>,
    /// Say too what each layer found, and which lines were evaluated
    #[arg(long)]
    explain: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let name = options.input.display();
    let bytes = std::fs::read(&options.input).doing(format!("read {name}"))?;
    let input = strict::parse(&bytes, Limits::default()).doing(format!("read {name}"))?;
    let sources = Sources::read(&options.policy)?;
    if let Some(finding) = sources.unreadable.first() {
        return Err(Failure::cannot(finding.to_string()));
    }
    let mut sandbox = Sandbox::new(&sources.modules).map_err(|error| Failure::cannot(error.to_string()))?;
    let (decision, delegation) = sandbox.decide(&input).map_err(|error| Failure::cannot(error.to_string()))?;
    let mut told = serde_json::to_value(&decision).doing("write the decision")?;
    if let Some(told) = told.as_object_mut() {
        told.extend(delegation.map(|name| ("delegation".to_owned(), Value::String(name))));
        if options.explain {
            told.insert(
                "layers".to_owned(),
                layers(&sandbox.explain(&input).map_err(|error| Failure::cannot(error.to_string()))?),
            );
            told.insert("evaluated".to_owned(), evaluated(&sandbox, &sources));
        }
    }
    println!("{}", serde_json::to_string_pretty(&told).doing("write the decision")?);
    if decision.allow { Ok(()) } else { Err(Failure::no("")) }
}

fn layers(layers: &[Layer]) -> Value {
    let told = layers
        .iter()
        .map(|layer| json!({"layer": layer.name, "refuses": layer.refuses, "asks": layer.asks, "found": layer.found}));
    Value::Array(told.collect())
}

/// The lines of the person's own modules: those that were evaluated, and those that were not.
fn evaluated(sandbox: &Sandbox, sources: &Sources) -> Value {
    let own = sandbox.coverage().into_iter().filter(|coverage| sources.modules.contains_key(&coverage.file));
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
