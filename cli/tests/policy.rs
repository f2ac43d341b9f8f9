//! `cotter policy` as a script uses it, and hostile texts against the check.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use cotter_policies::guard::Guard;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What a check of a hostile text may take. It is refused in well under two seconds; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn cotter(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cotter")).args(args).current_dir(folder).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let nested = format!("package cotter.user.x\n\nx := {}1{}\n", "[".repeat(40), "]".repeat(40));
    let rules: String = (0..1_000_000).map(|n| format!("r{n} := {n}\n")).collect();
    let chain: String = (0..2000).map(|n| format!("r{} := r{n}\n", n + 1)).collect();
    vec![
        ("nested", nested.into_bytes()),
        ("recursive", b"package cotter.user.x\n\nf(n) := f(n)\n\ndeny contains \"x\" if f(1)\n".to_vec()),
        ("range", b"package cotter.user.x\n\ndeny contains \"x\" if count(numbers.range(1, 50000000)) > 0\n".to_vec()),
        ("huge", vec![b' '; 200 << 20]),
        ("million", format!("package cotter.user.x\n\n{rules}").into_bytes()),
        ("chain", format!("package cotter.user.x\n\nr0 := 1\n{chain}").into_bytes()),
        ("utf8", b"package cotter.user.x\n\n# \xff\n".to_vec()),
        ("bidi", "package cotter.user.x\n\n# \u{202e}evil\n".as_bytes().to_vec()),
        ("outside", b"package cotter.user.x\n\ndeny contains \"x\" if http.send({\"url\": \"x\"})\n".to_vec()),
        ("library", b"package cotter.authz\n\ndecision := {\"allow\": true}\n".to_vec()),
    ]
}

#[test]
fn every_hostile_text_is_refused_with_its_place() {
    let folder = folder();
    for (name, text) in hostile() {
        let file = format!("{name}.rego");
        fs::write(folder.path().join(&file), text).unwrap();
        let start = Instant::now();
        let output = cotter(folder.path(), &["policy", "check", &file]);
        assert!(start.elapsed() < PATIENCE, "{name} took {:?}", start.elapsed());
        assert_eq!(output.status.code(), Some(1), "{name}: {}", out(&output));
        let first = out(&output).lines().next().unwrap_or_default().to_owned();
        let place: Vec<&str> = first.splitn(4, ':').collect();
        assert_eq!(place[0], file, "{name}: {first}");
        assert!(place[1].parse::<u32>().is_ok() && place[2].parse::<u32>().is_ok(), "{name}: {first}");
    }
}

#[test]
fn a_check_that_is_stopped_names_the_module_and_lets_the_others_be() {
    // A program that never answers stands for a parser that never ends.
    let guard = Guard::of(PathBuf::from("/bin/false"), "x");
    let modules = BTreeMap::from([("a.rego".to_owned(), "package cotter.user.a\n".to_owned())]);
    let findings = guard.check(&modules).unwrap().unwrap_err();
    assert_eq!((findings.0[0].file.as_str(), findings.0[0].line), ("a.rego", 1));
    let guard = Guard::of(PathBuf::from(env!("CARGO_BIN_EXE_cotter")), "check-policy-modules");
    assert!(guard.check(&modules).unwrap().is_ok());
    assert!(Guard::of(PathBuf::from("/no/such/program"), "x").check(&modules).is_err());
}

#[test]
fn a_good_module_passes_and_json_is_for_machines() {
    let folder = folder();
    assert_eq!(cotter(folder.path(), &["policy", "init", "."]).status.code(), Some(0));
    let again = cotter(folder.path(), &["policy", "init", "."]);
    assert_eq!(again.status.code(), Some(2), "nothing is overwritten");
    let good = cotter(folder.path(), &["policy", "check", "-o", "json", "."]);
    assert_eq!(serde_json::from_slice::<Value>(&good.stdout).unwrap(), json!({"findings": []}));
    fs::write(folder.path().join("bad.rego"), "package cotter.user.bad\n\ndeny contains 1 if nonsense(2)\n").unwrap();
    let bad = cotter(folder.path(), &["policy", "check", "-o", "json", "."]);
    assert_eq!(bad.status.code(), Some(1));
    let findings: Value = serde_json::from_slice(&bad.stdout).unwrap();
    assert_eq!(findings["findings"][0]["line"], 3, "{findings}");
    assert_eq!(cotter(folder.path(), &["policy", "check", "absent.rego"]).status.code(), Some(2));
}

