//! `cotter policy test`: Rego tests and cases of modules, with the lines that they reach.

use std::{fmt::Write as _, path::PathBuf};

use clap::{Args, ValueEnum};
use cotter_policies::{Coverage, Sandbox, cases::Cases, check};
use serde::Serialize;
use serde_json::Value;

use super::sources::Sources;
use crate::failure::{Doing as _, Failure, Outcome};

/// The input that cases start from where they name no other.
const BASE: &str = include_str!("../../../policies/cases/base.yaml");

/// Run the tests and cases of policy modules
#[derive(Debug, Args)]
#[command(
    after_help = "Modules are *.rego, tests are rules test_* in *_test.rego, cases are *.yaml.\nExit status: 0 all passed, 1 some failed, 2 they could not be run."
)]
pub(crate) struct Options {
    /// Files, or folders of them
    #[arg(default_value = ".")]
    files: Vec<PathBuf>,
    /// The input that cases start from; the library's own by default
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Junit,
}

#[derive(Debug, Serialize)]
struct Row {
    file: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    tests: Vec<Row>,
    coverage: Vec<Coverage>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let sources = Sources::read(&options.files)?;
    if let Some(finding) = sources.unreadable.first() {
        return Err(Failure::cannot(finding.to_string()));
    }
    let report = report(&sources, &base(options)?)?;
    match options.output {
        Format::Text => print!("{}", report.text()),
        Format::Json => println!("{}", serde_json::to_string(&report).doing("write the report")?),
        Format::Junit => print!("{}", report.junit()),
    }
    let failed = report.failed();
    if report.tests.is_empty() {
        return Err(Failure::cannot(
            "there is no test here: write *_test.rego or cases in *.yaml (cotter policy init)",
        ));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::no("")) }
}

fn base(options: &Options) -> Result<Value, Failure> {
    let text = match &options.base {
        Some(path) => std::fs::read_to_string(path).doing(format!("read {}", path.display()))?,
        None => BASE.to_owned(),
    };
    serde_saphyr::from_str(&text).doing("read the input that cases start from")
}

fn report(sources: &Sources, base: &Value) -> Result<Report, Failure> {
    let mut sandbox = Sandbox::new(&sources.modules).map_err(|error| Failure::cannot(error.to_string()))?;
    let mut tests = Vec::new();
    // What is linear is checked before a parser sees a test; a test that calls itself without end still ends this command.
    check::before_parsing(&sources.tests).map_err(|findings| Failure::cannot(findings.to_string()))?;
    for (file, text) in &sources.tests {
        let one = [(file.clone(), text.clone())].into_iter().collect();
        let outcomes = sandbox.test(&one).map_err(|error| Failure::cannot(format!("{file}: {error}")))?;
        tests.extend(outcomes.into_iter().map(|test| Row {
            file: file.clone(),
            name: test.name,
            failure: test.failure,
        }));
    }
    for (file, text) in &sources.cases {
        let cases: Cases = serde_saphyr::from_str(text).doing(format!("read the cases of {file}"))?;
        let outcomes = match cases.modules.is_empty() {
            true => cases.run(base, &mut sandbox),
            false => Sandbox::new(&cases.modules).and_then(|mut own| cases.run(base, &mut own)),
        };
        let outcomes = outcomes.map_err(|error| Failure::cannot(format!("{file}: {error}")))?;
        tests.extend(outcomes.into_iter().map(|case| Row {
            file: file.clone(),
            name: case.name,
            failure: case.failure,
        }));
    }
    let own = |coverage: &Coverage| sources.modules.contains_key(&coverage.file);
    Ok(Report { tests, coverage: sandbox.coverage().into_iter().filter(own).collect() })
}

impl Report {
    fn failed(&self) -> usize {
        self.tests.iter().filter(|row| row.failure.is_some()).count()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.tests {
            if let Some(failure) = &row.failure {
                text.push_str(&format!("FAILED  {}: {}\n        {failure}\n", row.file, row.name));
            }
        }
        for file in &self.coverage {
            let (covered, all) = (file.covered.len(), file.covered.len() + file.missed.len());
            text.push_str(&format!("{}: {covered} of {all} lines reached{}\n", file.file, missed(&file.missed)));
        }
        let passed = self.tests.len() - self.failed();
        text.push_str(&format!("{passed} passed, {} failed\n", self.failed()));
        text
    }

    /// JUnit's XML, as continuous integration reads it.
    fn junit(&self) -> String {
        let (tests, failures) = (self.tests.len(), self.failed());
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"cotter policy\" tests=\"{tests}\" failures=\"{failures}\">\n"
        );
        for row in &self.tests {
            let (file, name) = (escape(&row.file), escape(&row.name));
            // Writing to a String cannot fail.
            let _ = match &row.failure {
                None => writeln!(text, "  <testcase classname=\"{file}\" name=\"{name}\"/>"),
                Some(failure) => writeln!(
                    text,
                    "  <testcase classname=\"{file}\" name=\"{name}\"><failure message=\"{}\"/></testcase>",
                    escape(failure)
                ),
            };
        }
        text.push_str("</testsuite>\n");
        text
    }
}

fn missed(lines: &[u32]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    format!(", not {}", lines.join(", "))
}

fn escape(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    escaped.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
