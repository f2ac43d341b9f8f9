//! The same cases, judged by a real API server.

use cotter_crds::{AgentDelegation, McpServer, ToolPin, install};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use serde_json::{Value, json};

use crate::{
    case::{self, Case, Expect},
    manifest, probe,
};

const NAMESPACE: &str = "cotter-definitions";

/// A client, with the definitions installed and the namespace there.
async fn prepare() -> Client {
    let client = Client::try_default().await.expect("KUBECONFIG names a cluster");
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in install::all() {
        let name = crd.name_any();
        let apply = PatchParams::apply("cotter-definitions-test").force().validation_strict();
        crds.patch(&name, &apply, &Patch::Apply(&crd)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        await_condition(crds.clone(), &name, conditions::is_crd_established()).await.unwrap();
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    match namespaces.create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.code != 409 => panic!("{status:?}"),
        _ => client,
    }
}

/// Creates the object without keeping it, under strict field validation; the words of a refusal.
async fn create(client: &Client, object: &Value) -> Result<Value, String> {
    let plural = match object["kind"].as_str() {
        Some("McpServer") => "mcpservers",
        Some("ToolPin") => "toolpins",
        _ => "agentdelegations",
    };
    let path = format!(
        "/apis/cotter.dev/v1alpha1/namespaces/{NAMESPACE}/{plural}?dryRun=All&fieldValidation=Strict&fieldManager=test"
    );
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(object).unwrap()).unwrap();
    match client.request::<Value>(request).await {
        Ok(created) => Ok(created),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(other) => panic!("{other}"),
    }
}

fn failure(case: &Case, answer: &Result<Value, String>) -> Option<String> {
    let words = answer.as_ref().err().map_or("", String::as_str);
    let fine = match &case.expect {
        Expect::Accepted => answer.is_ok(),
        Expect::Refused { api, .. } => {
            let named = words.contains(&format!("{}: ", api.at)) || api.says.contains(&api.at);
            words.contains(&api.says) && named
        }
        Expect::Not { api, .. } => !words.contains(api),
    };
    let wanted = match &case.expect {
        Expect::Accepted => "acceptance".to_owned(),
        Expect::Refused { api, .. } => format!("{}: …{}…", api.at, api.says),
        Expect::Not { api, .. } => format!("not …{api}…"),
    };
    (!fine).then(|| format!("{}\n  wanted {wanted}\n  got {}", case.name, &words[..words.len().min(600)]))
}

async fn judge(cases: Vec<Case>) {
    let client = prepare().await;
    let mut failures = vec![];
    for case in &cases {
        failures.extend(failure(case, &create(&client, &case.object).await));
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn apiserver_judges_written_cases_as_written() {
    judge(case::written()).await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn apiserver_holds_every_bound_from_both_sides() {
    judge(probe::all()).await;
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn apiserver_keeps_everything_that_a_manifest_says() {
    let client = prepare().await;
    for manifest in manifest::all() {
        let created =
            create(&client, &manifest.object).await.unwrap_or_else(|words| panic!("{}: {words}", manifest.name));
        let lost = manifest::lost(&manifest.object["spec"], &created["spec"], "spec");
        assert_eq!(lost, Vec::<String>::new(), "{}", manifest.name);
        match manifest.object["kind"].as_str().unwrap() {
            "McpServer" => drop(serde_json::from_value::<McpServer>(created).unwrap()),
            "ToolPin" => drop(serde_json::from_value::<ToolPin>(created).unwrap()),
            _ => drop(serde_json::from_value::<AgentDelegation>(created).unwrap()),
        }
    }
}

/// Two people who apply different tools do not overwrite each other, and one tool has one owner.
#[tokio::test]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn apiserver_merges_tools_by_name() {
    let client = prepare().await;
    let servers: Api<McpServer> = Api::namespaced(client, NAMESPACE);
    let object = |tool: &str| {
        json!({
            "apiVersion": cotter_crds::API_VERSION, "kind": "McpServer", "metadata": {"name": "merged"},
            "spec": {
                "audience": "support://mcp",
                "upstream": {"remote": {"url": "https://mcp.example.com/mcp"}},
                "tools": [{"name": tool, "scope": "a:b", "effect": "Read"}],
            },
        })
    };
    for (manager, tool) in [("alice", "a"), ("bob", "b")] {
        let apply = PatchParams::apply(manager).validation_strict();
        servers.patch("merged", &apply, &Patch::Apply(object(tool))).await.unwrap();
    }
    let names: Vec<String> =
        servers.get("merged").await.unwrap().spec.tools.into_iter().map(|tool| tool.name).collect();
    servers.delete("merged", &DeleteParams::default()).await.unwrap();
    assert_eq!(names, ["a", "b"]);
}
