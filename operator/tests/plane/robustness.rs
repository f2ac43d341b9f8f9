//! Restarts, resyncs and objects that cannot be read. These tests have the operator to themselves.

use std::{collections::BTreeMap, time::Duration};

use cotter_core::snapshot::{Sealed, Snapshot};
use cotter_crds::{McpServer, ToolPin};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Service, ServiceAccount},
        events::v1::Event,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    cluster::{KEYS, Operator, Place, apply_any, chart, exclusive, install_definitions, tools, until},
    sidecar::{Sidecar, Stream, ready, report},
};

/// The resource version of everything that the operator writes in a namespace.
async fn versions(place: &Place) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    add::<McpServer>(place, &mut versions).await;
    add::<ToolPin>(place, &mut versions).await;
    add::<Service>(place, &mut versions).await;
    add::<ServiceAccount>(place, &mut versions).await;
    add::<ConfigMap>(place, &mut versions).await;
    // The controllers write its status.
    for deployment in place.api::<Deployment>().list(&ListParams::default()).await.unwrap() {
        versions
            .insert(format!("Deployment {}", deployment.name_any()), format!("{:?}", deployment.metadata.generation));
    }
    versions
}

async fn add<K>(place: &Place, versions: &mut BTreeMap<String, String>)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    for object in place.api::<K>().list(&ListParams::default()).await.unwrap() {
        let name = format!("{} {}", K::kind(&()), object.name_any());
        versions.insert(name, object.resource_version().unwrap_or_default());
    }
}

/// A server with a pin and a sidecar that enforces it.
async fn settled(place: &Place) -> (Sidecar, Stream) {
    place.server("support", |_| ()).await;
    place.pin("support", &tools()).await;
    let sidecar = Sidecar::of(place, "support").await;
    let mut stream = sidecar.open().await.unwrap();
    loop {
        let sealed = stream.next().await;
        if sealed.snapshot().pin.is_some() {
            assert_eq!(sidecar.report(&report(&sealed, &tools())).await, 204);
            break;
        }
    }
    ready(place, "support").await;
    place.wait::<McpServer>("support", "Ready", "True", "Ready").await;
    place.wait::<ToolPin>("support", "InSync", "True", "Verified").await;
    until("everything to be quiet", || async {
        let before = versions(place).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        (before == versions(place).await).then_some(())
    })
    .await;
    (sidecar, stream)
}

