//! The cases, judged by this crate.

use cotter_crds::{
    AgentDelegation, McpServer, ToolPin,
    check::{Place, Problem, validate},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    case::{self, Case, Expect},
    manifest, probe,
};

fn failure(case: &Case, problems: &[Problem]) -> Option<String> {
    let fine = match &case.expect {
        Expect::Accepted => problems.is_empty(),
        Expect::Refused { here, .. } => {
            problems.iter().any(|p| p.path.to_string() == here.at && p.message.contains(&here.says))
        }
        Expect::Not { here, .. } => !problems.iter().any(|p| p.message.contains(here)),
    };
    let list = || problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let wanted = match &case.expect {
        Expect::Accepted => "acceptance".to_owned(),
        Expect::Refused { here, .. } => format!("{}: …{}…", here.at, here.says),
        Expect::Not { here, .. } => format!("not …{here}…"),
    };
    (!fine).then(|| format!("{}\n  wanted {wanted}\n  got {}", case.name, list()))
}

fn judge(cases: &[Case]) {
    let failures: Vec<String> =
        cases.iter().filter_map(|case| failure(case, &validate(&case.object, Place::Cluster))).collect();
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn written_cases_are_judged_as_written() {
    judge(&case::written());
}

#[test]
fn every_bound_holds_from_both_sides() {
    judge(&probe::all());
}

/// A manifest decodes into its type and comes back with everything that it said.
fn returns<K: Serialize + DeserializeOwned>(object: &Value) {
    let typed: K = serde_json::from_value(object.clone()).unwrap();
    let back = serde_json::to_value(&typed).unwrap();
    assert_eq!(manifest::lost(&object["spec"], &back["spec"], "spec"), Vec::<String>::new());
}

#[test]
fn every_manifest_is_accepted_and_survives_its_type() {
    for manifest in manifest::all() {
        assert_eq!(validate(&manifest.object, Place::Cluster), vec![], "{}", manifest.name);
        match manifest.object["kind"].as_str().unwrap() {
            "McpServer" => returns::<McpServer>(&manifest.object),
            "ToolPin" => returns::<ToolPin>(&manifest.object),
            _ => returns::<AgentDelegation>(&manifest.object),
        }
    }
}

#[test]
fn defaults_of_the_schema_are_those_of_the_types() {
    let object = &manifest::all().into_iter().find(|manifest| manifest.name == "server-http").unwrap().object;
    let server: McpServer = serde_json::from_value(object.clone()).unwrap();
    let filled = serde_json::to_value(&server).unwrap();
    assert_eq!(filled["spec"]["protocol"]["revisions"], serde_json::json!(["2025-06-18", "2025-11-25", "2026-07-28"]));
    assert_eq!(filled["spec"]["pinning"], "Enforce");
    assert_eq!(filled["spec"]["limits"]["timeout"], "60s");
    for (place, schema) in crate::site::declared(&crate::site::schemas()[0].1) {
        let pointer = format!("/{}", place.replace('.', "/"));
        if let (Some(default), Some(value)) = (schema.get("default"), filled.pointer(&pointer)) {
            assert_eq!(default, value, "{place}");
        }
    }
}
