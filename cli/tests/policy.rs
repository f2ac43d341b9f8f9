//! `cotter policy` as a script uses it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

fn cotter(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cotter")).args(args).current_dir(folder).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_good_module_passes_and_json_is_for_machines() {
    let folder = folder();
    assert_eq!(cotter(folder.path(), &["policy", "init", "."]).status.code(), Some(0));
    let good = cotter(folder.path(), &["policy", "check", "-o", "json", "."]);
    assert_eq!(serde_json::from_slice::<Value>(&good.stdout).unwrap(), json!({"findings": [], "warnings": []}));
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
    // Nobody can agree to a call, so that a rule that asks for a person refuses it; what was refused for that stays refused.
    let person = "package cotter.user.rules\n\nrequire_approval contains \"a person\" if true\n";
    let asks = server(folder.path(), "case:write", person);
    let asked = replay(&record("default"), &asks, &[]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(out(&asked).contains("allowed then, refused now (ApprovalRequired)"), "{}", out(&asked));
    let waited =
        record("default").replace("\"allow\":true", "\"allow\":false,\"reasons\":[{\"code\":\"ApprovalRequired\"}]");
    let same_again = replay(&waited, &asks, &[]);
    assert_eq!(same_again.status.code(), Some(0), "{}", out(&same_again));
    let arguments = "package cotter.user.rules\n\ndeny contains \"x\" if input.args.x == 1\n";
    let apart = replay(&record("default"), &server(folder.path(), "case:write", arguments), &[]);
    assert!(out(&apart).starts_with("0 the same, 0 differ, 1 not decided again"), "{}", out(&apart));
    assert_eq!(apart.status.code(), Some(2), "nothing was decided again, which is no success");
    assert!(err(&apart).contains("nothing was decided again: 1, since rules read the arguments"), "{}", err(&apart));
}

#[test]
fn replay_reads_what_other_programs_and_accidents_write() {
    let folder = folder();
    let quiet = "package cotter.user.rules\n\ndeny contains \"never\" if input.tool.effect == \"External\"\n";
    let against = server(folder.path(), "case:write", quiet);
    let replay = |audit: &[u8]| {
        fs::write(folder.path().join("audit.jsonl"), audit).unwrap();
        cotter(folder.path(), &["policy", "replay", "audit.jsonl", "--against", against.to_str().unwrap()])
    };
    let good = record("default");
    // The last line is being written.
    let half = replay(format!("{good}{}", &good[..100]).as_bytes());
    assert_eq!(
        (half.status.code(), out(&half)),
        (Some(0), "1 the same, 0 differ, 0 not decided again, 0 of other kinds\n".to_owned())
    );
    assert!(err(&half).contains("audit.jsonl:2, is not whole"), "{}", err(&half));
    // A line in the middle that is no record, bytes that are no text, and a reason of a later version are not calm.
    let strange = good.replace("\"allow\":true", "\"allow\":false,\"reasons\":[{\"code\":\"FromTheFuture\"}]");
    for bad in [b"{\"half\":\n".to_vec(), b"\xff\xfe\n".to_vec(), strange.into_bytes()] {
        let said = replay(&[bad, good.clone().into_bytes()].concat());
        assert_eq!(said.status.code(), Some(2), "{}", out(&said));
        assert!(out(&said).starts_with("1 the same, 0 differ"), "the rest is decided: {}", out(&said));
        assert!(
            err(&said).contains("1 lines are no records; the first: failed to read the record at audit.jsonl:1"),
            "{}",
            err(&said)
        );
    }
    // Members that a later version adds do not matter, and a record without a principal is of another kind.
    let more = good.replace("\"allow\":true", "\"allow\":true,\"later\":{\"a\":[1]}");
    let mut nobody: Value = serde_json::from_str(&good).unwrap();
    nobody.as_object_mut().unwrap().remove("principal");
    let said = replay(format!("{more}\n\n{nobody}\n").as_bytes());
    assert_eq!(out(&said), "1 the same, 0 differ, 0 not decided again, 1 of other kinds\n", "{}", err(&said));
    // A line without end is not read to its end.
    let long = replay(&[b"{\"id\":\"".to_vec(), vec![b'a'; 2 << 20]].concat());
    assert_eq!(long.status.code(), Some(2));
    assert!(err(&long).contains("audit.jsonl:1 has more than"), "{}", err(&long));
}

#[test]
fn replay_decides_twenty_thousand_records_in_the_memory_of_one() {
    let folder = folder();
    let quiet = "package cotter.user.rules\n\ndeny contains \"never\" if input.tool.effect == \"External\"\n";
    let against = server(folder.path(), "case:write", quiet);
    let peak = |records: usize| {
        fs::write(folder.path().join("audit.jsonl"), record("default").repeat(records)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cotter"));
        command.args(["policy", "replay", "audit.jsonl", "--against", against.to_str().unwrap()]);
        let mut child = command.current_dir(folder.path()).stdout(std::process::Stdio::null()).spawn().unwrap();
        let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0_u64);
        while child.try_wait().unwrap().is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with("VmHWM:"));
            let now = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse().ok());
            peak = peak.max(now.unwrap_or_default());
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        peak
    };
    let (few, many) = (peak(1000), peak(20_000));
    assert!(many < few + 10 * 1024, "{few} KiB for a thousand and {many} KiB for twenty thousand");
}