async fn writes(operator: &Operator) -> u64 {
    operator.metric("cotter_operator_applies_total").await
        + operator.metric("cotter_operator_status_writes_total").await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_pass_that_finds_nothing_new_writes_nothing() {
    let (operator, place) = (exclusive().await, Place::new().await);
    let _live = settled(&place).await;
    let before = versions(&place).await;
    // The counters are the whole operator's, and servers of other tests may still be settling: one quiet second is enough.
    for attempt in 0..20 {
        let passes = operator.metric("cotter_operator_passes_total").await;
        let written = writes(&operator).await;
        // A label of somebody else on a child: an event for the operator, and nothing that it has to do anything about.
        let label = Patch::Merge(json!({"metadata": {"labels": {"theirs": format!("x{attempt}")}}}));
        place.api::<Deployment>().patch("support", &PatchParams::default(), &label).await.unwrap();
        until("a pass", || async { (operator.metric("cotter_operator_passes_total").await > passes).then_some(()) })
            .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(versions(&place).await, before);
        if writes(&operator).await == written {
            return;
        }
    }
    panic!("every pass comes with an API write");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_restart_writes_nothing_and_the_sidecar_comes_back_to_the_same_snapshot() {
    let (mut operator, place) = (exclusive().await, Place::new().await);
    let (sidecar, mut stream) = settled(&place).await;
    let before = versions(&place).await;
    operator.restart().await;
    assert!(stream.ends().await, "the old operator ended its streams");
    let mut stream = sidecar.open().await.unwrap();
    let sealed = stream.next().await;
    assert_eq!(sidecar.report(&report(&sealed, &tools())).await, 204);
    tokio::time::sleep(cotter_operator::operator::WARM_UP + Duration::from_secs(1)).await;
    assert_eq!(versions(&place).await, before, "no status said anything else in between");
    drop(stream);
    place.wait::<McpServer>("support", "Programmed", "False", "NoSidecar").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_server_that_cannot_be_read_is_told_so_and_stops_nobody() {
    let (_operator, place) = (exclusive().await, Place::new().await);
    let definitions = Api::<CustomResourceDefinition>::all(place.client.clone());
    later_version(&definitions, "mcpservers.cotter.dev", "pinning").await;
    let spec = json!({"audience": "x://y", "upstream": {"remote": {"url": "https://mcp.example.com/mcp"}}, "pinning": "Later"});
    raw(&place, "mcpservers", json!({"kind": "McpServer", "metadata": {"name": "bad"}, "spec": spec})).await;
    place.server("good", |_| ()).await;
    let accepted = place.wait_raw("mcpservers", "bad", "Accepted", "Unreadable").await;
    assert!(accepted.contains("Later"), "{accepted}");
    place.wait::<McpServer>("good", "Accepted", "True", "Accepted").await;
    let events = place.api::<Event>();
    until("the Event", || async {
        let events = events.list(&ListParams::default()).await.unwrap();
        events.iter().any(|event| event.reason.as_deref() == Some("Unreadable")).then_some(())
    })
    .await;
    install_definitions(&place.client).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_pin_that_cannot_be_read_approves_nothing() {
    let (_operator, place) = (exclusive().await, Place::new().await);
    place.server("support", |spec| spec["pinning"] = json!("Audit")).await;
    let mut stream = Sidecar::of(&place, "support").await.open().await.unwrap();
    assert!(stream.next().await.snapshot().pin.is_none(), "no pin, and Audit: everything passes");
    let definitions = Api::<CustomResourceDefinition>::all(place.client.clone());
    later_version(&definitions, "toolpins.cotter.dev", "enforcement").await;
    let spec = json!({"serverRef": {"name": "support"}, "enforcement": "Later"});
    raw(&place, "toolpins", json!({"kind": "ToolPin", "metadata": {"name": "bad"}, "spec": spec})).await;
    let snapshot = stream.next().await;
    assert!(snapshot.snapshot().pin.as_ref().is_some_and(|pin| pin.tools.is_empty()), "a pin that approves nothing");
    place.api::<ToolPin>().delete("bad", &DeleteParams::default()).await.ok();
    assert!(stream.next().await.snapshot().pin.is_none(), "the bad pin is gone");
    install_definitions(&place.client).await;
}

/// The definition as a later version might have it: with one more value in an enumeration.
async fn later_version(definitions: &Api<CustomResourceDefinition>, name: &str, field: &str) {
    let definition = definitions.get(name).await.unwrap();
    let mut body = serde_json::to_value(&definition).unwrap();
    let field = format!("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/{field}/enum");
    body.pointer_mut(&field).and_then(Value::as_array_mut).expect("an enumeration").push(json!("Later"));
    body["metadata"] = json!({"name": name});
    let params = PatchParams::apply("tester").force();
    definitions.patch(name, &params, &Patch::Apply(&body)).await.unwrap();
    // Established already; the API server serves the new schema a moment later.
    tokio::time::sleep(Duration::from_secs(2)).await;
}

async fn raw(place: &Place, plural: &str, mut object: Value) {
    object["apiVersion"] = json!("cotter.dev/v1alpha1");
    let path = format!("/apis/cotter.dev/v1alpha1/namespaces/{}/{plural}", place.namespace);
    until("the later version to be served", || async {
        let body = object.to_string().into_bytes();
        let request = hyper::Request::post(&path).header("content-type", "application/json").body(body).unwrap();
        place.client.request::<Value>(request).await.ok()
    })
    .await;
}

impl Place {
    /// Waits for a condition of an object that cannot be read, and gives its message.
    async fn wait_raw(&self, plural: &str, name: &str, type_: &str, reason: &str) -> String {
        let path = format!("/apis/cotter.dev/v1alpha1/namespaces/{}/{plural}/{name}", self.namespace);
        until(&format!("{type_} {reason} of {name}"), || async {
            let request = hyper::Request::get(&path).body(Vec::new()).unwrap();
            let object: Value = self.client.request(request).await.unwrap();
            let conditions = object["status"]["conditions"].as_array()?;
            let condition = conditions.iter().find(|c| c["type"] == type_ && c["reason"] == reason)?;
            condition["message"].as_str().map(str::to_owned)
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_namespace_that_goes_away_is_no_trouble() {
    let (operator, place) = (exclusive().await, Place::new().await);
    place.server("support", |_| ()).await;
    place.wait::<McpServer>("support", "Accepted", "True", "Accepted").await;
    let failed = operator.metric("cotter_operator_failed_passes_total").await;
    let namespaces = Api::<Namespace>::all(place.client.clone());
    namespaces.delete(&place.namespace, &DeleteParams::default()).await.unwrap();
    until("the namespace to be gone", || async {
        namespaces.get_opt(&place.namespace).await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(operator.metric("cotter_operator_failed_passes_total").await, failed);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn the_api_server_takes_every_object_of_the_chart() {
    let (_operator, place) = (exclusive().await, Place::new().await);
    let params = PatchParams { dry_run: true, ..PatchParams::apply("helm").force() };
    let roots = ["--set", "caBundle.configMap=roots", "--set", "image.pullSecrets={a}"];
    let kinds = |objects: &[kube::api::DynamicObject]| -> BTreeMap<String, usize> {
        let mut kinds = BTreeMap::new();
        for object in objects {
            *kinds.entry(object.types.as_ref().unwrap().kind.clone()).or_default() += 1;
        }
        kinds
    };
    for more in [&[][..], &roots[..]] {
        let objects = chart(more);
        let wanted = [
            ("ClusterRole", 1),
            ("ClusterRoleBinding", 1),
            ("CustomResourceDefinition", 3),
            ("Deployment", 1),
            ("Role", 1),
            ("RoleBinding", 1),
            ("Service", 1),
            ("ServiceAccount", 1),
        ];
        assert_eq!(kinds(&objects), wanted.map(|(kind, count)| (kind.to_owned(), count)).into());
        for object in &objects {
            let taken = apply_any(&place.client, object, &params).await;
            assert!(taken.is_ok(), "{} {}: {taken:?}", object.types.as_ref().unwrap().kind, object.name_any());
        }
    }
    assert!(!kinds(&chart(&["--set", "crds.install=false"])).contains_key("CustomResourceDefinition"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn keys_in_force_outlive_a_restart_while_their_issuer_is_away_and_are_not_believed_later() {
    let (mut operator, place) = (exclusive().await, Place::new().await);
    // Nobody listens there: as an issuer that is away.
    let away = |spec: &mut Value| spec["access"]["issuers"][0]["jwks"] = json!({"uri": "https://127.0.0.1:9/keys"});
    place.server("support", away).await;
    place.wait::<McpServer>("support", "KeysReady", "Unknown", "KeysUnreachable").await;
    let sidecar = Sidecar::of(&place, "support").await;
    let mut stream = sidecar.open().await.unwrap();
    let without = stream.next().await;
    plant_keys(&place, &without).await;
    assert!(
        stream.next_within(Duration::from_secs(2)).await.is_none(),
        "written while the operator runs: not believed"
    );

    operator.stop().await;
    plant_keys(&place, &without).await;
    operator.spawn().await;
    let after = sidecar.open().await.unwrap().next().await;
    let keys = after.snapshot().access.issuers[0].jwks["keys"].as_array().map(Vec::len);
    assert_eq!(keys, Some(1), "the first snapshot after the restart has the keys that were in force");
    place.wait::<McpServer>("support", "KeysReady", "True", "KeysReady").await;
}

/// Makes the bootstrap say that the issuer's keys were in force.
async fn plant_keys(place: &Place, sealed: &Sealed) {
    let mut snapshot: Snapshot = sealed.snapshot().as_ref().clone();
    snapshot.access.issuers[0].jwks = serde_json::from_str(KEYS).unwrap();
    let sealed = Sealed::seal(snapshot).unwrap();
    let line = format!(r#"{{"snapshot":{{"digest":"{}","snapshot":{}}}}}"#, sealed.digest(), sealed.bytes());
    let change = Patch::Merge(json!({"data": {"bootstrap.json": line}}));
    place.api::<ConfigMap>().patch("support-bootstrap", &PatchParams::default(), &change).await.unwrap();
}
