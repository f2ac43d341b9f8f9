//! The commands that need nothing but files, as a script uses them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn cotter(args: &[&str], input: &str) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cotter"));
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A captured answer of a public server, as a file with the whole JSON-RPC response.
fn capture(folder: &Path, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/captures").join(format!("{name}.json"));
    let capture: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let file = folder.join(format!("{name}.json"));
    fs::write(&file, capture["raw_tools_list"][0].as_str().unwrap()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("cotter-commands-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

const CASE_TAG: &str = r#"{"name":"case_tag","description":"Apply a reviewed routing tag to a support case.","inputSchema":{"type":"object","properties":{"case_id":{"type":"string"},"tag":{"enum":["manual_review","eligible"]},"idempotency_key":{"type":"string"}},"required":["case_id","tag","idempotency_key"]}}"#;

#[test]
fn a_fingerprint_is_a_line_with_a_tab() {
    let said = cotter(&["fingerprint", "--scheme", "name-description-schema/v0", "-"], CASE_TAG);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let digest = "c0881d63f1f69a12a070c954cb3203fcea0f65ec574267557572afe23455c411";
    assert_eq!(said.out, format!("case_tag\tname-description-schema/v0:sha256:{digest}\n"));
    let pulled = CASE_TAG.replace(
        r#""idempotency_key":{"type":"string"}"#,
        r#""idempotency_key":{"type":"string"},"notify_customer":{"type":"boolean"}"#,
    );
    let said = cotter(&["fingerprint", "--scheme", "name-description-schema/v0", "-"], &pulled);
    let digest = "0e57394cc188f099433a9ae3a9507f27ea70f5018b0700f9e36d7c005d28dbfe";
    assert_eq!(said.out, format!("case_tag\tname-description-schema/v0:sha256:{digest}\n"));
}

#[test]
fn every_form_of_a_file_gives_the_same_line() {
    let one = cotter(&["fingerprint", "-"], CASE_TAG).out;
    assert!(one.starts_with("case_tag\tcotter.tool/v1:sha256:"), "{one}");
    let list = format!(r#"{{"tools":[{CASE_TAG}]}}"#);
    let response = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{list}}}"#);
    for text in [format!("[{CASE_TAG}]"), list, response] {
        assert_eq!(cotter(&["fingerprint", "-"], &text).out, one);
    }
}

#[test]
fn what_cannot_be_hashed_is_said_and_ends_with_2() {
    let twice = CASE_TAG.replacen(r#""name":"case_tag""#, r#""name":"case_tag","name":"other""#, 1);
    let unsafe_number = CASE_TAG.replacen(r#""type":"object""#, r#""type":"object","maximum":9007199254740993"#, 1);
    for (text, says) in [(twice, "name"), (unsafe_number, "2^53"), ("{".to_owned(), "line 1")] {
        let said = cotter(&["fingerprint", "-"], &text);
        assert_eq!(said.code, Some(2), "{text}");
        assert!(said.err.contains(says), "{}", said.err);
    }
    assert_eq!(cotter(&["fingerprint", "/no/such/file"], "").code, Some(2));
    assert_eq!(cotter(&["fingerprint", "--scheme", "md5", "-"], CASE_TAG).code, Some(2));
}

#[test]
fn a_diff_names_exactly_what_moved() {
    let folder = folder("diff");
    let (before, after) = (capture(&folder, "filesystem@2026.1.14"), capture(&folder, "filesystem@2026.7.4"));
    let said = cotter(&["diff", &before, &after, "-o", "json"], "");
    assert_eq!(said.code, Some(1), "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let moved: Vec<&Value> =
        report["tools"].as_array().unwrap().iter().filter(|tool| tool["state"] != "Matched").collect();
    assert_eq!(moved.len(), 1, "{report}");
    assert_eq!(moved[0]["name"], "move_file");
    assert_eq!(moved[0]["class"], "AuthorityExpanding");
    assert_eq!(moved[0]["fields"], json!(["/annotations/destructiveHint"]));
    assert_ne!(moved[0]["before"], moved[0]["after"]);
    let matched = report["tools"].as_array().unwrap().iter().find(|tool| tool["state"] == "Matched").unwrap();
    assert!(matched.get("class").is_none() && matched.get("fields").is_none(), "{matched}");
    assert_eq!(matched["before"], matched["after"]);
    let text = cotter(&["diff", &before, &after], "");
    assert!(text.out.contains("move_file  Drifted  AuthorityExpanding"), "{}", text.out);
}

#[test]
fn nothing_and_cosmetic_are_clean_and_a_removed_tool_is_not() {
    let folder = folder("clean");
    let (first, second) = (capture(&folder, "filesystem@2026.8.31"), capture(&folder, "filesystem@2.0.1"));
    assert_eq!(cotter(&["diff", &first, &first], "").code, Some(0));
    let cosmetic = cotter(&["diff", &first, &second, "-o", "json"], "");
    assert_eq!(cosmetic.code, Some(0), "{}", cosmetic.out);
    assert!(cosmetic.out.contains(r#""class":"Cosmetic""#), "{}", cosmetic.out);
    let removed = cotter(&["diff", "-", "/dev/stdin", "-o", "json"], "[]");
    assert_eq!(removed.code, Some(2), "the same input twice cannot be read: {}", removed.out);
    let empty = folder.join("empty.json");
    fs::write(&empty, "[]").unwrap();
    let removed = cotter(&["diff", &first, empty.to_str().unwrap(), "-o", "json"], "");
    assert_eq!(removed.code, Some(1));
    let report: Value = serde_json::from_str(&removed.out).unwrap();
    assert_eq!((&report["tools"][0]["state"], &report["tools"][0]["after"]), (&json!("Removed"), &Value::Null));
}

#[test]
fn what_cannot_be_compared_ends_with_2() {
    let folder = folder("cannot");
    let twins = folder.join("twins.json");
    fs::write(&twins, format!("[{CASE_TAG},{CASE_TAG}]")).unwrap();
    let good = folder.join("good.json");
    fs::write(&good, format!("[{CASE_TAG}]")).unwrap();
    let said = cotter(&["diff", twins.to_str().unwrap(), good.to_str().unwrap()], "");
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("two tools named case_tag"), "{}", said.err);
    assert_eq!(cotter(&["diff", good.to_str().unwrap(), "/no/such/file"], "").code, Some(2));
    assert_eq!(cotter(&["diff", good.to_str().unwrap(), good.to_str().unwrap()], "").code, Some(0));
}

#[test]
fn crds_are_those_that_are_installed() {
    let said = cotter(&["crds"], "");
    assert_eq!(said.code, Some(0));
    let committed = ["mcpservers", "toolpins", "agentdelegations"].map(|name| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../crds/yaml/{name}.yaml"))).unwrap()
    });
    for yaml in committed {
        let documents = yaml.trim_start_matches(|c| c != 'a');
        assert!(said.out.contains(documents.trim()), "cotter crds and crds/yaml differ");
    }
}

#[test]
fn help_and_completion_are_there_and_a_wrong_word_ends_with_2() {
    let help = cotter(&["--help"], "");
    assert_eq!(help.code, Some(0));
    for command in
        ["up", "get", "list", "call", "token", "pin", "diff", "fingerprint", "why", "policy", "crds", "completion"]
    {
        assert!(help.out.contains(&format!("  {command} ")), "{command} has no help:\n{}", help.out);
        assert_eq!(cotter(&[command, "--help"], "").code, Some(0), "{command}");
    }
    assert!(cotter(&["completion", "bash"], "").out.contains("cotter"));
    let wrong = cotter(&["lits"], "");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("list"), "the message says what was probably meant: {}", wrong.err);
}

#[test]
fn without_a_running_up_the_commands_say_how_to_start_one() {
    let state = folder("state");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cotter"));
    let output = command.args(["get", "mcps"]).env("XDG_STATE_HOME", state.as_os_str()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cotter up -f DIR"));
}
