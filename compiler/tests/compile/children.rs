//! The objects of a cluster.

use std::path::Path;

use cotter_compiler::Children;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::{Value, json};

use crate::desk::{Desk, file};

fn children(patch: &str) -> Children {
    Desk::with(patch).plan().children.expect("children")
}

fn pod(children: &Children) -> PodSpec {
    children.deployment.spec.clone().unwrap().template.spec.unwrap()
}

fn container(pod: &PodSpec, name: &str) -> Container {
    pod.containers.iter().find(|container| container.name == name).unwrap().clone()
}

/// The whole, reviewed. `UPDATE=1 cargo test -p cotter-compiler` writes it anew.
#[test]
fn children_are_the_reviewed_ones() {
    let Children { service_account, mut bootstrap, observed, service, deployment } = children("{}");
    // The snapshot's bytes have their own tests.
    let text = bootstrap.data.as_mut().unwrap().get_mut("bootstrap.json").unwrap();
    let mut parsed: Value = serde_json::from_str(text).unwrap();
    parsed["snapshot"] = json!("…");
    *text = parsed.to_string();
    let all = [json!(service_account), json!(bootstrap), json!(observed), json!(service), json!(deployment)];
    let found: String = all.iter().map(|one| format!("---\n{}", serde_saphyr::to_string(one).unwrap())).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/support.yaml");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, file("golden/support.yaml"), "run with UPDATE=1, and review the difference");
}

#[test]
fn the_server_sees_nothing_of_the_sidecar() {
    for transport in ["{}", "{stdio: null, http: {port: 8080}}"] {
        let patch = format!("{{server: {{spec: {{upstream: {{container: {transport}}}}}}}}}");
        let pod = pod(&children(&patch));
        let server = container(&pod, "server");
        let mounted: Vec<String> = server.volume_mounts.into_iter().flatten().map(|mount| mount.name).collect();
        let allowed = ["cotter-shim", "cotter-run"];
        assert!(mounted.iter().all(|name| allowed.contains(&name.as_str())), "{mounted:?}");
        assert_eq!(pod.automount_service_account_token, Some(false));
        assert_eq!(pod.share_process_namespace, None);
        assert_ne!(pod.host_network, Some(true));
        let sidecar = container(&pod, "cotter-proxy");
        let shared: Vec<String> =
            sidecar.volume_mounts.into_iter().flatten().map(|m| m.name).filter(|n| mounted.contains(n)).collect();
        assert!(shared.iter().all(|name| name == "cotter-run"), "only the socket's directory is shared: {shared:?}");
    }
}

#[test]
fn the_sidecar_has_a_token_for_the_operator_and_no_other() {
    let pod = pod(&children("{}"));
    let token = pod.volumes.iter().flatten().find(|volume| volume.name == "cotter-token").unwrap();
    let sources = json!(token.projected.as_ref().unwrap().sources);
    assert_eq!(
        sources,
        json!([{"serviceAccountToken": {"audience": "cotter.dev/operator", "expirationSeconds": 600, "path": "token"}}])
    );
    let security = json!(container(&pod, "cotter-proxy").security_context);
    for (member, wanted) in [
        ("runAsNonRoot", json!(true)),
        ("readOnlyRootFilesystem", json!(true)),
        ("allowPrivilegeEscalation", json!(false)),
        ("capabilities", json!({"drop": ["ALL"]})),
    ] {
        assert_eq!(security[member], wanted, "{member}");
    }
}

#[test]
fn the_sidecar_steps_aside_for_the_port_of_the_server() {
    let listens = |port: u16| {
        let patch =
            format!("{{server: {{spec: {{upstream: {{container: {{stdio: null, http: {{port: {port}}}}}}}}}}}}}");
        let args = container(&pod(&children(&patch)), "cotter-proxy").args.unwrap();
        args.into_iter().filter(|arg| arg.contains("0.0.0.0")).collect::<Vec<_>>()
    };
    assert_eq!(listens(8000), ["--listen=0.0.0.0:8080", "--admin=0.0.0.0:9090"]);
    assert_eq!(listens(8080), ["--listen=0.0.0.0:18080", "--admin=0.0.0.0:9090"]);
    assert_eq!(listens(9090), ["--listen=0.0.0.0:8080", "--admin=0.0.0.0:19090"]);
}

