//! The stream: who is let in, what goes down, what comes up, and what status makes of it.

use std::time::{Duration, Instant};

use cotter_core::{report::Report, snapshot::Sealed};
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;

use super::{
    cluster::{Place, config_map, operator, tools, until},
    sidecar::{Sidecar, Stream, TokenFor, bootstrap, pod, ready, report, token},
};

const AUDIENCE: &str = "cotter.dev/operator";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn status_is_what_a_sidecar_enforces_and_sees() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.server("support", |_| ()).await;
    place.pin("support", &tools()).await;
    let sidecar = Sidecar::of(&place, "support").await;
    assert_eq!(sidecar.report(&early_report(&place).await).await, 409, "no stream is open, so nobody is believed");
    let mut stream = sidecar.open().await.unwrap();
    let sealed = with_pin(&mut stream).await;
    place.wait::<McpServer>("support", "Programmed", "False", "Pending").await;

    assert_eq!(sidecar.report(&report(&sealed, &tools())).await, 204);
    place.wait::<McpServer>("support", "Programmed", "True", "Programmed").await;
    place.wait::<McpServer>("support", "Available", "False", "NoReadyPod").await;
    ready(&place, "support").await;
    place.wait::<McpServer>("support", "Ready", "True", "Ready").await;
    place.wait::<ToolPin>("support", "InSync", "True", "Verified").await;

    let drifted = Instant::now();
    let mut changed = tools();
    changed[0]["inputSchema"]["properties"]["notify_customer"] = json!({"type": "boolean"});
    assert_eq!(sidecar.report(&report(&sealed, &changed)).await, 204);
    place.wait::<ToolPin>("support", "InSync", "False", "Additive").await;
    println!("drift to status: {:?}", drifted.elapsed());
    let pin = place.api::<ToolPin>().get("support").await.unwrap().status.unwrap();
    assert_eq!((pin.drift.len(), pin.drift[0].tool.as_str(), pin.drift[0].class.as_str()), (1, "case_tag", "Additive"));
    assert_eq!(pin.drift[0].fields, ["/inputSchema/properties/notify_customer"]);
    let observed = place.api::<ConfigMap>().get("support-observed").await.unwrap();
    assert!(observed.data.unwrap()["tools.json"].contains("notify_customer"));

    drop(stream);
    place.wait::<McpServer>("support", "Programmed", "False", "NoSidecar").await;
    assert_eq!(sidecar.report(&report(&sealed, &tools())).await, 409);
}

/// A report about the server, from what it starts with.
async fn early_report(place: &Place) -> Report {
    report(&bootstrap(place, "support").await.snapshot.unwrap().open(), &tools())
}

