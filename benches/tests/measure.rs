//! A short measurement by the real program: it has to count right answers, and to say so where they are not right.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output};

use serde_json::Value;

fn measure(more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cotter-bench"));
    command.args(["--seconds", "0.5", "--warm-up", "0.2", "--connections", "2", "--rounds", "1"]);
    command.args(more).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn every_peer_answers_the_same_calls() {
    let output = measure(&["--json", "--only", "direct,floor,sidecar"]);
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    let runs: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        runs.iter().map(|run| run["peer"].as_str().unwrap()).collect::<Vec<_>>(),
        ["direct", "floor", "sidecar"]
    );
    for run in &runs {
        assert!(run["outcome"]["calls"].as_u64().unwrap() > 10, "{run}");
        assert!(run["outcome"]["idle_kib"].as_u64().unwrap() > 500, "{run}");
    }
}

#[test]
fn a_caller_without_the_scope_is_no_measurement() {
    let output = measure(&["--only", "sidecar", "--scopes", "other"]);
    assert!(!output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("tools/list"), "{}", said(&output));
    let floor = measure(&["--only", "floor", "--scopes", "other"]);
    assert!(floor.status.success(), "the floor looks at nothing: {}", said(&floor));
}

#[test]
fn the_records_of_all_calls_are_written() {
    let file = std::env::temp_dir().join(format!("cotter-bench-audit-{}", std::process::id()));
    let output = measure(&["--json", "--only", "sidecar", "--audit", file.to_str().unwrap()]);
    let records = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = records.lines().filter(|line| line.contains("\"tools/call\"") && line.contains("\"allow\":true"));
    assert!(records.count() as u64 >= run["outcome"]["calls"].as_u64().unwrap());
}
