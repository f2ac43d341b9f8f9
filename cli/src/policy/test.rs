//! `cotter policy test`: Rego tests and cases of modules, with the lines that they reach.

use std::{fmt::Write as _, path::PathBuf};

use clap::{Args, ValueEnum};
use cotter_policies::{Report, Suite, cases::Cases, guard::Guard, library};
use serde_json::Value;

use super::sources::{self, Sources};
use crate::{
    CHECK_WORD,
    failure::{Doing as _, Failure, Outcome},
};

/// Run the tests and cases of policy modules
#[derive(Debug, Args)]
#[command(
    after_help = "Modules are *.rego, tests are rules test_* in *_test.rego, cases are *.yaml and *.yml.\nExit status: 0 all passed, 1 some failed, 2 they could not be run."
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

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let sources = Sources::read(&options.files)?;
    if let Some(finding) = sources.unreadable.first() {
        return Err(Failure::cannot(finding.to_string()));
    }
    let report = Printed(report(sources, base(options)?)?);
    match options.output {
        Format::Text => print!("{}", report.text()),
        Format::Json => println!("{}", serde_json::to_string(&report.0).doing("write the report")?),
        Format::Junit => print!("{}", report.junit()),
    }
    let failed = report.failed();
    if report.0.tests.is_empty() {
        return Err(Failure::cannot(
            "there is no test here: write *_test.rego or cases in *.yaml (cotter policy init)",
        ));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::no("")) }
}

fn base(options: &Options) -> Result<Value, Failure> {
    let text = match &options.base {
        Some(path) => {
            let name = path.display();
            let bytes = sources::bytes(path, sources::MAX_CASES)?;
            let bytes = bytes.ok_or_else(|| Failure::cannot(format!("the input {name} is too large")))?;
            String::from_utf8(bytes).doing(format!("read {name}"))?
        }
        None => library::BASE.to_owned(),
    };
    serde_saphyr::from_str(&text).doing("read the input that cases start from")
}

/// Everything runs in a child: what a test does to its process it does to that one.
fn report(sources: Sources, base: Value) -> Result<Report, Failure> {
    let read = |(file, text): (String, String)| {
        let cases: Cases = serde_saphyr::from_str(&text).doing(format!("read the cases of {file}"))?;
        Ok((file, cases))
    };
    let cases = sources.cases.into_iter().map(read).collect::<Result<_, Failure>>()?;
    let guard = Guard::new(CHECK_WORD).doing("find this program")?;
    let suite = Suite { modules: sources.modules, tests: sources.tests, cases, base };
    guard.test(suite).map_err(|error| Failure::cannot(error.to_string()))
}

/// How a report is printed.
struct Printed(Report);

impl Printed {
    fn failed(&self) -> usize {
        self.0.tests.iter().filter(|row| row.failure.is_some()).count()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.0.tests {
            if let Some(failure) = &row.failure {
                text.push_str(&format!("FAILED  {}: {}\n        {failure}\n", row.file, row.name));
            }
        }
        for file in &self.0.coverage {
            let (covered, all) = (file.covered.len(), file.covered.len() + file.missed.len());
            text.push_str(&format!("{}: {covered} of {all} lines reached{}\n", file.file, missed(&file.missed)));
        }
        let passed = self.0.tests.len() - self.failed();
        text.push_str(&format!("{passed} passed, {} failed\n", self.failed()));
        text
    }

    /// JUnit's XML, as continuous integration reads it.
    fn junit(&self) -> String {
        let (tests, failures) = (self.0.tests.len(), self.failed());
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"cotter policy\" tests=\"{tests}\" failures=\"{failures}\">\n"
        );
        for row in &self.0.tests {
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
