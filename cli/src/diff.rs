//! `cotter diff`: what changed between two lists of tools, and how bad that is.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use cotter_core::{
    drift::{self, Class, Drift},
    fingerprint::{Fingerprint, Ignore, Scheme, fingerprint},
    scan::visible,
    tool::ToolObject,
};
use serde::Serialize;

use crate::{
    failure::{Doing as _, Failure, Outcome},
    tools_file,
};

/// Compare two lists of tools and class every change
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 nothing or only Cosmetic moved, 1 anything else did, 2 it could not be compared."
)]
pub(crate) struct Options {
    /// The tools as they were approved: a file in any form that `cotter fingerprint` takes
    before: String,
    /// The tools as they are now
    after: String,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// How one tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum State {
    Matched,
    Drifted,
    Added,
    Removed,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Class>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<String>>,
    before: Option<Fingerprint>,
    after: Option<Fingerprint>,
    #[serde(skip)]
    drift: Option<Drift>,
}

#[derive(Debug, Serialize)]
struct Report {
    tools: Vec<Row>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let report = compare(&by_name(&options.before)?, &by_name(&options.after)?)?;
    match options.output {
        Format::Json => println!("{}", serde_json::to_string(&report).doing("write the comparison")?),
        Format::Text => print!("{}", report.text()),
    }
    if report.is_clean() { Ok(()) } else { Err(Failure::no("")) }
}

fn by_name(file: &str) -> Result<BTreeMap<String, ToolObject>, Failure> {
    let mut tools = BTreeMap::new();
    for tool in tools_file::read(file)? {
        let name = tool.name.clone();
        if tools.insert(name.clone(), tool).is_some() {
            let name = tools_file::shown(&name);
            return Err(Failure::cannot(format!(
                "{file} has two tools named {name}: which one is compared cannot be said"
            )));
        }
    }
    Ok(tools)
}

fn compare(before: &BTreeMap<String, ToolObject>, after: &BTreeMap<String, ToolObject>) -> Result<Report, Failure> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let rows = names.into_iter().map(|name| row(name, before.get(name), after.get(name)));
    Ok(Report { tools: rows.collect::<Result<_, _>>()? })
}

fn row(name: &str, before: Option<&ToolObject>, after: Option<&ToolObject>) -> Result<Row, Failure> {
    let hash = |tool: Option<&ToolObject>| {
        let hash = |tool: &ToolObject| fingerprint(&tool.value, Scheme::ToolV1, &Ignore::NONE);
        tool.map(hash).transpose().map_err(|error| Failure::cannot(format!("{}: {error}", tools_file::shown(name))))
    };
    let drift = match (before, after) {
        (Some(before), Some(after)) => drift::classify(&before.value, &after.value, &Ignore::NONE),
        _ => None,
    };
    let state = match (before, after) {
        (None, _) => State::Added,
        (_, None) => State::Removed,
        _ if drift.is_some() => State::Drifted,
        _ => State::Matched,
    };
    Ok(Row {
        name: name.to_owned(),
        state,
        class: drift.as_ref().map(|drift| drift.class),
        fields: drift.as_ref().map(|drift| drift.fields.clone()),
        before: hash(before)?,
        after: hash(after)?,
        drift,
    })
}

impl Report {
    fn is_clean(&self) -> bool {
        let clean = |row: &Row| row.state == State::Matched || row.class == Some(Class::Cosmetic);
        self.tools.iter().all(clean)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for row in self.tools.iter().filter(|row| row.state != State::Matched) {
            text.push_str(&row.text());
        }
        let count = |state: State| self.tools.iter().filter(|row| row.state == state).count();
        let (matched, drifted) = (count(State::Matched), count(State::Drifted));
        let (added, removed) = (count(State::Added), count(State::Removed));
        text.push_str(&format!("{matched} matched, {drifted} drifted, {added} added, {removed} removed\n"));
        text
    }
}

impl Row {
    fn text(&self) -> String {
        let name = tools_file::shown(&self.name);
        let Some(drift) = &self.drift else { return format!("{name}  {:?}\n", self.state) };
        let mut text = format!("{name}  Drifted  {}\n", drift.class.as_str());
        for change in &drift.changes {
            text.push_str(&format!(
                "  {}  {}: {}\n",
                visible(&change.pointer),
                change.class.as_str(),
                change.why.text()
            ));
        }
        for found in &drift.found {
            text.push_str(&format!(
                "  {}  found: {:?} {}\n",
                visible(&found.pointer),
                found.finding,
                visible(&found.detail)
            ));
        }
        if let Some(why) = drift.lifted {
            text.push_str(&format!("  as a whole: {}\n", why.text()));
        }
        text
    }
}
