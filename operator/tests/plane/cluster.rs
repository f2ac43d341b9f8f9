//! One operator for all tests, and what the tests do with the cluster.

use std::{fmt::Debug, future::Future, net::TcpListener, thread::JoinHandle, time::Duration};

use clap::Parser;
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use cotter_operator::settings::Settings;
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard, watch};

/// What a person who works with the cluster is called.
const PERSON: &str = "tester";
/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

static OPERATOR: RwLock<Option<Operator>> = RwLock::const_new(None);

/// A running operator.
pub(crate) struct Operator {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    stream: u16,
    health: u16,
}

impl Operator {
    async fn start() -> Self {
        // COTTER_LOG=debug shows what the operator does.
        let filter = tracing_subscriber::EnvFilter::from_env("COTTER_LOG");
        let _already = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
        let client = client().await;
        install_definitions(&client).await;
        let namespace: Namespace =
            from(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cotter-system"}}));
        apply(&Api::all(client.clone()), &namespace).await;
        grant_rights(&client).await;
        let mut operator =
            Self { stop: watch::Sender::new(false), thread: None, stream: free_port(), health: free_port() };
        operator.spawn().await;
        operator
    }

    /// Starts it again after [`stop`](Self::stop).
    pub(crate) async fn spawn(&mut self) {
        let settings = Settings::parse_from([
            "cotter-operator",
            "--sidecar-image=example/cotter-proxy:1",
            concat!("--policy-checker=", env!("CARGO_BIN_EXE_cotter-operator")),
            &format!("--stream-url=https://127.0.0.1:{}", self.stream),
            &format!("--stream-listen=127.0.0.1:{}", self.stream),
            &format!("--health-listen=127.0.0.1:{}", self.health),
        ]);
        self.stop = watch::Sender::new(false);
        let stopping = self.stop.subscribe();
        // A runtime of its own: each test's ends with the test.
        self.thread = Some(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(16 << 20).build();
            runtime.unwrap().block_on(async {
                cotter_operator::run(operators_client().await, settings, stopping).await.expect("the operator runs");
            });
        }));
        until("the operator to be ready", || async { (self.get("/readyz").await? == "ok\n").then_some(()) }).await;
    }

    /// Ends the operator, as a rollout does, and starts another one in its place.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.spawn().await;
    }

    /// Ends the operator and waits until it is gone.
    pub(crate) async fn stop(&mut self) {
        self.stop.send_replace(true);
        let thread = self.thread.take().unwrap();
        tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    }

    /// One of its metrics.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.expect("metrics are served");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the metric exists");
        line.trim().parse().unwrap()
    }

    async fn get(&self, path: &str) -> Option<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.health)).await.ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }
}

/// The shared operator. Tests that hold it run side by side.
pub(crate) async fn operator() -> RwLockReadGuard<'static, Operator> {
    loop {
        let operator = OPERATOR.read().await;
        if operator.is_some() {
            return RwLockReadGuard::map(operator, |operator| operator.as_ref().unwrap());
        }
        drop(operator);
        drop(exclusive().await);
    }
}

/// The operator for one test alone.
pub(crate) async fn exclusive() -> RwLockMappedWriteGuard<'static, Operator> {
    let mut operator = OPERATOR.write().await;
    if operator.is_none() {
        *operator = Some(Operator::start().await);
    }
    RwLockWriteGuard::map(operator, |operator| operator.as_mut().unwrap())
}

/// The cluster of `KUBECONFIG`.
pub(crate) async fn client() -> Client {
    let _already = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::try_default().await.expect("KUBECONFIG names a cluster")
}

/// The client of the operator itself: with the rights that the chart gives it, and no other.
async fn operators_client() -> Client {
    let mut config = kube::Config::infer().await.unwrap();
    config.auth_info.impersonate = Some("system:serviceaccount:cotter-system:cotter-operator".to_owned());
    Client::try_from(config).unwrap()
}

/// Grants the operator what the chart grants it.
async fn grant_rights(client: &Client) {
    let params = PatchParams::apply(PERSON).force();
    for object in chart(&["--show-only", "templates/rbac.yaml"]) {
        apply_any(client, &object, &params).await.expect("the rights are granted");
    }
}

/// The objects of the chart. `HELM` names helm where it is not on PATH.
pub(crate) fn chart(more: &[&str]) -> Vec<DynamicObject> {
    let helm = std::env::var_os("HELM").unwrap_or_else(|| "helm".into());
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/cotter");
    let mut command = std::process::Command::new(helm);
    command.args(["template", "cotter", chart, "--namespace", "cotter-system"]).args(more);
    let output = command.output().expect("helm runs: put it on PATH or name it in HELM");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text.split("\n---").filter(|document| document.contains("\nkind:"));
    documents.map(|document| serde_saphyr::from_str(document).expect("YAML")).collect()
}

/// Applies an object of whatever kind.
pub(crate) async fn apply_any(
    client: &Client,
    object: &DynamicObject,
    params: &PatchParams,
) -> kube::Result<DynamicObject> {
    let types = object.types.clone().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(&object.name_any(), params, &Patch::Apply(object)).await
}

