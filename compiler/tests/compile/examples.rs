//! Every example is accepted, in a cluster and on a laptop.

use std::path::{Path, PathBuf};

use cotter_compiler::{World, compile};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::desk::{Desk, message, said};

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let folders = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    folders.filter(|folder| folder.join("server.yaml").exists()).collect()
}

fn objects<T: DeserializeOwned>(folder: &Path, kind: &str) -> Vec<T> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.extension().is_some_and(|ext| ext == "yaml")).map(std::fs::read_to_string);
    let all = texts.flat_map(|text| serde_saphyr::from_multiple::<Value>(&text.unwrap()).unwrap());
    all.filter(|object| object["kind"] == kind).map(|object| serde_json::from_value(object).unwrap()).collect()
}

#[test]
fn every_example_is_accepted() {
    let folders = examples();
    assert!(folders.len() >= 2, "{folders:?}");
    for folder in folders {
        for mode in ["{mode: Cluster}", "{mode: Local}"] {
            let world = World {
                server: objects(&folder, "McpServer").pop().unwrap(),
                pins: objects(&folder, "ToolPin"),
                delegations: objects(&folder, "AgentDelegation"),
                ..Desk::with(mode).world_without_reports()
            };
            let plan = compile(&world);
            let place = format!("{} {mode}", folder.display());
            let conditions = &plan.server_status.conditions;
            assert_eq!(said(conditions, "Accepted"), "True/Accepted", "{place}: {}", message(conditions, "Accepted"));
            assert!(plan.snapshot.is_some(), "{place}: {}", message(conditions, "Ready"));
            assert_eq!(plan.pin_statuses.len(), world.pins.len());
            for (name, status) in &plan.pin_statuses {
                let said = said(&status.conditions, "Accepted");
                assert_eq!(said, "True/Accepted", "{place} {name}: {}", message(&status.conditions, "Accepted"));
            }
            for (name, status) in &plan.delegation_statuses {
                let said = said(&status.conditions, "Accepted");
                assert_eq!(said, "True/Accepted", "{place} {name}: {}", message(&status.conditions, "Accepted"));
            }
        }
    }
}
