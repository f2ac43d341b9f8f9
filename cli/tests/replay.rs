//! What `cotter policy replay` says of delegations, reasons and of records that it cannot decide again.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::{Value, json};

const ISSUER: &str = "https://login.example.com";
const QUIET: &str = "package cotter.user.rules\n\ndeny contains \"never\" if input.tool.effect == \"External\"\n";

/// What is replayed, and against what.
#[derive(Clone)]
struct Case {
    scope: &'static str,
    module: Option<&'static str>,
    delegations: Vec<Value>,
    records: String,
}

fn case(records: &[Value]) -> Case {
    let records = records.iter().map(|record| format!("{record}\n")).collect();
    Case { scope: "case:write", module: None, delegations: Vec::new(), records }
}

impl Case {
    /// The exit status, and what is said.
    fn replay(&self) -> (i32, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let manifests = folder.path().join("manifests");
        fs::create_dir(&manifests).unwrap();
        let policies = self.module.map_or(json!([]), |_| json!([{"configMapRef": {"name": "rules"}}]));
        let server = json!({
            "apiVersion": "cotter.dev/v1alpha1", "kind": "McpServer", "metadata": {"name": "support"},
            "spec": {"audience": "support://mcp", "upstream": {"remote": {"url": "https://mcp.example.com/mcp"}},
                     "access": {"tenants": ["tenant-7"]}, "policies": policies,
                     "tools": [{"name": "case_tag", "scope": self.scope, "effect": "Write"}]},
        });
        fs::write(manifests.join("server.json"), server.to_string()).unwrap();
        if let Some(module) = self.module {
            let rules = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules"}, "data": {"rules.rego": module}});
            fs::write(manifests.join("rules.json"), rules.to_string()).unwrap();
        }
        for (number, delegation) in self.delegations.iter().enumerate() {
            fs::write(manifests.join(format!("{number}.json")), delegation.to_string()).unwrap();
        }
        fs::write(folder.path().join("audit.jsonl"), &self.records).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cotter"));
        command.args(["policy", "replay", "audit.jsonl", "--against", "manifests"]).current_dir(folder.path());
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (status.code().unwrap(), text(&stdout), text(&stderr))
    }

    fn with(mut self, delegations: &[Value]) -> Self {
        self.delegations = delegations.to_vec();
        self
    }
}

fn delegation(name: &str, delegate: &Value) -> Value {
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48);
    json!({
        "apiVersion": "cotter.dev/v1alpha1", "kind": "AgentDelegation", "metadata": {"name": name},
        "spec": {"delegate": delegate, "to": {"servers": [{"name": "support"}]}, "scopes": ["case:write"], "effects": ["Write"],
                 "tools": ["case_*"], "tenants": ["tenant-7"], "expiresAt": soon.to_string()},
    })
}

/// A delegation to one subject.
fn to(name: &str, subject: &str) -> Value {
    delegation(name, &json!({"subject": {"issuer": ISSUER, "subject": subject}}))
}

/// A delegation to whoever has these claims.
fn by(name: &str, claims: Value) -> Value {
    delegation(name, &json!({"claims": claims}))
}

