//! What the watches know: one store for each kind.

use std::sync::Arc;

use cotter_compiler::{
    build::{LABEL_SERVER, MANAGED_BY, service_account_name},
    modules::{LABEL_POLICY, POLICY_CLUSTER},
};
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service, ServiceAccount},
};
use kube::{
    Resource, ResourceExt,
    runtime::reflector::{self, Store, store::Writer},
};

use crate::{key::ServerKey, stream::Accounts};

/// The labels of everything that the operator makes, as a selector.
#[must_use]
pub fn ours() -> String {
    format!("app.kubernetes.io/managed-by={MANAGED_BY},{LABEL_SERVER}")
}

/// The label of ConfigMaps whose policy modules are for every server, as a selector.
#[must_use]
pub fn cluster_wide() -> String {
    format!("{LABEL_POLICY}={POLICY_CLUSTER}")
}

/// The stores, to read.
#[derive(Clone)]
pub struct Stores {
    /// All servers.
    pub servers: Store<McpServer>,
    /// All pins.
    pub pins: Store<ToolPin>,
    /// All delegations.
    pub delegations: Store<AgentDelegation>,
    /// Deployments of ours.
    pub deployments: Store<Deployment>,
    /// Services of ours.
    pub services: Store<Service>,
    /// Service accounts of ours.
    pub accounts: Store<ServiceAccount>,
    /// ConfigMaps of ours.
    pub config_maps: Store<ConfigMap>,
    /// ConfigMaps of the operator's own namespace with policy modules for every server.
    pub policies: Store<ConfigMap>,
}

/// The stores, to fill. Each goes into one watch.
pub struct Writers {
    /// All servers.
    pub servers: Writer<McpServer>,
    /// All pins.
    pub pins: Writer<ToolPin>,
    /// All delegations.
    pub delegations: Writer<AgentDelegation>,
    /// Deployments of ours.
    pub deployments: Writer<Deployment>,
    /// Services of ours.
    pub services: Writer<Service>,
    /// Service accounts of ours.
    pub accounts: Writer<ServiceAccount>,
    /// ConfigMaps of ours.
    pub config_maps: Writer<ConfigMap>,
    /// ConfigMaps of the operator's own namespace with policy modules for every server.
    pub policies: Writer<ConfigMap>,
}

/// Empty stores.
#[must_use]
pub fn stores() -> (Stores, Writers) {
    let (servers, servers_writer) = reflector::store();
    let (pins, pins_writer) = reflector::store();
    let (delegations, delegations_writer) = reflector::store();
    let (deployments, deployments_writer) = reflector::store();
    let (services, services_writer) = reflector::store();
    let (accounts, accounts_writer) = reflector::store();
    let (config_maps, config_maps_writer) = reflector::store();
    let (policies, policies_writer) = reflector::store();
    let writers = Writers {
        servers: servers_writer,
        pins: pins_writer,
        delegations: delegations_writer,
        deployments: deployments_writer,
        services: services_writer,
        accounts: accounts_writer,
        config_maps: config_maps_writer,
        policies: policies_writer,
    };
    (Stores { servers, pins, delegations, deployments, services, accounts, config_maps, policies }, writers)
}

impl Stores {
    /// Waits until each store was filled once. Before that what is missing may only not have been read yet, and a pass
    /// would tear down what works.
    ///
    /// # Errors
    /// When a watch ended.
    pub async fn ready(&self) -> Result<(), reflector::store::WriterDropped> {
        self.servers.wait_until_ready().await?;
        self.pins.wait_until_ready().await?;
        self.delegations.wait_until_ready().await?;
        self.deployments.wait_until_ready().await?;
        self.services.wait_until_ready().await?;
        self.accounts.wait_until_ready().await?;
        self.config_maps.wait_until_ready().await?;
        self.policies.wait_until_ready().await
    }

    /// The pins that name a server.
    #[must_use]
    pub fn pins_of(&self, key: &ServerKey) -> Vec<Arc<ToolPin>> {
        let names = |pin: &ToolPin| pin.spec.server_ref.name == key.name && is_in(pin, &key.namespace);
        self.pins.state_filter(names)
    }

    /// The delegations of a namespace.
    #[must_use]
    pub fn delegations_in(&self, namespace: &str) -> Vec<Arc<AgentDelegation>> {
        self.delegations.state_filter(|delegation: &AgentDelegation| is_in(delegation, namespace))
    }

    /// Every server that exists or that something names.
    #[must_use]
    pub fn everything(&self) -> Vec<ServerKey> {
        let mut keys: Vec<_> = self.servers.state().iter().map(|server| ServerKey::of(server.as_ref())).collect();
        keys.extend(self.pins.state().iter().map(|pin| pinned(pin)));
        keys.extend(self.delegations.state().iter().flat_map(|delegation| delegated(delegation)));
        keys.sort();
        keys.dedup();
        keys
    }
}

impl Accounts for Stores {
    fn account(&self, server: &ServerKey) -> Option<String> {
        let found = self.servers.get(&server.object())?;
        let named = found.spec.pod_template.as_ref().and_then(|template| template.service_account_name.as_deref());
        Some(service_account_name(&server.name, named))
    }
}

/// The server that a pin names.
#[must_use]
pub fn pinned(pin: &ToolPin) -> ServerKey {
    ServerKey::new(pin.namespace().unwrap_or_default(), pin.spec.server_ref.name.as_str())
}

/// The servers that a delegation names. One that names none, as a delegation to an agent, is looked after under the
/// empty name, which no server has: like one that names a server that does not exist.
#[must_use]
pub fn delegated(delegation: &AgentDelegation) -> Vec<ServerKey> {
    let namespace = delegation.namespace().unwrap_or_default();
    let servers = delegation.spec.to.servers.iter().flatten().map(|server| server.name.as_str());
    let mut keys: Vec<_> = servers.map(|name| ServerKey::new(namespace.as_str(), name)).collect();
    if keys.is_empty() {
        keys.push(ServerKey::new(namespace, ""));
    }
    keys
}

fn is_in<K: Resource>(object: &K, namespace: &str) -> bool {
    object.meta().namespace.as_deref() == Some(namespace)
}