#[test]
fn a_test_that_has_no_end_ends_with_its_place_and_not_with_the_program() {
    let folder = folder();
    cotter(folder.path(), &["policy", "init", "."]);
    let run = |text: &str| {
        fs::write(folder.path().join("more_test.rego"), format!("package more_test\n\n{text}\n")).unwrap();
        let said = cotter(folder.path(), &["policy", "test", "."]);
        assert_eq!(said.status.code(), Some(2), "{}{}", out(&said), err(&said));
        err(&said)
    };
    let said = run("f(n) := f(n)\n\ntest_a if f(1)");
    assert!(said.contains("more_test.rego:3:1: the rule uses itself: data.more_test.f -> data.more_test.f"), "{said}");
    // One call that makes more than there may be ends the child, and only that.
    let said = run("test_a if count(numbers.range(1, 900000000)) > 1");
    assert!(said.contains("at ./more_test.rego: more_test.test_a: it needed more than 1024 MiB of memory"), "{said}");
    let said = run(&format!("x := {}", "[".repeat(40)));
    assert!(said.contains("more_test.rego:3:16: brackets are nested"), "{said}");
    fs::write(folder.path().join("more_test.rego"), "package more_test\n\ntest_a if true\n").unwrap();
    fs::write(folder.path().join("cases.yaml"), "about: x\nmodules: {m: \"package cotter.user.m\\n\\nf(n) := f(n)\\n\"}\ncases: [{name: a, expect: {allow: false}}]\n").unwrap();
    let said = cotter(folder.path(), &["policy", "test", "."]);
    assert_eq!(said.status.code(), Some(2));
    assert!(err(&said).contains("m:3:1: the rule uses itself"), "{}", err(&said));
}

#[test]
fn a_warning_is_a_line_of_its_own_and_refuses_nothing() {
    let folder = folder();
    let text = "package cotter.user.m\n\ndeny contains \"x\" if {\n\tnot startswith(input.args.name, \"a\")\n}\n";
    fs::write(folder.path().join("m.rego"), text).unwrap();
    let said = cotter(folder.path(), &["policy", "check", "m.rego"]);
    assert_eq!(said.status.code(), Some(0));
    let first = "m.rego:4:6: warning: where input.args is missing, `not` is true here and undefined in opa\n";
    assert!(out(&said).starts_with(first), "{}", out(&said));
    assert!(out(&said).contains("give the condition a rule of its own"), "{}", out(&said));
    let json: Value =
        serde_json::from_slice(&cotter(folder.path(), &["policy", "check", "-o", "json", "m.rego"]).stdout).unwrap();
    assert_eq!((json["findings"].as_array().unwrap().len(), &json["warnings"][0]["line"]), (0, &json!(4)));
}

#[test]
fn the_functions_are_listed_and_the_documentation_has_the_same() {
    let folder = folder();
    let said = cotter(folder.path(), &["policy", "check", "--functions"]);
    assert_eq!(said.status.code(), Some(0));
    let listed: Vec<String> = out(&said).lines().map(|line| line.split('/').next().unwrap().to_owned()).collect();
    let documented = include_str!("../../docs/policy.md");
    let documented = documented.split("<!-- functions -->").nth(1).unwrap();
    let documented: Vec<String> = documented.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect();
    assert_eq!(
        documented, listed,
        "docs/policy.md names other functions between <!-- functions --> than the check allows"
    );
    let json: Value =
        serde_json::from_slice(&cotter(folder.path(), &["policy", "check", "--functions", "-o", "json"]).stdout)
            .unwrap();
    assert_eq!(json["functions"].as_array().unwrap().len(), listed.len());
    assert_eq!(
        cotter(folder.path(), &["policy", "check"]).status.code(),
        Some(2),
        "without a file there is nothing to do"
    );
}

#[test]
fn a_check_of_nothing_is_no_success() {
    let empty = folder();
    assert_eq!(cotter(empty.path(), &["policy", "check", "."]).status.code(), Some(2));
}
