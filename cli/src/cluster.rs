//! What the operator keeps of a server in a cluster, for the commands that read it: started as `kubectl cotter`, or with a
//! namespace or context.

use std::{collections::BTreeMap, path::Path};

use clap::Args;
use cotter_compiler::build::{BOOTSTRAP_KEY, OBSERVED_KEY};
use cotter_core::{
    budget::Budget,
    catalogue::{Catalogue, Observed},
    snapshot::{Digest, Sealed, Snapshot},
    tool::{ToolObject, parse_list_result},
};
use cotter_crds::{AgentDelegation, McpServer, condition::types};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Condition};
use serde::Deserialize;
use serde_json::value::RawValue;

use kube::{
    Api, Client, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{
    failure::{Doing as _, Failure},
    why::Charged,
};

/// Which cluster is meant.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Target {
    /// Read from a cluster: the namespace (as `kubectl cotter` does by default)
    #[arg(short, long, conflicts_with = "folder")]
    namespace: Option<String>,
    /// Read from a cluster: the context of the kubeconfig
    #[arg(long, conflicts_with = "folder")]
    context: Option<String>,
}

/// What the operator keeps for a sidecar to start with.
#[derive(Deserialize)]
struct Bootstrap {
    snapshot: Option<Announced>,
}

#[derive(Deserialize)]
struct Announced {
    digest: Digest,
    snapshot: Box<RawValue>,
}

/// What is in force for a server.
pub(crate) struct InForce {
    /// What its sidecars enforce.
    pub(crate) snapshot: Snapshot,
    /// What they see of the server, as the pin judges it; absent while none has looked.
    pub(crate) catalogue: Option<Catalogue>,
    /// What was charged to its budgets.
    pub(crate) charged: Charged,
    /// Why what the manifests say now is not in force, where it is not.
    pub(crate) held_back: Option<String>,
}

/// A server of a cluster.
pub(crate) struct Seen {
    /// Its namespace.
    pub(crate) namespace: String,
    /// The names of the tools that it declares.
    pub(crate) declared: Vec<String>,
    /// The tools as its sidecars see them, by name.
    pub(crate) observed: BTreeMap<String, ToolObject>,
}

impl Target {
    /// Whether a cluster is meant, rather than a running `up`.
    pub(crate) fn is_meant(&self) -> bool {
        let name = std::env::args_os().next().unwrap_or_default();
        let plugin = Path::new(&name).file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubectl-"));
        plugin || self.namespace.is_some() || self.context.is_some()
    }

    /// Reads a server and what its sidecars see.
    pub(crate) async fn read(&self, server: &str) -> Result<Seen, Failure> {
        let (client, namespace) = self.client().await?;
        let servers: Api<McpServer> = Api::namespaced(client.clone(), &namespace);
        let found = servers.get_opt(server).await.doing(format!("read the McpServer {namespace}/{server}"))?;
        let found =
            found.ok_or_else(|| Failure::cannot(format!("there is no McpServer {server} in namespace {namespace}")))?;
        let observed = found.status.as_ref().and_then(|status| status.observed.as_ref());
        let unread =
            || Failure::cannot(format!("no sidecar has read {server} yet: kubectl get mcps {server} -n {namespace}"));
        let name = &observed.ok_or_else(unread)?.config_map;
        let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
        let map = maps.get(name).await.doing(format!("read the ConfigMap {namespace}/{name}"))?;
        let data = map.data.unwrap_or_default();
        let list = data.get(OBSERVED_KEY).ok_or_else(unread)?;
        let page = parse_list_result(list.as_bytes()).doing(format!("read the ConfigMap {namespace}/{name}"))?;
        let declared = found.spec.tools.into_iter().map(|tool| tool.name).collect();
        Ok(Seen {
            namespace,
            declared,
            observed: page.tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect(),
        })
    }

