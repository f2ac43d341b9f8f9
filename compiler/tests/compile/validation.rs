//! Problems of a server, by cases.

use cotter_compiler::validate::{Place, server};
use cotter_crds::McpServer;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::{Desk, file, yaml};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// A merge patch on the spec of the base's server.
    spec: Value,
    /// Each a `path: message`, of which the beginning is enough; empty where the server is good.
    problems: Vec<String>,
    #[serde(default)]
    laptop: bool,
}

#[test]
fn problems_are_what_the_cases_say() {
    let cases: Vec<Case> = yaml(&file("cases/server.yaml"));
    assert!(cases.len() > 20);
    for case in cases {
        let root = Desk::new().and(&json!({"server": {"spec": case.spec}})).0;
        let object: McpServer = serde_json::from_value(root["server"].clone()).unwrap();
        let place = if case.laptop { Place::Laptop } else { Place::Cluster };
        let found: Vec<String> = match server(&object, place) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        };
        let fit = found.len() == case.problems.len()
            && found.iter().zip(&case.problems).all(|(found, wanted)| found.starts_with(wanted));
        assert!(fit, "{}: expected {:#?}, found {found:#?}", case.name, case.problems);
    }
}

#[test]
fn a_name_that_cannot_name_a_service_is_refused() {
    for (name, good) in [
        ("support", true),
        ("a".repeat(52).as_str(), true),
        ("a".repeat(53).as_str(), false),
        ("7up", false),
        ("Up", false),
        ("", false),
    ] {
        let object: McpServer = serde_json::from_value(
            Desk::new().and(&json!({"server": {"metadata": {"name": name}}})).0["server"].clone(),
        )
        .unwrap();
        assert_eq!(server(&object, Place::Cluster).is_ok(), good, "{name:?}");
    }
}
