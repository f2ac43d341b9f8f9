//! On a laptop.

use cotter_core::snapshot::{Sessions, Upstream};
use serde_json::json;

use crate::desk::{Desk, message, said};

fn local(patch: &str) -> Desk {
    Desk::with("{mode: Local}").and(&crate::desk::yaml(patch))
}

fn notices(desk: &Desk) -> Vec<String> {
    desk.plan().notices.into_iter().map(|notice| format!("{} {}", notice.about, notice.text)).collect()
}

#[test]
fn a_container_over_stdio_is_a_child() {
    let plan = local("{server: {spec: {upstream: {container: {env: [{name: MODE, value: demo}, {name: FULL, value: '$(MODE)-1'}], args: [--stdio, '$(FULL)'], stdio: {sessions: Shared}}}}}}").plan();
    let upstream = plan.snapshot.unwrap().snapshot().upstream.clone();
    let command = ["support-desk", "--stdio", "demo-1"].map(str::to_owned).to_vec();
    let env = [("MODE", "demo"), ("FULL", "demo-1")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(upstream, Upstream::Child { command, env, sessions: Sessions::Shared });
    assert!(plan.children.is_none() && plan.process.is_none());
    assert_eq!(plan.server_status.endpoint.as_deref(), Some("http://127.0.0.1:7801/mcp"));
    assert_eq!(plan.server_status.observed, None);
}

#[test]
fn a_person_is_told_what_starts() {
    assert_eq!(
        notices(&local("{}")),
        [
            "server starting support-desk --stdio (the image is not used here)",
            "pin support: 2 tools approved",
            "delegation triage: case:write policy:read, Read Write, tenant-7, until 2027-01-15",
        ]
    );
    assert!(notices(&Desk::new()).is_empty(), "a cluster has nobody at a terminal");
}

#[test]
fn a_container_over_http_is_a_process_and_its_loopback_port() {
    let plan = local("{server: {spec: {upstream: {container: {stdio: null, http: {port: 8000, path: /x}}}}}}").plan();
    let process = plan.process.unwrap();
    assert_eq!((process.command, process.port), (vec!["support-desk".to_owned(), "--stdio".to_owned()], 8000));
    let upstream = plan.snapshot.unwrap().snapshot().upstream.clone();
    assert_eq!(json!(upstream), json!({"http": {"url": "http://127.0.0.1:8000/x"}}));
}

#[test]
fn secrets_come_from_the_folder_or_are_missed_by_name() {
    let env = "{server: {spec: {upstream: {container: {env: [{name: KEY, valueFrom: {secretKeyRef: {name: desk, key: key}}}], envFrom: [{configMapRef: {name: conf}, prefix: C_}]}}}}}";
    let with = local(env).and(&json!({"secrets": {"desk": {"key": "hush"}}, "configMaps": {"conf": {"a": "1"}}}));
    let upstream = with.snapshot().upstream;
    assert_eq!(json!(upstream)["child"]["env"], json!({"KEY": "hush", "C_a": "1"}));
    assert!(!format!("{:?}", with.world().mode).contains("hush"), "a secret is not for a log");

    let without = local(env).plan();
    assert_eq!(said(&without.server_status.conditions, "Accepted"), "False/Invalid");
    let message = message(&without.server_status.conditions, "Accepted");
    assert!(message.contains("envFrom[0]: there is no ConfigMap conf"), "{message}");
    assert!(message.contains("env[0].valueFrom: there is no Secret desk with the key key"), "{message}");
    assert!(without.snapshot.is_none());
}

#[test]
fn a_variable_of_the_pod_is_left_out_and_said_so() {
    let desk = local(
        "{server: {spec: {upstream: {container: {env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}}}}",
    );
    assert!(
        notices(&desk).iter().any(|line| line.contains("the variable POD comes from the pod and is left out here"))
    );
    assert_eq!(json!(desk.snapshot().upstream)["child"]["env"], json!({}));
}

#[test]
fn a_credential_for_a_remote_server_is_a_file_and_never_in_the_snapshot() {
    let remote = "{server: {spec: {upstream: {container: null, remote: {url: 'https://a.example/mcp', credentials: {secretRef: {name: s}}}}}}}";
    let plan = local(remote).and(&json!({"secrets": {"s": {"token": "hush"}}})).plan();
    assert_eq!(plan.files.len(), 1);
    assert_eq!(
        (plan.files[0].path.to_str().unwrap(), plan.files[0].contents.as_str()),
        ("/state/upstream/support/token", "hush")
    );
    assert!(!plan.snapshot.unwrap().bytes().contains("hush"));
    assert!(!format!("{:?}", plan.files).contains("hush"));
    let missing = local(remote).plan();
    assert!(
        message(&missing.server_status.conditions, "Accepted")
            .contains("there is no Secret s with the key token in this folder")
    );
}

#[test]
fn the_development_issuer_counts_beside_the_manifests_own() {
    let dev = json!({"devIssuer": {"name": "dev", "issuer": "https://dev.cotter.local/x", "jwks": {"keys": []}, "claims": {"tenant": "tenant", "scopes": "scope", "groups": "groups"}}});
    let desk = local("{server: {spec: {access: {issuers: []}}}}");
    assert_eq!(said(&desk.plan().server_status.conditions, "KeysReady"), "False/NoIssuer");
    let plan = desk.and(&dev).plan();
    assert_eq!(said(&plan.server_status.conditions, "KeysReady"), "True/KeysReady");
    let cluster = Desk::new().and(&dev).snapshot();
    assert_eq!(cluster.access.issuers.len(), 1, "never in a cluster");
}

#[test]
fn the_next_step_is_a_command_for_this_folder() {
    let plan = local("{pins: {support: null}}").plan();
    assert_eq!(
        message(&plan.server_status.conditions, "Ready"),
        "2 tools are offered and none is approved. Review them and pin: cotter pin -f examples/support-desk support > examples/support-desk/pin.yaml"
    );
}