/// A record of a call by somebody whose token states these scopes, or none.
fn record(subject: &str, scopes: Option<&[&str]>, more: Value) -> Value {
    let mut principal =
        json!({"issuer": ISSUER, "subject": subject, "tenant": "tenant-7", "expiresAt": "2040-01-01T00:00:00Z"});
    if let Some(scopes) = scopes {
        principal["scopes"] = json!(scopes);
    }
    let mut record = json!({"id": "1", "time": jiff::Timestamp::now().to_string(), "server": {"namespace": "default", "name": "support"},
                            "principal": principal, "method": "tools/call", "tool": "case_tag", "status": 200, "micros": 9});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

fn allowed(subject: &str, under: Option<&str>) -> Value {
    match under {
        Some(name) => record(subject, None, json!({"allow": true, "delegation": name})),
        None => record(subject, Some(&["case:write"]), json!({"allow": true})),
    }
}

fn refused(subject: &str, scopes: Option<&[&str]>, code: &str) -> Value {
    record(subject, scopes, json!({"allow": false, "reasons": [{"code": code}]}))
}

fn counts(said: &str) -> &str {
    said.lines().find(|line| line.contains("the same, ")).unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn what_a_delegation_by_claims_may_concern_is_not_decided_again() {
    // Both were recorded under exactly these manifests: one by a delegate, one by somebody whom the claims do not name.
    let team = || by("team", json!({"team": "blue"}));
    let records = [allowed("robot", Some("team")), allowed("mia", None)];
    let (code, out, err) = case(&records).with(&[team()]).replay();
    assert_eq!((code, counts(&out)), (2, "0 the same, 0 differ, 2 not decided again, 0 of other kinds"), "{out}");
    assert!(err.contains("nothing was decided again: 2, since a delegation names its parties by claims"), "{err}");

    // Without such a delegation both are decided, and the one that needed it is refused now.
    let (code, out, _) = case(&records).with(&[to("other", "somebody")]).replay();
    assert_eq!((code, counts(&out)), (1, "1 the same, 1 differ, 0 not decided again, 0 of other kinds"), "{out}");
    assert!(out.contains("robot case_tag: allowed then under team, refused now (NoDelegation)"), "{out}");

    // Claims that contradict what the record has are nobody's: the principal is decided.
    let (code, out, _) =
        case(&[allowed("mia", None)]).with(&[by("one", json!({"sub": "ada", "team": "blue"}))]).replay();
    assert_eq!((code, counts(&out)), (0, "1 the same, 0 differ, 0 not decided again, 0 of other kinds"), "{out}");
    let (_, out, _) = case(&[allowed("mia", None)]).with(&[by("one", json!({"sub": "mia", "team": "blue"}))]).replay();
    assert_eq!(counts(&out), "0 the same, 0 differ, 1 not decided again, 0 of other kinds", "{out}");

    // Whom another delegation permits anyway is permitted, whatever the claims; whom it does not may be.
    let named = [team(), to("own", "robot")];
    let (code, out, _) = case(&[allowed("robot", Some("own"))]).with(&named).replay();
    assert_eq!((code, counts(&out)), (0, "1 the same, 0 differ, 0 not decided again, 0 of other kinds"), "{out}");
    let (_, out, _) = case(&[refused("robot", None, "ToolNotDelegated")]).with(&named).replay();
    assert_eq!(counts(&out), "0 the same, 1 differ, 0 not decided again, 0 of other kinds", "{out}");
    let mut narrow = to("own", "robot");
    narrow["spec"]["effects"] = json!(["Read"]);
    let (_, out, _) = case(&[refused("robot", None, "EffectNotDelegated")]).with(&[team(), narrow]).replay();
    assert_eq!(counts(&out), "0 the same, 0 differ, 1 not decided again, 0 of other kinds", "{out}");
    let (_, out, _) = case(&[allowed("robot", Some("team"))]).with(&named).replay();
    assert_eq!(counts(&out), "0 the same, 0 differ, 1 not decided again, 0 of other kinds", "{out}");

    // A rule may read every delegation.
    let modules = Case { module: Some(QUIET), ..case(&[allowed("robot", Some("own"))]).with(&named) };
    assert_eq!(counts(&modules.replay().1), "0 the same, 0 differ, 1 not decided again, 0 of other kinds");
}

#[test]
fn another_reason_and_another_delegation_are_differences() {
    let denies = "package cotter.user.rules\n\ndeny contains \"no\" if true\n";
    let missing = refused("mia", Some(&[]), "MissingScope");
    let (code, out, _) = case(&[missing]).replay();
    assert_eq!((code, counts(&out)), (0, "1 the same, 0 differ, 0 not decided again, 0 of other kinds"), "{out}");
    let now = Case {
        scope: "policy:read",
        module: Some(denies),
        ..case(&[refused("mia", Some(&["policy:read"]), "MissingScope")])
    };
    let (code, out, _) = now.replay();
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("mia case_tag: refused then (MissingScope), refused now (PolicyDenied"), "{out}");
    let (code, out, _) = case(&[refused("mia", Some(&["case:write"]), "MissingScope")]).replay();
    assert!(code == 1 && out.contains("refused then (MissingScope), allowed now"), "{out}");

    let under = |name: &str| {
        case(&[allowed("robot", Some(name))]).with(&[to("first", "robot"), to("second", "robot")]).replay()
    };
    for kept in ["first", "second"] {
        assert_eq!(under(kept).0, 0, "the one that had something left was charged");
    }
    let (code, out, _) = under("third");
    assert!(code == 1 && out.contains("allowed then under third, allowed now under first"), "{out}");

    // As the sidecar has it: whoever has no delegation learns nothing of a tool that there is not.
    let mut unknown = refused("robot", None, "NoDelegation");
    unknown["tool"] = json!("no_such_tool");
    assert_eq!(case(&[unknown]).replay().0, 0);
}

#[test]
fn where_nothing_was_decided_again_nothing_looks_like_success() {
    let half = allowed("mia", None).to_string();
    let initialize = record("mia", Some(&[]), json!({"allow": true, "method": "initialize", "tool": null}));
    for (records, says) in [
        (String::new(), "there is no whole record"),
        (half[..90].to_owned(), "there is no whole record"),
        (format!("{initialize}\n"), "none of 1 records is of a call that the policy decided"),
    ] {
        let (code, out, err) = Case { records: records.clone(), ..case(&[]) }.replay();
        assert_eq!((code, out.starts_with("0 the same, 0 differ, 0 not decided again")), (2, true), "{records}: {out}");
        assert!(err.contains(&format!("nothing was decided again: {says}")), "{records}: {err}");
    }
    let one = Case { records: format!("{initialize}\n{}\n", allowed("mia", None)), ..case(&[]) }.replay();
    assert_eq!(one.0, 0, "{}", one.1);
}
