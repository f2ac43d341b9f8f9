//! The terminal of `up`: what is new, and the table when it changes.

use std::collections::{BTreeMap, BTreeSet};

use cotter_compiler::plan::Notice;
use cotter_crds::condition::types;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::inventory;
use crate::{
    columns::{self, Kind},
    folder::Problem,
};

/// What was said already.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    notices: BTreeSet<String>,
    problems: Vec<Problem>,
    table: String,
    drift: BTreeSet<String>,
    /// The message of each condition that is False, by object and type.
    failing: BTreeMap<(Kind, String, String), String>,
}

/// Conditions that are False through what somebody wrote. Those about being there yet, and those that say what is meant to be so (a
/// delegation that is suspended), are no events; drift has its own lines.
const OF_MANIFESTS: [&str; 4] = [types::ACCEPTED, types::RESOLVED_REFS, types::KEYS_READY, types::POLICIES_READY];

impl Printer {
    /// Says what a server's compile has to say, once.
    pub(crate) fn notices(&mut self, server: &str, notices: &[Notice]) {
        for notice in notices {
            let line = format!("{server}  {:<10} {}", notice.about, notice.text);
            if self.notices.insert(line.clone()) {
                println!("{line}");
            }
        }
    }

    /// Says one line about a server, with the time.
    pub(crate) fn event(&self, now: Timestamp, server: &str, text: &str) {
        println!("{}  {server}  {text}", clock(now));
    }

    /// Says what is wrong in the folder, when it changes.
    pub(crate) fn problems(&mut self, problems: Vec<Problem>) {
        if problems == self.problems {
            return;
        }
        for problem in &problems {
            eprint!("{}", problem.text());
        }
        if problems.is_empty() {
            println!("all files are good again");
        }
        self.problems = problems;
    }

    /// Says each difference of the pins, once for as long as it lasts.
    pub(crate) fn drift(&mut self, objects: &[Value], now: Timestamp) {
        let mut current = BTreeSet::new();
        for pin in objects.iter().filter(|object| Kind::ToolPin.is_of(object)) {
            let server = pin.pointer("/spec/serverRef/name").and_then(Value::as_str).unwrap_or_default();
            for row in pin.pointer("/status/drift").and_then(Value::as_array).into_iter().flatten() {
                let (line, commands) = drift_lines(server, row);
                let said = format!("{server} {line} {commands}");
                if !self.drift.contains(&said) {
                    self.event(now, server, &line);
                    println!("          {commands}");
                }
                current.insert(said);
            }
        }
        self.drift = current;
    }

    /// Says of each condition that is False through what somebody wrote why it is, once for as long as it lasts, and when it ends.
    pub(crate) fn conditions(&mut self, objects: &[Value], now: Timestamp) {
        let mut failing = BTreeMap::new();
        for object in objects {
            let Some(kind) = Kind::of(object) else { continue };
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            for condition in conditions.into_iter().flatten() {
                let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let key = (kind, place(kind, object), text("type"));
                if !OF_MANIFESTS.contains(&key.2.as_str()) {
                    continue;
                }
                let message = format!("{} is False ({}): {}", key.2, text("reason"), text("message"));
                match (text("status").as_str(), self.failing.get(&key)) {
                    ("False", said) => {
                        if said != Some(&message) {
                            self.event(now, &key.1, &message);
                        }
                        failing.insert(key, message);
                    }
                    ("True", Some(_)) => self.event(now, &key.1, &format!("{} is good again", key.2)),
                    _ => {}
                }
            }
        }
        self.failing = failing;
    }

    /// Prints the table of servers when anything but the age changes. True where it did.
    pub(crate) fn table(&mut self, objects: &[Value], now: Timestamp) -> bool {
        let servers: Vec<Value> = objects.iter().filter(|object| Kind::McpServer.is_of(object)).cloned().collect();
        let ageless: Vec<Value> = servers.iter().cloned().map(without_age).collect();
        let key = columns::table(Kind::McpServer, &ageless, false, now).text();
        if key == self.table {
            return false;
        }
        self.table = key;
        print!("\n{}\n", columns::table(Kind::McpServer, &servers, false, now).text());
        true
    }
}

/// An object as an event names it: a server by its name, as everywhere else.
fn place(kind: Kind, object: &Value) -> String {
    let (namespace, name) = (inventory::namespace(object), columns::name(object));
    let namespace = if namespace == "default" { String::new() } else { format!("{namespace}/") };
    match kind {
        Kind::McpServer => format!("{namespace}{name}"),
        _ => format!("{} {namespace}{name}", kind.name()),
    }
}

fn without_age(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("creationTimestamp");
    }
    object
}

fn drift_lines(server: &str, row: &Value) -> (String, String) {
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
    let fields: Vec<&str> =
        row.get("fields").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let (class, action) = (text("class"), text("action"));
    let is_said_by_class = matches!(class, "Added" | "Removed" | "Ambiguous");
    let mut line = match is_said_by_class {
        true => format!("{} is {class} against the pin.", text("tool")),
        false => format!("{} drifted: {class}, {}.", text("tool"), fields.join(", ")),
    };
    if action == "Quarantined" {
        line.push_str(" Quarantined: not listed, not callable.");
    } else {
        line.push_str(" Reported only.");
    }
    (line, format!("cotter pin {server}     cotter get tpin -o yaml"))
}

/// The local time of day.
fn clock(now: Timestamp) -> String {
    now.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}
