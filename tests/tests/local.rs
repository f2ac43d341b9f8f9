//! `cotter up` as its user lives it, with public clients and servers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

#[path = "local/explained.rs"]
mod explained;

use std::{fs, os::unix::fs::symlink, path::Path};

use cotter_tests::{
    client::{Client, modern},
    folder::Folder,
    programs::tools,
    up::Up,
};
use serde_json::{Value, json};

const UNKNOWN: i64 = -32602;

/// A folder for the path in which the public filesystem server is one release, and can become another.
struct Release {
    folder: tempfile::TempDir,
}

impl Release {
    fn new(version: &str) -> Self {
        let release = Self { folder: tempfile::tempdir().unwrap() };
        release.install(version);
        release
    }

    /// As an installer does it: the new link takes the old one's place at once.
    fn install(&self, version: &str) {
        let program = tools().join(format!("node/filesystem-{version}/node_modules/.bin/mcp-server-filesystem"));
        assert!(program.exists(), "{} is missing", program.display());
        let next = self.folder.path().join("next");
        symlink(program, &next).unwrap();
        fs::rename(next, self.folder.path().join("mcp-server-filesystem")).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn code(answer: &Value) -> i64 {
    answer.pointer("/error/code").and_then(Value::as_i64).unwrap_or_else(|| panic!("no error: {answer}"))
}

fn text(answer: &Value) -> &str {
    answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_else(|| panic!("no text: {answer}"))
}

const WRITER: [&str; 4] = ["--tenant", "tenant-7", "--scope", "files:read files:write"];

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_release_that_flips_an_annotation_is_caught_and_putting_the_old_one_back_is_clean() {
    let release = Release::new("2026.1.14");
    let folder = Folder::of_example("filesystem");
    let mut up = Up::start(&folder, &[release.path().to_path_buf()]);
    up.wait_for_tools("filesystem", "14/14");
    let (url, token) = (up.endpoint("filesystem"), up.token(&WRITER));
    let hello = folder.path().join("files/hello.txt");
    let steps = json!([["tools/list"], ["tools/call", "read_text_file", {"path": hello}]]);
    for client in Client::ALL {
        let answers = client.run(&url, &token, &steps);
        assert_eq!(Client::names(&answers[0]).len(), 14, "{client:?}");
        assert!(Client::names(&answers[0]).contains(&"move_file"), "{client:?}");
        assert_eq!(text(&answers[1]).trim(), "Hello from the filesystem example.", "{client:?}");
    }

    release.install("2026.7.4");
    up.wait_for("move_file drifted: AuthorityExpanding, /annotations/destructiveHint");
    up.wait_for_tools("filesystem", "13/14");
    let steps = json!([
        ["tools/list"],
        ["tools/call", "read_text_file", {"path": hello}],
        ["tools/call", "move_file", {"source": hello, "destination": "/tmp/x"}],
        ["tools/call", "no_such_tool", {"source": hello, "destination": "/tmp/x"}],
    ]);
    for client in Client::ALL {
        let answers = client.run(&url, &token, &steps);
        assert!(!Client::names(&answers[0]).contains(&"move_file"), "{client:?}");
        assert_eq!(Client::names(&answers[0]).len(), 13, "{client:?}");
        assert_eq!(text(&answers[1]).trim(), "Hello from the filesystem example.", "{client:?}");
        assert_eq!(code(&answers[2]), UNKNOWN, "{client:?}");
        assert_eq!(answers[2], answers[3], "{client:?}: a quarantined tool reads like an unknown one");
    }
    let table = up.cotter(&["get", "mcps"]).good();
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..5], ["filesystem", "True", "13/14", "1", "1/1"], "{table}");
    let pin = up.cotter(&["get", "tpin", "-o", "yaml"]).good();
    for wanted in [
        "class: AuthorityExpanding",
        "- /annotations/destructiveHint",
        "approved: cotter.tool/v1:sha256:",
        "observed: cotter.tool/v1:sha256:",
    ] {
        assert!(pin.contains(wanted), "{wanted}\n{pin}");
    }