#[test]
fn a_server_over_http_keeps_its_own_entrypoint() {
    let pod = pod(&children(
        "{server: {spec: {upstream: {container: {command: [], args: [], stdio: null, http: {port: 8000}}}}}}",
    ));
    let server = container(&pod, "server");
    assert_eq!((server.command, server.args, pod.init_containers), (None, None, None));
}

#[test]
fn a_remote_server_has_a_sidecar_alone_with_the_credential_for_itself() {
    let patch = "{server: {spec: {upstream: {container: null, remote: {url: 'https://a.example/mcp', credentials: {secretRef: {name: s, key: k}}}}}}}";
    let pod = pod(&children(patch));
    let names: Vec<&str> = pod.containers.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, ["cotter-proxy"]);
    let secret = pod.volumes.iter().flatten().find_map(|volume| volume.secret.as_ref()).unwrap();
    assert_eq!(json!(secret), json!({"secretName": "s", "items": [{"key": "k", "path": "token"}]}));
    let without = "{server: {spec: {upstream: {container: null, remote: {url: 'https://a.example/mcp'}}}}}";
    assert!(super::children::pod(&children(without)).volumes.iter().flatten().all(|volume| volume.secret.is_none()));
}

#[test]
fn the_manifest_decides_about_the_pod_and_our_labels_win() {
    let patch = "{server: {spec: {replicas: 3, sidecar: {image: 'other:1'}, podTemplate: {labels: {a: b, cotter.dev/server: mine}, annotations: {c: d}, serviceAccountName: own, nodeSelector: {e: f}, tolerations: [{key: g, operator: Exists}], affinity: {podAntiAffinity: {}}, priorityClassName: high, terminationGracePeriodSeconds: 5}}}}";
    let children = children(patch);
    let spec = children.deployment.spec.clone().unwrap();
    let meta = spec.template.metadata.unwrap();
    assert_eq!(
        json!(meta.labels),
        json!({"a": "b", "app.kubernetes.io/managed-by": "cotter", "app.kubernetes.io/name": "support", "cotter.dev/server": "support"})
    );
    assert_eq!(json!(meta.annotations), json!({"c": "d"}));
    let pod = pod(&children);
    assert_eq!(spec.replicas, Some(3));
    assert_eq!(pod.service_account_name.as_deref(), Some("own"));
    assert!(children.service_account.is_none(), "somebody else's account is not ours to make");
    assert_eq!(container(&pod, "cotter-proxy").image.as_deref(), Some("other:1"));
    assert_eq!(
        (pod.node_selector.unwrap().len(), pod.tolerations.unwrap().len(), pod.affinity.is_some()),
        (1, 1, true)
    );
    assert_eq!((pod.priority_class_name.as_deref(), pod.termination_grace_period_seconds), (Some("high"), Some(5)));
}

#[test]
fn a_change_of_the_snapshot_does_not_touch_the_pods() {
    let (before, after) = (children("{}"), children("{delegations: {triage: {spec: {suspended: true}}}}"));
    assert_eq!(before.deployment, after.deployment);
    assert_ne!(before.bootstrap, after.bootstrap);
}

#[test]
fn the_bootstrap_has_the_bytes_that_the_digest_names() {
    let plan = Desk::new().plan();
    let sealed = plan.snapshot.unwrap();
    let text = plan.children.unwrap().bootstrap.data.unwrap().remove("bootstrap.json").unwrap();
    assert!(text.contains(&**sealed.bytes()));
    let parsed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["snapshot"]["digest"], json!(sealed.digest()));
    assert_eq!(parsed["server"], json!({"namespace": "support", "name": "support"}));
}

#[test]
fn observed_definitions_are_exact_and_left_alone_while_nobody_has_read_them() {
    let plan = Desk::with("{sidecars: {support-0: {tools: extra}}}").plan();
    let seen = plan.observed.unwrap();
    let parsed: Value = serde_json::from_str(&seen.tools_json).unwrap();
    let names: Vec<&str> =
        parsed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["case_tag", "delete_all", "policy_lookup"], "unlisted tools too: a pin is made from these");
    let unread = Desk::with("{sidecars: {support-0: {knows: NeverRead}}}").plan();
    assert!(unread.observed.is_none() && unread.children.unwrap().observed.is_none());
    let two = Desk::with("{sidecars: {support-1: {tools: rugpull, knows: Verified, enforces: this}}}").plan();
    assert_eq!(two.observed.unwrap().differing, ["case_tag"]);
    let map = two.children.unwrap().observed.unwrap();
    assert_eq!(map.metadata.annotations.unwrap().get("cotter.dev/differing").unwrap(), "case_tag");
}
