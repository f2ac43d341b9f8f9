//! `cotter why` and `cotter get` beside a real `cotter up` whose server cannot be reached: everything but the pin is known.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Up {
    folder: TempDir,
    child: Child,
}

fn server(policy: &str) -> [Value; 4] {
    let tool = |name: &str, scope: &str, effect: &str| json!({"name": name, "scope": scope, "effect": effect});
    let server = json!({
        "apiVersion": "cotter.dev/v1alpha1", "kind": "McpServer", "metadata": {"name": "support"},
        "spec": {"audience": "support://mcp", "upstream": {"remote": {"url": "https://127.0.0.1:9/mcp"}},
                 "access": {"tenants": ["tenant-7"], "serviceAccounts": {"enabled": true}},
                 "policies": [{"configMapRef": {"name": "rules"}}],
                 "tools": [tool("case_tag", "case:write", "Write"), tool("policy_lookup", "policy:read", "Read")]},
    });
    let delegation = |name: &str, account: &str, suspended: bool| {
        json!({
            "apiVersion": "cotter.dev/v1alpha1", "kind": "AgentDelegation", "metadata": {"name": name},
            "spec": {"delegate": {"serviceAccount": {"namespace": "tenant-7", "name": account}}, "suspended": suspended,
                     "to": {"servers": [{"name": "support"}]}, "scopes": ["policy:read"], "effects": ["Read"],
                     "tools": ["policy_*", "case_*"], "tenants": ["tenant-7"],
                     "expiresAt": (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48)).to_string()},
        })
    };
    let rules =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules"}, "data": {"rules.rego": policy}});
    [server, delegation("reader", "bot", false), delegation("sleeper", "sleeper", true), rules]
}

const RULES: &str =
    "package cotter.user.rules\n\ndeny contains \"not for mia\" if {\n\tinput.principal.subject == \"mia\"\n}\n";

