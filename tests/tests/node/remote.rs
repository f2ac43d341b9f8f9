//! A server that runs elsewhere: what reaches it, and a change of it that no pod announces.

use std::{process::Command, time::Instant};

use cotter_tests::{
    cluster::{Caller, Namespace, is, kubectl_with},
    folder::with_time_left,
    programs::{Said, ours},
};
use serde_json::{Value, json};

use crate::said::{figure, text};

const URL: &str = "http://elsewhere.remote.svc/mcp";

/// What the proxy presents; nobody else has it.
const CREDENTIAL: &str = "credential-of-the-proxy";

const UPSTREAM: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: upstream, labels: {app: upstream}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
    - name: server
      image: cotter.test/mcp-client:test
      command: [node, /app/src/upstream.mjs]
      readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}
      volumeMounts: [{name: source, mountPath: /app/src}]
  volumes: [{name: source, configMap: {name: upstream}}]
---
apiVersion: v1
kind: Service
metadata: {name: upstream}
spec:
  selector: {app: upstream}
  ports: [{port: 8000}]
"#;

const SERVER: &str = r#"
apiVersion: cotter.dev/v1alpha1
kind: McpServer
metadata: {name: elsewhere}
spec:
  audience: elsewhere://mcp
  upstream:
    remote:
      url: http://upstream.remote.svc:8000/mcp
      credentials: {secretRef: {name: upstream, key: token}}
  access:
    tenants: [remote]
    serviceAccounts: {enabled: true}
  verify: {interval: 1s}
  tools: [{name: headers, scope: "headers:read", effect: Read}]
"#;

const DELEGATION: &str = r#"
apiVersion: cotter.dev/v1alpha1
kind: AgentDelegation
metadata: {name: caller}
spec:
  delegate: {serviceAccount: {name: caller, namespace: remote}}
  to: {servers: [{name: elsewhere}]}
  scopes: ["headers:read"]
  effects: [Read]
  tenants: [remote]
  expiresAt: "soon"
"#;

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn a_remote_server_gets_the_proxys_credential_and_never_the_callers_and_its_drift_is_seen() {
    let namespace = Namespace::fresh("remote");
    let caller = Caller::create(&namespace, "caller", "elsewhere://mcp");
    let source = format!("upstream.mjs={}", include_str!("upstream.mjs"));
    namespace.kubectl(&["create", "configmap", "upstream", "--from-literal", &source]).succeeded();
    namespace
        .kubectl(&["create", "secret", "generic", "upstream", &format!("--from-literal=token={CREDENTIAL}")])
        .succeeded();
    for manifest in [UPSTREAM, SERVER, &with_time_left(DELEGATION)] {
        namespace.apply(manifest).succeeded();
    }
    namespace.wait_until("mcps", "elsewhere", |server| server["status"]["tools"]["offered"] == 1);
    pin(&namespace);
    namespace.wait_for_tools("elsewhere", "1/1");
    caller.wait();
    caller.reaches(URL);
    the_callers_token_stays(&caller);
    measures_a_change_of_the_manifest(&namespace);
    measures_a_change_of_the_server(&namespace);
    let answers = caller.sdk(URL, &json!([["tools/list"]]));
    assert_eq!(answers[0]["result"]["tools"], json!([]), "what changed is not offered any more");
}

/// As a person pins what runs now.
fn pin(namespace: &Namespace) {
    let pin =
        Said::run(Command::new(ours("cotter")).args(["pin", "elsewhere", "--namespace", namespace.name()])).good();
    kubectl_with(&["apply", "-f", "-"], &pin).succeeded();
}

fn the_callers_token_stays(caller: &Caller<'_>) {
    let answers = caller.sdk(URL, &json!([["tools/list"], ["tools/call", "headers", {}]]));
    let seen: Vec<Value> = serde_json::from_str(text(&answers[1])).unwrap();
    assert!(seen.len() > 2, "the reader's requests and the caller's: {seen:?}");
    for headers in &seen {
        assert_eq!(headers["authorization"], format!("Bearer {CREDENTIAL}"), "{headers}");
        // Every JWT begins so: `{"`.
        assert!(!headers.to_string().contains("eyJ"), "a token went upstream: {headers}");
    }
}

fn measures_a_change_of_the_manifest(namespace: &Namespace) {
    let following = namespace.follow("mcps", "elsewhere");
    let began = Instant::now();
    namespace.apply(&SERVER.replace("tenants: [remote]", "tenants: [remote, other]")).succeeded();
    let applied = Instant::now();
    let server = following.until(|server| {
        server["metadata"]["generation"] == 2
            && server["status"]["observedGeneration"] == 2
            && server["status"]["snapshot"]["enforced"] == 1
            && is(server, "Programmed", "True")
    });
    figure("from kubectl apply of a changed McpServer, begun, to all sidecars enforcing it, seen", began);
    figure("from kubectl apply of a changed McpServer, returned, to all sidecars enforcing it, seen", applied);
    assert_eq!(server["status"]["snapshot"]["total"], 1);
}

fn measures_a_change_of_the_server(namespace: &Namespace) {
    let following = namespace.follow("tpin", "elsewhere");
    let address = namespace.object("service", "upstream")["spec"]["clusterIP"].as_str().unwrap().to_owned();
    let answer = cotter_tests::client::post(&format!("http://{address}:8000/change"), &[], b"");
    assert_eq!(answer.status, 200);
    let began = Instant::now();
    let pin = following.until(|pin| is(pin, "InSync", "False"));
    figure("from drift that the server does not announce (verify.interval 1s) to status, seen", began);
    assert_eq!(pin["status"]["drift"][0]["class"], "Text");
    assert_eq!(pin["status"]["drift"][0]["fields"], json!(["/description"]));
}
