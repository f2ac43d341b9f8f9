//! Policy modules for every server of the cluster.

use std::time::Duration;

use cotter_crds::McpServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use super::{
    cluster::{Place, apply, chart, client, exclusive, from, until},
    sidecar::{Sidecar, Stream},
};

const NAME: &str = "cluster/everybody/hours.rego";

/// A ConfigMap in a namespace, with the label or without.
fn module(text: &str, label: Option<&str>) -> Value {
    json!({
        "metadata": {"name": "everybody", "labels": {"cotter.dev/policy": label.unwrap_or("draft")}},
        "data": {"hours.rego": text},
    })
}

const CLOSED: &str = "package cotter.user.everybody\n\ndeny contains \"closed\" if input.tool.name == \"case_tag\"\n";
const BROKEN: &str = "package cotter.user.everybody\n\ndeny contains \"closed\" if http.send({})\n";

/// The ConfigMap in the operator's own namespace. Left there it would be every other test's rule, so it goes with the test, however that
/// ends.
struct Home(Api<ConfigMap>);

impl Home {
    fn of(place: &Place) -> Self {
        Self(Api::namespaced(place.client.clone(), "cotter-system"))
    }

    async fn apply(&self, manifest: Value) {
        apply(&self.0, &from::<ConfigMap>(manifest)).await;
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let deleting = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let api = Api::<ConfigMap>::namespaced(client().await, "cotter-system");
                let _absent = api.delete("everybody", &DeleteParams::default()).await;
            });
        });
        let _panicked = deleting.join();
    }
}

/// The next snapshot that has the module, or that has it not.
async fn until_module(stream: &mut Stream, there: bool) -> cotter_core::snapshot::Sealed {
    loop {
        let sealed = stream.next().await;
        if sealed.snapshot().policies.contains_key(NAME) == there {
            return sealed;
        }
    }
}

/// The status comes a moment after the snapshot.
async fn until_told(place: &Place, message: &str) {
    until(message, || async {
        let condition = place.condition::<McpServer>("support", "PoliciesReady").await?;
        (condition.status == "True" && condition.message == message).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_labelled_module_of_the_operators_namespace_holds_for_every_server_while_it_is_there() {
    // Alone: it is a rule for the servers of all other tests, too.
    let operator = exclusive().await;
    let (place, other) = (Place::new().await, Place::new().await);
    let home = Home::of(&place);
    place.server("support", |_| ()).await;
    other.server("billing", |_| ()).await;
    let (mut support, mut billing) = (open(&place, "support").await, open(&other, "billing").await);
    let first = support.next().await;
    assert!(first.snapshot().policies.is_empty());

    // Somebody who may write ConfigMaps elsewhere makes no rules for others, nor for the servers beside it.
    place.apply::<ConfigMap>(module(CLOSED, Some("cluster"))).await;
    home.apply(module(CLOSED, None)).await;
    assert!(support.next_within(Duration::from_secs(2)).await.is_none(), "another namespace, and a draft here");

    home.apply(module(CLOSED, Some("cluster"))).await;
    until_module(&mut support, true).await;
    until_module(&mut billing, true).await;
    until_told(&place, "1 module, cluster-wide").await;

    home.apply(module(BROKEN, Some("cluster"))).await;
    let refused = place.wait::<McpServer>("support", "PoliciesReady", "False", "PolicyInvalid").await;
    assert!(refused.message.contains(&format!("{NAME}:3:27")), "{}", refused.message);
    other.wait::<McpServer>("billing", "PoliciesReady", "False", "PolicyInvalid").await;
    assert!(support.next_within(Duration::from_secs(1)).await.is_none(), "what was in force stays");
    let mut again = open(&place, "support").await;
    assert_eq!(again.next().await.snapshot().policies[NAME], CLOSED);

    home.apply(module(CLOSED, Some("cluster"))).await;
    place.wait::<McpServer>("support", "PoliciesReady", "True", "PoliciesReady").await;
    home.apply(module(CLOSED, None)).await;
    until_module(&mut support, false).await;
    home.apply(module(CLOSED, Some("cluster"))).await;
    until_module(&mut support, true).await;
    home.0.delete("everybody", &DeleteParams::default()).await.unwrap();
    let last = until_module(&mut support, false).await;
    assert_eq!(last.digest(), first.digest());
    drop(home);
    drop(operator);
}

/// What the watch needs, as the chart renders it: the right, and the operator's own namespace.
#[test]
#[ignore = "needs helm: HELM"]
fn the_chart_gives_the_right_and_the_namespace_that_the_watch_needs() {
    let rights = chart(&["--show-only", "templates/rbac.yaml"]);
    let role = rights.iter().find(|object| object.types.as_ref().unwrap().kind == "ClusterRole").unwrap();
    let has = |rule: &Value, member: &str, wanted: &str| rule[member].as_array().unwrap().iter().any(|v| v == wanted);
    let rules = role.data["rules"].as_array().unwrap().iter().filter(|rule| rule.get("resources").is_some());
    let rule = rules.clone().find(|rule| has(rule, "resources", "configmaps")).expect("a rule for ConfigMaps");
    assert!(["get", "list", "watch"].iter().all(|verb| has(rule, "verbs", verb)), "{rule}");
    let deployment = chart(&["--show-only", "templates/deployment.yaml"]).remove(0);
    let variables = deployment.data.pointer("/spec/template/spec/containers/0/env").unwrap().as_array().unwrap();
    let own = variables.iter().find(|variable| variable["name"] == "POD_NAMESPACE").expect("its own namespace");
    assert_eq!(own["valueFrom"]["fieldRef"]["fieldPath"], "metadata.namespace");
}

/// A server's own module and the cluster's stand and fall together, as one revision.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_bad_module_of_a_server_does_not_take_the_clusters_out_of_force() {
    let operator = exclusive().await;
    let place = Place::new().await;
    let home = Home::of(&place);
    home.apply(module(CLOSED, Some("cluster"))).await;
    let own = |text: &str| serde_json::to_value(super::cluster::config_map("rules", "rules.rego", text)).unwrap();
    place.apply::<ConfigMap>(own("package cotter.user.rules\n")).await;
    place.server("support", |spec| spec["policies"] = json!([{"configMapRef": {"name": "rules"}}])).await;
    let mut stream = open(&place, "support").await;
    let both = until_module(&mut stream, true).await;
    assert_eq!(both.snapshot().policies.len(), 2);
    until_told(&place, "2 modules, 1 of them cluster-wide").await;

    place.apply::<ConfigMap>(own("package cotter.user.everybody\n")).await;
    let refused = place.wait::<McpServer>("support", "PoliciesReady", "False", "PolicyInvalid").await;
    assert!(refused.message.contains("rules/rules.rego:1:1: the package cotter.user.everybody"), "{}", refused.message);
    let mut again = open(&place, "support").await;
    assert_eq!(again.next().await.digest(), both.digest());
    drop(home);
    drop(operator);
}

async fn open(place: &Place, server: &str) -> Stream {
    Sidecar::of(place, server).await.open().await.unwrap()
}