impl Up {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("desk")).unwrap();
        for (number, object) in server(RULES).iter().enumerate() {
            fs::write(folder.path().join(format!("desk/{number}.json")), object.to_string()).unwrap();
        }
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = command(folder.path(), &["up", "-f", "desk"]);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let up = Self { folder, child };
        let end = Instant::now() + Duration::from_secs(120);
        while up.cotter(&["why", "-f", "desk", "support", "case_tag"]).status.code() != Some(1) {
            let log = fs::read_to_string(up.folder.path().join("log")).unwrap();
            assert!(Instant::now() < end, "up does not answer: {log}");
            thread::sleep(Duration::from_millis(100));
        }
        up
    }

    fn cotter(&self, args: &[&str]) -> Output {
        command(self.folder.path(), args).output().unwrap()
    }

    /// The exit status of `why`, and what it says.
    fn why(&self, tool: &str, caller: &[&str]) -> (i32, String) {
        let output = self.cotter(&[&["why", "-f", "desk", "support", tool], caller].concat());
        (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cotter"));
    command.args(args).current_dir(folder).env("XDG_STATE_HOME", folder.join("state")).env_remove("KUBECONFIG");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines after "What would have to change:".
fn changes(said: &str) -> Vec<&str> {
    let (_, changes) = said.split_once("What would have to change:\n").unwrap_or_else(|| panic!("{said}"));
    changes.lines().filter_map(|line| line.strip_prefix("  - ")).collect()
}

const UNREAD: &str = "the sidecar of support has to reach the server and read its tools";

#[test]
fn why_names_what_would_have_to_change() {
    let up = Up::start();
    let cases: [(&str, &[&str], &[&str]); 7] = [
        ("case_tag", &["--as", "ada", "--tenant", "tenant-7", "--scope", "case:write"], &[UNREAD]),
        (
            "case_tag",
            &["--as", "ada", "--tenant", "tenant-7", "--scope", "policy:read"],
            &[UNREAD, "the token has to have the scope case:write: it has policy:read"],
        ),
        (
            "case_tag",
            &["--as", "ada", "--tenant", "tenant-8", "--scope", "case:write"],
            &["spec.access.tenants of support has to have tenant-8, or the token another tenant: tenant-7", UNREAD],
        ),
        ("case_tag", &["--as", "ada", "--scope", "case:write"], &["the token has to name a tenant: tenant-7", UNREAD]),
        (
            "case_tag",
            &["--service-account", "tenant-7/bot"],
            &[UNREAD, "the AgentDelegation reader lacks Write in spec.effects and case:write in spec.scopes"],
        ),
        (
            "policy_lookup",
            &["--service-account", "tenant-7/sleeper"],
            &[UNREAD, "the AgentDelegation sleeper is suspended, or one above it is: spec.suspended"],
        ),
        (
            "policy_lookup",
            &["--service-account", "tenant-7/nobody"],
            &[
                UNREAD,
                "an AgentDelegation to support has to name the service account tenant-7/nobody, with scopes [policy:read], \
                 effects [Read], tools [policy_lookup], tenants [tenant-7]",
            ],
        ),
    ];
    for (tool, caller, wanted) in cases {
        let (code, said) = up.why(tool, caller);
        assert_eq!((code, changes(&said)), (1, wanted.to_vec()), "{caller:?}: {said}");
    }
    let (_, said) = up.why("case_tag", &["--as", "mia", "--tenant", "tenant-7", "--scope", "case:write"]);
    let rule = "rules/rules.rego:3:1 refuses: deny contains \"not for mia\"";
    assert_eq!(changes(&said), [UNREAD, rule], "{said}");
    assert!(said.contains("the server was not read yet; what follows takes the tool as approved"), "{said}");
    let (code, said) = up.why("no_such_tool", &["--tenant", "tenant-7"]);
    assert_eq!(
        (code, changes(&said)),
        (1, vec!["spec.tools of support has to declare no_such_tool, with its scope and effect"])
    );
    let (code, said) = up.why("case_tag", &["--tenant", "tenant-7", "--audience", "other://mcp"]);
    assert!(code == 1 && changes(&said)[0].starts_with("the token has to be minted for support://mcp"), "{said}");

    get_shows_the_objects(&up);
}

fn get_shows_the_objects(up: &Up) {
    let get = |args: &[&str]| {
        let output = up.cotter(&[&["get", "-f", "desk"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let (plain, wide) = (get(&["mcps"]), get(&["mcps", "-o", "wide"]));
    let head = |table: &str| table.lines().next().unwrap().split_whitespace().count();
    assert!(plain.starts_with("NAME") && wide.starts_with("NAME") && head(&wide) > head(&plain), "{plain}\n{wide}");
    let list: Value = serde_json::from_str(&get(&["mcps,adel", "-o", "json"])).unwrap();
    let kinds: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!((list["kind"].as_str(), kinds), (Some("List"), vec!["McpServer", "AgentDelegation", "AgentDelegation"]));
    let one: Value = serde_json::from_str(&get(&["adel", "reader", "-o", "json"])).unwrap();
    assert_eq!((one["kind"].as_str(), one["metadata"]["name"].as_str()), (Some("AgentDelegation"), Some("reader")));
    let yaml: Value = serde_saphyr::from_str(&get(&["adel", "reader", "-o", "yaml"])).unwrap();
    assert_eq!(yaml["spec"], one["spec"]);
    assert_eq!(up.cotter(&["get", "-f", "desk", "adel", "absent"]).status.code(), Some(1));
    assert_eq!(up.cotter(&["get", "-f", "desk", "pods"]).status.code(), Some(2));
    assert_eq!(up.cotter(&["get", "-f", "desk", "mcps", "-o", "xml"]).status.code(), Some(2));
    let absent = up.cotter(&["why", "-f", "desk", "absent", "case_tag"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(text(&absent.stderr).contains("there are: support"), "{}", text(&absent.stderr));
}

#[test]
fn what_cannot_be_told_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    let config = "apiVersion: v1\nkind: Config\nclusters: [{name: here, cluster: {server: 'https://127.0.0.1:9'}}]\nusers: [{name: me, user: {}}]\ncontexts: [{name: here, context: {cluster: here, user: me}}]\ncurrent-context: here\n";
    fs::write(&kubeconfig, config).unwrap();
    let said = |args: &[&str]| {
        let output = command(folder.path(), args).env("KUBECONFIG", &kubeconfig).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, err) = said(&["why", "support", "case_tag", "--context", "nowhere"]);
    assert!(code == Some(2) && err.contains("nowhere"), "{err}");
    let (code, err) = said(&["why", "support", "case_tag", "--context", "here", "-n", "support"]);
    assert!(code == Some(2) && err.contains("ConfigMap support/support-bootstrap"), "{err}");
    let (code, err) = said(&["why", "support", "case_tag", "--context", "here", "-f", "."]);
    assert!(code == Some(2) && err.contains("cannot be used with"), "{err}");
    for wrong in [
        &["--as", ""][..],
        &["--scope", "a\u{7}b"],
        &["--service-account", "bot"],
        &["--as", "mia", "--subject", "ada"],
    ] {
        assert_eq!(said(&[&["why", "support", "case_tag"], wrong].concat()).0, Some(2), "{wrong:?}");
    }
    let (code, err) = said(&["why", "support", "case_tag"]);
    assert!(code == Some(2) && err.contains("cotter up -f DIR"), "{err}");
}
