//! The public filesystem server, and the release in which it changed a tool.

use std::{fs, process::Command, time::Instant};

use cotter_tests::{
    client::Client,
    cluster::{Caller, Namespace, condition, is},
    folder::Folder,
    programs::{Said, ours},
};
use serde_json::{Value, json};

use crate::said::{UNKNOWN, code, figure, text};

pub(crate) const URL: &str = "http://filesystem.files.svc/mcp";
pub(crate) const AUDIENCE: &str = "filesystem://mcp";
const HELLO: &str = "/srv/files/hello.txt";

fn apply(namespace: &Namespace, folder: &Folder, file: &str) {
    namespace.apply(&fs::read_to_string(folder.path().join(file)).unwrap()).succeeded();
}

fn row(namespace: &Namespace, kind: &str) -> Vec<String> {
    let table = namespace.kubectl(&["get", kind, "filesystem", "--no-headers"]).good();
    table.split_whitespace().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn a_release_that_flips_an_annotation_is_caught_and_putting_the_old_one_back_is_clean() {
    let (namespace, folder) = (Namespace::fresh("files"), Folder::of_example("filesystem"));
    let reader = Caller::create(&namespace, "reader", AUDIENCE);
    let began = Instant::now();
    for file in ["server.yaml", "pin.yaml", "delegation.yaml"] {
        apply(&namespace, &folder, file);
    }
    namespace.wait_for_tools("filesystem", "14/14");
    figure("from kubectl apply of a new server to 14/14, with its pod", began);
    assert_eq!(row(&namespace, "mcps")[1..5], ["True", "14/14", "0", "1/1"]);
    assert_eq!(row(&namespace, "tpin")[1..5], ["filesystem", "True", "14/14", "0"]);
    reader.wait();
    reader.reaches(URL);
    reads_and_sees(&reader, "move_file", true);
    why_says_the_same();

    folder.replace("server.yaml", "2026.1.14", "2026.7.4");
    let began = Instant::now();
    apply(&namespace, &folder, "server.yaml");
    namespace.kubectl(&["wait", "--for=condition=InSync=false", "tpin/filesystem", "--timeout=90s"]).succeeded();
    figure("from kubectl apply of another release to InSync False, with its pod", began);
    let mcps = namespace.wait_for_tools("filesystem", "13/14");
    assert_eq!(condition(&mcps, "Ready")["status"], "True", "the other tools go on: {mcps:#}");
    assert_eq!(row(&namespace, "mcps")[1..5], ["True", "13/14", "1", "1/1"]);
    shows_the_drift(&namespace.object("tpin", "filesystem"));
    reads_and_sees(&reader, "move_file", false);
    reads_like_an_unknown_tool(&namespace, &reader);

    folder.replace("server.yaml", "2026.7.4", "2026.1.14");
    apply(&namespace, &folder, "server.yaml");
    namespace.wait_for_tools("filesystem", "14/14");
    let pin = namespace.wait_until("tpin", "filesystem", |pin| is(pin, "InSync", "True"));
    assert_eq!(pin["status"]["drift"].as_array().map_or(0, Vec::len), 0, "{pin:#}");
    reads_and_sees(&reader, "move_file", true);
}

/// `cotter why` decides from the snapshot that the operator keeps.
fn why_says_the_same() {
    let why = |tool: &str| {
        let account = ["--namespace", "files", "--service-account", "files/reader"];
        Said::run(Command::new(ours("cotter")).args(["why", "filesystem", tool]).args(account))
    };
    let may = why("read_text_file");
    assert_eq!(may.code, Some(0), "{may:?}");
    assert!(may.out.contains("read_text_file may be called on filesystem"), "{may:?}");
    let may_not = why("write_file");
    assert_eq!(may_not.code, Some(1), "{may_not:?}");
    assert!(may_not.out.contains("EffectNotDelegated"), "{may_not:?}");
}

fn reads_and_sees(reader: &Caller<'_>, tool: &str, seen: bool) {
    let answers = reader.sdk(URL, &json!([["tools/list"], ["tools/call", "read_text_file", {"path": HELLO}]]));
    let names = Client::names(&answers[0]);
    assert!(names.contains(&"read_text_file"), "{names:?}");
    // Delegated are reading and writing, not destroying.
    assert!(!names.contains(&"write_file"), "{names:?}");
    assert_eq!(names.contains(&tool), seen, "{names:?}");
    assert!(text(&answers[1]).starts_with("Hello"), "{answers:?}");
}

fn shows_the_drift(pin: &Value) {
    let drift = pin["status"]["drift"].as_array().unwrap();
    assert_eq!(drift.len(), 1, "{pin:#}");
    assert_eq!(drift[0]["tool"], "move_file");
    assert_eq!(drift[0]["class"], "AuthorityExpanding");
    assert_eq!(drift[0]["fields"], json!(["/annotations/destructiveHint"]));
    assert_eq!(drift[0]["action"], "Quarantined");
    let print =
        |side: &str| drift[0][side].as_str().filter(|print| print.starts_with("cotter.tool/v1:sha256:")).unwrap();
    let pinned = pin["spec"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "move_file").unwrap();
    assert_eq!(pinned["fingerprint"], print("approved"));
    assert_ne!(print("approved"), print("observed"));
}

fn reads_like_an_unknown_tool(namespace: &Namespace, reader: &Caller<'_>) {
    let arguments = json!({"source": HELLO, "destination": "/srv/files/x"});
    let steps = json!([["tools/call", "move_file", arguments], ["tools/call", "no_such_tool", arguments]]);
    let legacy = reader.sdk(URL, &steps);
    assert_eq!(code(&legacy[0]), UNKNOWN, "{legacy:?}");
    assert_eq!(legacy[0], legacy[1]);
    let call = |name: &str| reader.modern(URL, "tools/call", Some(name), json!({"name": name, "arguments": arguments}));
    let (quarantined, unknown) = (call("move_file"), call("no_such_tool"));
    assert_eq!((quarantined.status, &quarantined.body), (unknown.status, &unknown.body));
    assert_eq!(namespace.record("filesystem", &quarantined)["reasons"][0]["code"], "Quarantined");
    assert_eq!(namespace.record("filesystem", &unknown)["reasons"][0]["code"], "NotOffered");
}