    /// What is in force for a server, as the operator keeps it, and what is known beside it.
    pub(crate) async fn in_force(&self, server: &str) -> Result<InForce, Failure> {
        let (client, namespace) = self.client().await?;
        let sealed = announced(&client, &namespace, server).await?;
        let seen = self.read(server).await.ok();
        let catalogue = seen.map(|seen| {
            let tools: Vec<ToolObject> = seen.observed.into_values().collect();
            Catalogue::verify(sealed.snapshot(), &Observed { tools, digest: sealed.digest() })
        });
        let charged = charged(&client, &namespace, sealed.snapshot()).await?;
        let servers: Api<McpServer> = Api::namespaced(client, &namespace);
        let object = servers.get_opt(server).await.doing(format!("read the McpServer {namespace}/{server}"))?;
        let conditions = object.and_then(|object| object.status).map(|status| status.conditions).unwrap_or_default();
        let snapshot = Snapshot::clone(sealed.snapshot());
        Ok(InForce { snapshot, catalogue, charged, held_back: held_back(&conditions) })
    }

    async fn client(&self) -> Result<(Client, String), Failure> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match Kubeconfig::read() {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await.doing("use the kubeconfig")?,
            Err(_) => Config::infer().await.doing("find a cluster: set KUBECONFIG")?,
        };
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).doing("connect to the cluster")?;
        Ok((client, namespace))
    }
}

/// The snapshot that the sidecars of a server begin with: the last one that could be used.
async fn announced(client: &Client, namespace: &str, server: &str) -> Result<Sealed, Failure> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let name = format!("{server}-bootstrap");
    let map = maps.get(&name).await.doing(format!("read the ConfigMap {namespace}/{name}"))?;
    let text = map.data.unwrap_or_default().remove(BOOTSTRAP_KEY).unwrap_or_default();
    let bootstrap: Bootstrap = serde_json::from_str(&text).doing(format!("read the ConfigMap {namespace}/{name}"))?;
    let unknown = || {
        let text = format!("the snapshot of {server} is too large for its ConfigMap: explain from the manifests");
        Failure::cannot(text)
    };
    let announced = bootstrap.snapshot.ok_or_else(unknown)?;
    Sealed::open(announced.snapshot.get(), Some(announced.digest)).doing(format!("read the snapshot of {server}"))
}

/// What was charged to the budgets of a snapshot, as the status of their delegations has it. One that was made again begins again.
async fn charged(client: &Client, namespace: &str, snapshot: &Snapshot) -> Result<Charged, Failure> {
    let budgets: BTreeMap<&str, &Budget> =
        snapshot.grants.iter().flat_map(|grant| &grant.budgets).map(|budget| (budget.name.as_str(), budget)).collect();
    if budgets.is_empty() {
        return Ok(Charged::new());
    }
    let all: Api<AgentDelegation> = Api::namespaced(client.clone(), namespace);
    let all = all.list(&ListParams::default()).await.doing(format!("read the AgentDelegations of {namespace}"))?;
    let charged = all.into_iter().filter_map(|object| {
        let name = object.metadata.name?;
        let budget = budgets.get(name.as_str())?;
        let is_same = budget.uid.is_none() || budget.uid == object.metadata.uid;
        let calls = object.status?.budget?.charged;
        is_same.then(|| (name, u64::try_from(calls).unwrap_or_default()))
    });
    Ok(charged.collect())
}

/// Why what a server's manifests say now is not in force, where its conditions say so.
pub(crate) fn held_back(conditions: &[Condition]) -> Option<String> {
    let keeps = |condition: &&Condition| {
        condition.status == "False" && [types::ACCEPTED, types::POLICIES_READY].contains(&condition.type_.as_str())
    };
    let why = |condition: &Condition| format!("{} is False: {}", condition.type_, condition.message);
    let why: Vec<String> = conditions.iter().filter(keeps).map(why).collect();
    (!why.is_empty()).then(|| why.join("; "))
}
