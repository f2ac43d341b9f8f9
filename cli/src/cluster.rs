//! What the operator keeps of a server in a cluster, for the commands that read it: started as `kubectl cotter`, or with a
//! namespace or context.

use std::{collections::BTreeMap, path::Path};

use clap::Args;
use cotter_compiler::build::{BOOTSTRAP_KEY, OBSERVED_KEY};
use cotter_core::{
    catalogue::{Catalogue, Observed},
    snapshot::{Digest, Sealed, Snapshot},
    tool::{ToolObject, parse_list_result},
};
use cotter_crds::McpServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::failure::{Doing as _, Failure};

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

    /// The snapshot that a server's sidecars are to enforce, and what they see of the server, as the pin judges it.
    pub(crate) async fn snapshot(&self, server: &str) -> Result<(Snapshot, Option<Catalogue>), Failure> {
        let (client, namespace) = self.client().await?;
        let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
        let name = format!("{server}-bootstrap");
        let map = maps.get(&name).await.doing(format!("read the ConfigMap {namespace}/{name}"))?;
        let text = map.data.unwrap_or_default().remove(BOOTSTRAP_KEY).unwrap_or_default();
        let bootstrap: Bootstrap =
            serde_json::from_str(&text).doing(format!("read the ConfigMap {namespace}/{name}"))?;
        let unknown = || {
            Failure::cannot(format!(
                "the snapshot of {server} is too large for its ConfigMap: explain from the manifests"
            ))
        };
        let announced = bootstrap.snapshot.ok_or_else(unknown)?;
        let sealed = Sealed::open(announced.snapshot.get(), Some(announced.digest))
            .doing(format!("read the snapshot of {server}"))?;
        let seen = self.read(server).await.ok();
        let catalogue = seen.map(|seen| {
            let tools: Vec<ToolObject> = seen.observed.into_values().collect();
            Catalogue::verify(sealed.snapshot(), &Observed { tools, digest: sealed.digest() })
        });
        Ok((Snapshot::clone(sealed.snapshot()), catalogue))
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
