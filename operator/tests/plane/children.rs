//! What the operator makes, and that it leaves alone what is not its own.

use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service, ServiceAccount},
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    cluster::{Place, operator, tools, until},
    sidecar::bootstrap,
};

async fn owned<K>(place: &Place, name: &str, owner: &McpServer)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let what = format!("{} {name}", K::kind(&()));
    let child = until(&what, || async { place.api::<K>().get_opt(name).await.unwrap() }).await;
    let references = child.owner_references();
    assert_eq!(references.len(), 1, "{what}");
    assert_eq!(
        (Some(&references[0].uid), references[0].controller),
        (owner.metadata.uid.as_ref(), Some(true)),
        "{what}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_server_has_its_children_and_they_are_its_own() {
    let (_operator, place) = (operator().await, Place::new().await);
    let server = place.server("support", |_| ()).await;
    owned::<Deployment>(&place, "support", &server).await;
    owned::<Service>(&place, "support", &server).await;
    owned::<ServiceAccount>(&place, "support-mcp", &server).await;
    owned::<ConfigMap>(&place, "support-bootstrap", &server).await;
    place.wait::<McpServer>("support", "Accepted", "True", "Accepted").await;
    place.wait::<McpServer>("support", "KeysReady", "True", "KeysReady").await;
    place.wait::<McpServer>("support", "Available", "False", "NoSidecar").await;
    let programmed = place.wait::<McpServer>("support", "Programmed", "False", "NoSidecar").await;
    assert_eq!(programmed.observed_generation, server.metadata.generation);
    let started_with = bootstrap(&place, "support").await;
    let snapshot = started_with.snapshot.expect("a first start needs no operator").open();
    assert_eq!(snapshot.snapshot().access.issuers[0].jwks["keys"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn what_somebody_changes_is_put_back() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.server("support", |_| ()).await;
    let api = place.api::<Deployment>();
    until("the Deployment", || async { api.get_opt("support").await.unwrap() }).await;
    let change = Patch::Merge(json!({"spec": {"replicas": 3}}));
    api.patch("support", &PatchParams::default(), &change).await.unwrap();
    until("the replicas to be put back", || async {
        (api.get("support").await.unwrap().spec?.replicas == Some(1)).then_some(())
    })
    .await;
    place.api::<Service>().delete("support", &DeleteParams::default()).await.unwrap();
    until("the Service to be back", || async { place.api::<Service>().get_opt("support").await.unwrap() }).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn an_object_of_somebody_else_is_never_taken_over() {
    let (_operator, place) = (operator().await, Place::new().await);
    let spec = json!({"selector": {"app": "theirs"}, "ports": [{"port": 443}]});
    let theirs: Service = place.apply(json!({"metadata": {"name": "support"}, "spec": spec})).await;
    place.server("support", |_| ()).await;
    let accepted = place.wait::<McpServer>("support", "Accepted", "False", "Conflict").await;
    assert!(accepted.message.contains("Service support exists"), "{}", accepted.message);
    place.wait::<McpServer>("support", "Ready", "False", "Conflict").await;
    let still = place.api::<Service>().get("support").await.unwrap();
    assert_eq!(still.resource_version(), theirs.resource_version());
    place.api::<Service>().delete("support", &DeleteParams::default()).await.unwrap();
    // Nothing of ours changed, so nothing tells the operator at once; a person who does not want to wait touches the
    // McpServer.
    place.server("support", |spec| spec["replicas"] = json!(2)).await;
    place.wait::<McpServer>("support", "Accepted", "True", "Accepted").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_pin_and_a_delegation_to_a_server_that_does_not_exist_say_so() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.pin("support", &tools()).await;
    let delegation = json!({"metadata": {"name": "triage"}, "spec": {
        "delegate": {"serviceAccount": {"name": "triage", "namespace": "agents"}},
        "to": {"servers": [{"name": "support"}]}, "scopes": ["policy:read"], "effects": ["Read"],
        "tenants": ["tenant-7"], "expiresAt": jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24),
    }});
    place.apply::<AgentDelegation>(delegation).await;
    place.wait::<ToolPin>("support", "InSync", "Unknown", "NotObserved").await;
    place.wait::<AgentDelegation>("triage", "ResolvedRefs", "False", "ServerNotFound").await;
    place.server("support", |_| ()).await;
    place.wait::<AgentDelegation>("triage", "ResolvedRefs", "True", "ResolvedRefs").await;
    place.wait::<ToolPin>("support", "Accepted", "True", "Accepted").await;
}