/// A namespace of a test.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Place {
    /// A new namespace.
    pub(crate) async fn new() -> Self {
        let client = client().await;
        let object: Namespace =
            from(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "t-"}}));
        let namespace = Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap().name_any();
        let account = || async {
            let accounts = Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(client.clone(), &namespace);
            accounts.get_opt("default").await.unwrap()
        };
        until("the namespace's default account", account).await;
        Self { client, namespace }
    }

    /// The API of one kind here.
    pub(crate) fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a manifest as a person would.
    pub(crate) async fn apply<K>(&self, manifest: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
    {
        apply(&self.api::<K>(), &from::<K>(manifest)).await
    }

    /// A server over stdio whose issuer's keys are in Secret `corp-keys`, which is made, too.
    pub(crate) async fn server(&self, name: &str, change: impl FnOnce(&mut Value)) -> McpServer {
        self.apply::<Secret>(json!({"metadata": {"name": "corp-keys"}, "stringData": {"jwks.json": KEYS}})).await;
        let mut spec = json!({
            "audience": "support://mcp",
            "upstream": {"container": {"image": "example/support:1", "command": ["support"], "stdio": {"sessions": "Shared"}}},
            "access": {
                "issuers": [{"name": "corp", "issuer": "https://login.example.com",
                    "jwks": {"secretRef": {"name": "corp-keys", "key": "jwks.json"}}}],
                "tenants": ["tenant-7"],
            },
            "tools": [
                {"name": "policy_lookup", "scope": "policy:read", "effect": "Read"},
                {"name": "case_tag", "scope": "case:write", "effect": "Write"},
            ],
        });
        change(&mut spec);
        self.apply(json!({"metadata": {"name": name}, "spec": spec})).await
    }

    /// A pin of these tools, as they are.
    pub(crate) async fn pin(&self, server: &str, tools: &[Value]) -> ToolPin {
        let pinned: Vec<Value> = tools.iter().map(pinned).collect();
        self.apply(json!({"metadata": {"name": server}, "spec": {"serverRef": {"name": server}, "tools": pinned}}))
            .await
    }

    /// A condition of a server.
    pub(crate) async fn condition<K: Conditions>(&self, name: &str, type_: &str) -> Option<Condition> {
        let object = self.api::<K>().get_opt(name).await.unwrap()?;
        object.conditions().iter().find(|condition| condition.type_ == type_).cloned()
    }

    /// Waits until a condition has this status and reason.
    pub(crate) async fn wait<K: Conditions>(&self, name: &str, type_: &str, status: &str, reason: &str) -> Condition {
        let mut last = None;
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < deadline {
            last = self.condition::<K>(name, type_).await;
            if let Some(condition) = last.clone().filter(|c| c.status == status && c.reason == reason) {
                return condition;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} {name}: wanted {type_} {status} {reason}, last seen: {last:?}", K::kind(&()));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (client, namespace) = (self.client.clone(), self.namespace.clone());
        // Best effort, and not while the runtime is going away.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime
                .spawn(async move { Api::<Namespace>::all(client).delete(&namespace, &DeleteParams::default()).await });
        }
    }
}

/// A kind with conditions.
pub(crate) trait Conditions:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
    fn conditions(&self) -> &[Condition];
}
impl Conditions for McpServer {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}
impl Conditions for ToolPin {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}
impl Conditions for AgentDelegation {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}

/// A key set that can be used.
pub(crate) const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// A tool as a server offers it.
pub(crate) fn tool(name: &str, properties: Value) -> Value {
    json!({"name": name, "description": name, "inputSchema": {"type": "object", "properties": properties}})
}

/// The two tools that [`Place::server`] declares.
pub(crate) fn tools() -> Vec<Value> {
    vec![
        tool("case_tag", json!({"case_id": {"type": "string"}, "tag": {"type": "string"}})),
        tool("policy_lookup", json!({"topic": {"type": "string"}})),
    ]
}

fn pinned(tool: &Value) -> Value {
    use cotter_core::{
        fingerprint::{Ignore, Scheme},
        tool::{ListKind, ToolObject},
    };
    let object = ToolObject::parse(&tool.to_string(), ListKind::Tools).unwrap();
    let fingerprint = object.fingerprint(Scheme::ToolV1, &Ignore::default()).unwrap();
    json!({"name": tool["name"], "fingerprint": fingerprint.to_string(), "definition": tool})
}

/// Reads an object.
pub(crate) fn from<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("the manifest fits its kind")
}

/// Applies an object as a person would.
pub(crate) async fn apply<K>(api: &Api<K>, object: &K) -> K
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut body = serde_json::to_value(object).unwrap();
    body["apiVersion"] = json!(K::api_version(&()));
    body["kind"] = json!(K::kind(&()));
    let params = PatchParams::apply(PERSON).force();
    api.patch(&object.name_any(), &params, &Patch::Apply(&body)).await.expect("the API server takes the manifest")
}

/// Installs the definitions of this program.
pub(crate) async fn install_definitions(client: &Client) {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for definition in cotter_crds::install::all() {
        let name = definition.name_any();
        apply(&api, &definition).await;
        until("the definition to be established", || async {
            let status = api.get(&name).await.unwrap().status?;
            status.conditions?.iter().any(|c| c.type_ == "Established" && c.status == "True").then_some(())
        })
        .await;
    }
}

/// Asks again and again until there is an answer.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// A ConfigMap.
pub(crate) fn config_map(name: &str, key: &str, value: &str) -> ConfigMap {
    from(json!({"metadata": {"name": name}, "data": {key: value}}))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