    release.install("2026.1.14");
    up.wait_for_tools("filesystem", "14/14");
    let object = up.wait_until("tpin", "filesystem", |object| object["status"]["summary"]["matched"] == 14);
    assert_eq!(object["status"]["drift"].as_array().map_or(0, Vec::len), 0, "{object:#}");
    let answers = Client::TypeScript.run(&url, &token, &json!([["tools/list"]]));
    assert_eq!(Client::names(&answers[0]).len(), 14);
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn scopes_filter_the_list_and_calls_are_decided_again() {
    let folder = Folder::of_example("support-desk");
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let url = up.endpoint("support");
    let token = |scope: &str| up.token(&["--tenant", "tenant-7", "--scope", scope]);
    let tag = json!({"case_id": "C-41", "tag": "manual_review", "idempotency_key": "k1"});
    let steps =
        json!([["tools/list"], ["tools/call", "policy_lookup", {"topic": "refund"}], ["tools/call", "case_tag", tag]]);
    for client in Client::ALL {
        let reader = client.run(&url, &token("policy:read"), &steps);
        assert_eq!(Client::names(&reader[0]), ["policy_lookup"], "{client:?}");
        let answer: Value = serde_json::from_str(text(&reader[1])).unwrap();
        assert_eq!(answer, json!({"found": true, "policy_version": "v3", "manual_review_above_cents": 5000}));
        assert_eq!(code(&reader[2]), UNKNOWN, "{client:?}: never seen and called all the same");
        let writer = client.run(&url, &token("policy:read case:write"), &steps);
        assert_eq!(Client::names(&writer[0]), ["case_tag", "policy_lookup"], "{client:?}");
        let answer: Value = serde_json::from_str(text(&writer[2])).unwrap();
        assert_eq!(answer["receipt"], "receipt-1", "{client:?}: the same key, the same receipt");
    }
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_token_for_another_audience_cannot_even_list() {
    let folder = Folder::of_example("support-desk");
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let url = up.endpoint("support");
    let flags = ["--tenant", "tenant-7", "--scope", "policy:read case:write"];
    let other = up.token(&[&flags[..], &["--audience", "inventory://api"]].concat());
    let refused = modern(&url, &other, "tools/list", None, json!({}));
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").unwrap().contains("resource_metadata="), "{refused:?}");
    assert_eq!(modern(&url, &up.token(&flags), "tools/list", None, json!({})).status, 200);
    let said = up.cotter(&[&["list", "support"], &flags[..], &["--audience", "inventory://api"]].concat());
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("Unauthorized") && said.out.contains("TokenAudience"), "{}", said.out);
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn the_rug_pull_of_the_example_is_quarantined_while_the_rest_goes_on() {
    let folder = Folder::of_example("support-desk");
    let mut up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    folder.replace("server.yaml", "--stdio", "--stdio, --rug-pull");
    up.wait_for("case_tag drifted: Additive, /inputSchema/properties/notify_customer");
    up.wait_for_tools("support", "1/2");
    let (url, token) =
        (up.endpoint("support"), up.token(&["--tenant", "tenant-7", "--scope", "policy:read case:write"]));
    let call = |name: &str| {
        modern(&url, &token, "tools/call", Some(name), json!({"name": name, "arguments": {"topic": "refund"}}))
    };
    assert_eq!(call("policy_lookup").json()["result"]["isError"], false);
    let (quarantined, unknown) = (call("case_tag"), call("no_such_tool"));
    assert_eq!(quarantined.body, unknown.body);
    assert_eq!(quarantined.status, unknown.status);
    assert_eq!(quarantined.json()["error"]["code"], UNKNOWN);
    let said = up.cotter(&["call", "support", "case_tag", "--tenant", "tenant-7", "--scope", "policy:read case:write"]);
    assert!(said.out.contains("because  Quarantined"), "{}", said.out);
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_budget_is_used_up_and_raised_while_everything_runs() {
    let folder = Folder::of_example("support-desk");
    folder.replace("delegation.yaml", "  effects: [Read]", "  effects: [Read]\n  budget: {calls: 2}");
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let (url, token) = (up.endpoint("support"), up.token(&["--service-account", "support/triage-bot"]));
    let ask = || {
        let params = json!({"name": "policy_lookup", "arguments": {"topic": "refund"}});
        modern(&url, &token, "tools/call", Some("policy_lookup"), params).status
    };
    let used = |wanted: &str, reason: &str| {
        up.wait_until("adel", "triage-bot", |object| {
            let active =
                object["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Active");
            object["status"]["budget"]["used"] == wanted && active.is_some_and(|active| active["reason"] == reason)
        });
    };
    used("0/2", "Active");
    assert_eq!(ask(), 200);
    used("1/2", "Active");
    assert_eq!((ask(), ask()), (200, 429));
    used("2/2", "BudgetExhausted");
    let table = up.cotter(&["get", "adel", "-o", "wide"]).good();
    assert!(table.contains("BUDGET") && table.contains("2/2"), "{table}");
    folder.replace("delegation.yaml", "budget: {calls: 2}", "budget: {calls: 3}");
    used("2/3", "Active");
    assert_eq!((ask(), ask()), (200, 429));
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn one_broken_file_is_named_and_the_good_ones_run() {
    let folder = Folder::of_example("support-desk");
    folder.write(
        "broken.yaml",
        "apiVersion: cotter.dev/v1alpha1\nkind: McpServer\nmetadata:\n  name: other\nspec:\n  audiense: x://y\n",
    );
    folder.write("torn.yaml", "a: [1,\nb: 2\n");
    let mut up = Up::start(&folder, &[]);
    up.wait_for("broken.yaml:6:3: spec.audiense");
    up.wait_for("torn.yaml:1:4: unclosed bracket");
    up.wait_for_tools("support", "2/2");
    let log = up.log();
    assert!(log.contains("audience"), "the message says what to write instead:\n{log}");
    folder.write("broken.yaml", "");
    folder.write("torn.yaml", "");
    up.wait_for("all files are good again");
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_folder_has_one_up_and_the_second_is_told_which() {
    let folder = Folder::of_example("support-desk");
    let up = Up::start(&folder, &[]);
    let second = up.cotter(&["up", "-f", folder.path().to_str().unwrap()]);
    assert_eq!(second.code, Some(2));
    assert!(second.err.contains("already runs") && second.err.contains("process"), "{}", second.err);
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_pin_for_a_server_that_does_not_exist_says_so() {
    let folder = Folder::of_example("support-desk");
    folder.replace("pin.yaml", "serverRef:\n    name: support", "serverRef:\n    name: gone");
    let up = Up::start(&folder, &[]);
    let pin = up.wait_until("tpin", "support", |object| !object["status"].is_null());
    let conditions = pin["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    assert_eq!(ready["status"], "False", "{pin:#}");
    assert!(ready["message"].as_str().unwrap().contains("no McpServer gone"), "{pin:#}");
    up.wait_for_tools("support", "0/2");
}

fn policy(module: &str) -> String {
    let indented: String = module.lines().map(|line| format!("    {line}\n")).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: support-policy}}\ndata:\n  desk.rego: |\n{indented}")
}

const NO_REFUNDS: &str = "package cotter.user.desk\n\ndeny contains \"no refunds\" if {\n  input.operation.kind == \"call\"\n  input.args.topic == \"refund\"\n}\n";

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_policy_is_swapped_under_a_live_caller_and_a_bad_one_changes_nothing() {
    let folder = Folder::of_example("support-desk");
    folder.replace("server.yaml", "  tools:\n", "  policies: [{configMapRef: {name: support-policy}}]\n  tools:\n");
    folder.write("policy.yaml", &policy(NO_REFUNDS));
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let (url, token) = (up.endpoint("support"), up.token(&["--tenant", "tenant-7", "--scope", "policy:read"]));
    let ask = |topic: &str| {
        let params = json!({"name": "policy_lookup", "arguments": {"topic": topic}});
        modern(&url, &token, "tools/call", Some("policy_lookup"), params)
    };
    let refused = ask("refund");
    assert_eq!((refused.status, refused.json()["error"]["data"]["reason"].clone()), (403, json!("PolicyDenied")));
    assert_eq!(ask("parking").status, 200);

    folder.write("policy.yaml", &policy(&NO_REFUNDS.replace("refund", "parking")));
    up.wait_until("mcps", "support", |_| ask("parking").status == 403);
    assert_eq!(ask("refund").status, 200, "one revision or the other, never half of each");

    folder.write("policy.yaml", &policy("package cotter.user.desk\n\ndeny contains \"x\" if http.send({})\n"));
    let object = up.wait_until("mcps", "support", |object| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "PoliciesReady" && condition["status"] == "False")
    });
    assert!(object.to_string().contains("desk.rego:3:22"), "the place is said: {object:#}");
    assert_eq!((ask("parking").status, ask("refund").status), (403, 200), "the previous revision stays in force");

    folder.write("policy.yaml", &policy(NO_REFUNDS));
    up.wait_until("mcps", "support", |_| ask("refund").status == 403);
}

/// Two values that are written out a million million times over, and compared where a caller says so.
fn endless() -> String {
    let doubled = |name: &str, first: &str| -> String {
        let next = |depth: usize| format!("{name}{depth} := [{name}{0}, {name}{0}]\n\n", depth - 1);
        format!("{name}0 := [{first}]\n\n") + &(1..=40).map(next).collect::<String>()
    };
    let compare = "deny contains \"x\" if {\n\tinput.args.topic == \"hold\"\n\ta40 == b40\n\tfalse\n}\n";
    let (one, other) = (doubled("a", "input.args.topic"), doubled("b", "lower(input.args.topic)"));
    format!("package cotter.user.desk\n\n{one}{other}{compare}")
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn an_evaluation_that_does_not_end_refuses_what_these_rules_decide_and_stops_nothing_else() {
    let folder = Folder::of_example("support-desk");
    folder.replace("server.yaml", "  tools:\n", "  policies: [{configMapRef: {name: support-policy}}]\n  tools:\n");
    folder.write("policy.yaml", &policy(&endless()));
    let mut up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let (url, token) = (up.endpoint("support"), up.token(&["--tenant", "tenant-7", "--scope", "policy:read"]));
    let ask = |topic: &str| json!({"name": "policy_lookup", "arguments": {"topic": topic}});
    let call = || modern(&url, &token, "tools/call", Some("policy_lookup"), ask("refund"));
    assert_eq!(call().status, 200, "{}", up.log());
    let (held_url, held_token, held) = (url.clone(), token.clone(), ask("hold"));
    // Its answer never comes; the thread ends with the test.
    let _held = std::thread::spawn(move || {
        drop(modern(&held_url, &held_token, "tools/call", Some("policy_lookup"), held));
    });
    let refused = (0..600).map(|_| call()).find(|answer| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        answer.status != 200
    });
    let refused = refused.expect("the rules are held").json();
    assert_eq!(refused["error"]["data"]["reason"], "PolicyTimeout", "{refused}");
    let stranger = up.token(&["--tenant", "tenant-8", "--scope", "policy:read"]);
    let stranger = modern(&url, &stranger, "tools/call", Some("policy_lookup"), ask("refund")).json();
    assert_eq!(stranger["error"]["data"]["reason"], "TenantNotAdmitted", "who decides before the rules goes on");
    folder.write("policy.yaml", &policy(NO_REFUNDS));
    let parking = || modern(&url, &token, "tools/call", Some("policy_lookup"), ask("parking")).status;
    let better = (0..300).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        parking() == 200
    });
    assert!(better, "other rules are new ones: {}", up.log());
    assert!(up.stop(), "the evaluation goes on, and the program ends");
}

/// The folder's label stands for the operator's namespace: it holds for servers that name no module, in whatever namespace.
#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_labelled_policy_holds_for_every_server_of_the_folder_while_it_is_labelled() {
    let folder = Folder::of_example("support-desk");
    let labelled = |label: &str, module: &str| {
        let metadata = format!("{{name: everybody, namespace: platform, labels: {{cotter.dev/policy: {label}}}}}");
        policy(module).replace("{name: support-policy}", &metadata)
    };
    folder.write("policy.yaml", &labelled("draft", NO_REFUNDS));
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let (url, token) = (up.endpoint("support"), up.token(&["--tenant", "tenant-7", "--scope", "policy:read"]));
    let ask = |topic: &str| {
        let params = json!({"name": "policy_lookup", "arguments": {"topic": topic}});
        modern(&url, &token, "tools/call", Some("policy_lookup"), params).status
    };
    let policies_ready = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "PoliciesReady").unwrap_or_default()
    };
    assert_eq!(ask("refund"), 200, "another label");

    folder.write("policy.yaml", &labelled("cluster", NO_REFUNDS));
    let object = up.wait_until("mcps", "support", |_| ask("refund") == 403);
    assert_eq!((policies_ready(&object)["message"].as_str(), ask("parking")), (Some("1 module, cluster-wide"), 200));

    folder.write(
        "policy.yaml",
        &labelled("cluster", "package cotter.user.desk\n\ndeny contains \"x\" if http.send({})\n"),
    );
    let object = up.wait_until("mcps", "support", |object| policies_ready(object)["status"] == "False");
    let message = policies_ready(&object)["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("cluster/everybody/desk.rego:3:22"), "the place is said: {message}");
    assert_eq!((ask("refund"), ask("parking")), (403, 200), "the previous revision stays in force");

    folder.write("policy.yaml", &labelled("draft", NO_REFUNDS));
    up.wait_until("mcps", "support", |_| ask("refund") == 200);
}