async fn with_pin(stream: &mut Stream) -> Sealed {
    loop {
        let sealed = stream.next().await;
        if sealed.snapshot().pin.is_some() {
            return sealed;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn only_the_servers_own_sidecar_is_let_in() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.server("support", |_| ()).await;
    place.server("billing", |_| ()).await;
    let (pod, other) = (pod(&place, "support").await, pod(&place, "billing").await);
    let refused = async |wanted| Sidecar::with(&place, "support", token(&place, wanted).await).await.open().await.err();
    let foreign = TokenFor { account: "billing-mcp", audience: AUDIENCE, pod: Some(&other) };
    assert_eq!(refused(foreign).await, Some(403), "another server's sidecar");
    let unbound = TokenFor { account: "support-mcp", audience: AUDIENCE, pod: None };
    assert_eq!(refused(unbound).await, Some(401), "the right account, and no pod");
    let api = TokenFor { account: "support-mcp", audience: "https://kubernetes.default.svc", pod: Some(&pod) };
    assert_eq!(refused(api).await, Some(401), "a token for the API server");
    let nobody = Sidecar::with(&place, "support", "nonsense".to_owned()).await;
    assert_eq!(nobody.open().await.err(), Some(401));

    let mut billing = Sidecar::of(&place, "billing").await;
    let mut stream = billing.open().await.unwrap();
    let sealed = stream.next().await;
    billing.asks_for(&place, "support");
    assert_eq!(billing.report(&report(&sealed, &tools())).await, 403, "a report to a server that it does not guard");
    billing.asks_for(&place, "nothing");
    assert_eq!(billing.open().await.err(), Some(403), "what does not exist is not told from what is foreign");
    let own = Sidecar::of(&place, "support").await;
    let _open = own.open().await.unwrap();
    assert_eq!(own.report(&report(&sealed, &tools())).await, 400, "a report about another server");
    assert_eq!(own.post(br#"{"server":{},"server":{}}"#.to_vec()).await, 400, "JSON that two readers read differently");
    assert_eq!(own.post(vec![b' '; 9 << 20]).await, 413);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_policy_takes_effect_when_it_changes_and_a_bad_one_leaves_the_last_good_in_force() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.server("support", |spec| spec["policies"] = json!([{"configMapRef": {"name": "rules"}}])).await;
    place.wait::<McpServer>("support", "PoliciesReady", "False", "PolicyNotFound").await;
    let module = |text: &str| serde_json::to_value(config_map("rules", "rules.rego", text)).unwrap();
    place.apply::<ConfigMap>(module("package cotter.user.rules\n")).await;
    place.wait::<McpServer>("support", "PoliciesReady", "True", "PoliciesReady").await;
    let sidecar = Sidecar::of(&place, "support").await;
    let mut stream = sidecar.open().await.unwrap();
    let first = stream.next().await;
    place.apply::<ConfigMap>(module("package cotter.user.rules\n\n# narrower\n")).await;
    let second = stream.next().await;
    assert_ne!(first.digest(), second.digest());
    place.apply::<ConfigMap>(module("package cotter.user.rules\n\ndeny contains if {")).await;
    place.wait::<McpServer>("support", "PoliciesReady", "False", "PolicyInvalid").await;
    assert!(stream.next_within(Duration::from_secs(2)).await.is_none(), "nothing new is published");
    let mut again = sidecar.open().await.unwrap();
    assert_eq!(again.next().await.digest(), second.digest(), "the last good one is what a new stream gets");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_suspended_delegation_reaches_the_sidecar_at_once() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.server("support", |_| ()).await;
    let delegation = |suspended: bool| {
        json!({"metadata": {"name": "triage"}, "spec": {
            "delegate": {"serviceAccount": {"name": "triage", "namespace": "agents"}}, "suspended": suspended,
            "to": {"servers": [{"name": "support"}]}, "scopes": ["policy:read"], "effects": ["Read"],
            "tenants": ["tenant-7"], "expiresAt": "2026-12-31T00:00:00Z",
        }})
    };
    place.apply::<AgentDelegation>(delegation(false)).await;
    place.wait::<AgentDelegation>("triage", "Active", "True", "Active").await;
    let sidecar = Sidecar::of(&place, "support").await;
    let mut stream = sidecar.open().await.unwrap();
    let before = until_grant(&mut stream, false).await;
    assert_eq!(sidecar.report(&report(&before, &tools())).await, 204);
    place.wait::<AgentDelegation>("triage", "Enforced", "True", "Enforced").await;
    let revoked = Instant::now();
    place.apply::<AgentDelegation>(delegation(true)).await;
    let after = until_grant(&mut stream, true).await;
    println!("revocation to sidecar: {:?}", revoked.elapsed());
    place.wait::<AgentDelegation>("triage", "Active", "False", "Suspended").await;
    place.wait::<AgentDelegation>("triage", "Enforced", "False", "Pending").await;
    assert_eq!(sidecar.report(&report(&after, &tools())).await, 204);
    place.wait::<AgentDelegation>("triage", "Enforced", "True", "Enforced").await;
}

async fn until_grant(stream: &mut Stream, suspended: bool) -> Sealed {
    loop {
        let sealed = stream.next().await;
        let grants = &sealed.snapshot().grants;
        if grants.iter().any(|grant| grant.name == "triage" && grant.inactive.is_some() == suspended) {
            return sealed;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_stream_ends_with_its_server() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.server("support", |_| ()).await;
    let mut stream = Sidecar::of(&place, "support").await.open().await.unwrap();
    stream.next().await;
    place.api::<McpServer>().delete("support", &kube::api::DeleteParams::default()).await.unwrap();
    assert!(stream.ends().await);
    until("the children to be gone", || async {
        place.api::<Deployment>().get_opt("support").await.unwrap().is_none().then_some(())
    })
    .await;
}
