//! Status by cases: each condition with its twin.

use cotter_compiler::Plan;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::{Desk, file, said, yaml};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    patch: Value,
    expect: Value,
}

#[test]
fn status_is_what_the_cases_say() {
    let cases: Vec<Case> = yaml(&file("cases/status.yaml"));
    assert!(cases.len() > 30);
    let wrong: Vec<String> = cases.iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn wrong(case: &Case) -> Vec<String> {
    let patch = if case.patch.is_null() { json!({}) } else { case.patch.clone() };
    let plan = Desk::new().and(&patch).plan();
    let expected = case.expect.as_object().unwrap().iter();
    expected
        .filter_map(|(what, expected)| {
            let found = look(&plan, what);
            let fits = match (expected.as_str(), found.as_str()) {
                // `~text` is found anywhere in what is there.
                (Some(wanted), Some(found)) if wanted.starts_with('~') => found.contains(&wanted[1..]),
                _ => *expected == found,
            };
            (!fits).then(|| format!("{}: {what}: expected {expected}, found {found}", case.name))
        })
        .collect()
}

/// `server.Ready`, `server.Ready.message`, `server/tools/callable` (a JSON pointer into the status).
fn look(plan: &Plan, what: &str) -> Value {
    let (object, rest) = what.split_at(what.find(['.', '/']).unwrap());
    let (kind, name) = object.split_once(':').unwrap_or((object, "support"));
    let status = match kind {
        "server" => json!(plan.server_status),
        "pin" => json!(plan.pin_statuses.get(name).unwrap_or_else(|| panic!("no pin {name}"))),
        "delegation" => json!(plan.delegation_statuses.get(name).unwrap_or_else(|| panic!("no delegation {name}"))),
        "plan" => json!({"snapshot": plan.snapshot.is_some(), "children": plan.children.is_some()}),
        other => panic!("{other}"),
    };
    let Some(condition) = rest.strip_prefix('.') else {
        return status.pointer(rest).cloned().unwrap_or_default();
    };
    let conditions: Vec<_> = serde_json::from_value(status["conditions"].clone()).unwrap();
    match condition.strip_suffix(".message") {
        Some(type_) => json!(crate::desk::message(&conditions, type_)),
        None => json!(said(&conditions, condition)),
    }
}