#[test]
#[ignore = "needs the public clients and servers of tests/tools"]
fn a_service_account_may_do_what_its_delegation_gives_and_nothing_once_it_is_suspended() {
    let folder = Folder::of_example("support-desk");
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let url = up.endpoint("support");
    let list = |account: &str| modern(&url, &up.token(&["--service-account", account]), "tools/list", None, json!({}));
    let bot = list("support/triage-bot");
    assert_eq!(Client::names(&bot.json()), ["policy_lookup"]);
    let other = list("support/somebody");
    assert_eq!((other.status, other.json()["error"]["data"]["reason"].clone()), (403, json!("NoDelegation")));
    let foreign = list("elsewhere/triage-bot");
    assert_eq!((foreign.status, foreign.json()["error"]["data"]["reason"].clone()), (403, json!("TenantNotAdmitted")));

    folder.replace("delegation.yaml", "spec:\n", "spec:\n  suspended: true\n");
    up.wait_until("adel", "triage-bot", |object| object.to_string().contains("Suspended"));
    up.wait_until("adel", "triage-bot", |_| list("support/triage-bot").status == 403);
    let why = up.cotter(&["why", "support", "policy_lookup", "--service-account", "support/triage-bot"]);
    assert!(why.out.contains("NoDelegation"), "{}", why.out);
}