#[test]
fn tests_pass_or_fail_and_none_is_no_success() {
    let folder = folder();
    cotter(folder.path(), &["policy", "init", "."]);
    let passed = cotter(folder.path(), &["policy", "test", "."]);
    assert_eq!(passed.status.code(), Some(0), "{}", out(&passed));
    assert!(out(&passed).contains("5 passed, 0 failed"), "{}", out(&passed));
    let path = folder.path().join("starter.rego");
    let broken = fs::read_to_string(&path).unwrap().replace("!= \"Read\"", "== \"Read\"");
    fs::write(&path, broken).unwrap();
    let failed = cotter(folder.path(), &["policy", "test", ".", "-o", "junit"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(out(&failed).contains("<failure"), "{}", out(&failed));
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(cotter(empty.path(), &["policy", "test", "."]).status.code(), Some(2));
}

#[test]
fn eval_says_the_decision_and_why() {
    let folder = folder();
    let base: Value = serde_saphyr::from_str(include_str!("../../policies/cases/base.yaml")).unwrap();
    fs::write(folder.path().join("in.json"), base.to_string()).unwrap();
    let allowed = cotter(folder.path(), &["policy", "eval", "--input", "in.json"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", out(&allowed));
    assert_eq!(serde_json::from_slice::<Value>(&allowed.stdout).unwrap()["allow"], true);
    let mut without = base;
    without["principal"]["scopes"] = json!([]);
    fs::write(folder.path().join("in.json"), without.to_string()).unwrap();
    let refused = cotter(folder.path(), &["policy", "eval", "--input", "in.json", "--explain"]);
    assert_eq!(refused.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(told["reasons"], json!([{"code": "MissingScope", "detail": "case:write"}]));
    let scopes = told["layers"].as_array().unwrap().iter().find(|layer| layer["layer"] == "scopes").unwrap();
    assert_eq!(scopes["refuses"][0]["code"], "MissingScope", "{told:#}");
    fs::write(folder.path().join("in.json"), "{\"a\":1,\"a\":2}").unwrap();
    assert_eq!(cotter(folder.path(), &["policy", "eval", "--input", "in.json"]).status.code(), Some(2));
}

/// A folder with one server, in no namespace of its own, whose tool demands this scope.
fn server(folder: &Path, scope: &str, module: &str) -> PathBuf {
    let path = folder.join(scope.replace(':', "-"));
    fs::create_dir_all(&path).unwrap();
    let server = json!({
        "apiVersion": "cotter.dev/v1alpha1", "kind": "McpServer", "metadata": {"name": "support"},
        "spec": {"audience": "support://mcp", "upstream": {"remote": {"url": "https://mcp.example.com/mcp"}},
                 "access": {"tenants": ["tenant-7"]}, "policies": [{"configMapRef": {"name": "rules"}}],
                 "tools": [{"name": "case_tag", "scope": scope, "effect": "Write"}]},
    });
    let rules =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules"}, "data": {"rules.rego": module}});
    fs::write(path.join("server.json"), server.to_string()).unwrap();
    fs::write(path.join("rules.json"), rules.to_string()).unwrap();
    path
}

fn record(namespace: &str) -> String {
    let principal = json!({"issuer": "https://login.example.com", "subject": "mia", "tenant": "tenant-7", "scopes": ["case:write"],
                           "expiresAt": "2026-12-01T00:00:00Z"});
    let record = json!({"id": "1", "time": "2026-11-30T12:00:00Z", "server": {"namespace": namespace, "name": "support"},
                        "principal": principal, "method": "tools/call", "tool": "case_tag", "allow": true, "status": 200, "micros": 9});
    format!("{record}\n")
}

#[test]
fn replay_says_what_differs_and_never_that_nothing_does_where_nothing_was_decided() {
    let folder = folder();
    let quiet = "package cotter.user.rules\n\ndeny contains \"never\" if input.tool.effect == \"External\"\n";
    let (same, other) = (server(folder.path(), "case:write", quiet), server(folder.path(), "case:admin", quiet));
    let replay = |audit: &str, against: &Path, more: &[&str]| {
        fs::write(folder.path().join("audit.jsonl"), audit).unwrap();
        let against = against.to_str().unwrap();
        cotter(folder.path(), &[&["policy", "replay", "audit.jsonl", "--against", against], more].concat())
    };
    let clean = replay(&record("default"), &same, &[]);
    assert_eq!(
        (clean.status.code(), out(&clean).starts_with("1 the same, 0 differ")),
        (Some(0), true),
        "{}",
        out(&clean)
    );
    let differs = replay(&record("default"), &other, &[]);
    assert_eq!(differs.status.code(), Some(1));
    assert!(out(&differs).contains("allowed then, refused now (MissingScope case:admin)"), "{}", out(&differs));
    assert_eq!(replay(&record("support"), &other, &[]).status.code(), Some(2), "another namespace is another server");
    assert_eq!(replay(&record("support"), &other, &["--namespace", "support"]).status.code(), Some(1));
    assert_eq!(replay("not json\n", &same, &[]).status.code(), Some(2));

    // The record has the time, so a rule that reads it is decided again; it has no arguments, so one that reads them is not.
    let night = "package cotter.user.rules\n\ndeny contains \"noon\" if input.now == \"2026-11-30T12:00:00Z\"\n";
    let noon = replay(&record("default"), &server(folder.path(), "case:write", night), &[]);
    assert_eq!(noon.status.code(), Some(1), "{}", out(&noon));
    let arguments = "package cotter.user.rules\n\ndeny contains \"x\" if input.args.x == 1\n";
    let apart = replay(&record("default"), &server(folder.path(), "case:write", arguments), &[]);
    assert!(out(&apart).starts_with("0 the same, 0 differ, 1 not decided again"), "{}", out(&apart));
}

#[test]
fn a_check_of_nothing_is_no_success() {
    let empty = folder();
    assert_eq!(cotter(empty.path(), &["policy", "check", "."]).status.code(), Some(2));
}
