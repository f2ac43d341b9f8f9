//! Which servers a change concerns.

use std::{collections::HashSet, sync::Arc};

use cotter_compiler::build::LABEL_SERVER;
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service, ServiceAccount},
};
use kube::{Resource, ResourceExt, api::ObjectMeta, core::error_boundary::InvalidObject};
use tokio::sync::mpsc;

use crate::{
    key::ServerKey,
    queue::Queue,
    stores::{Stores, delegated, pinned},
    unreadable::{Complaint, Message},
    watch::Watched,
};

/// Finds the servers that an object concerns.
pub type Concerns<K> = fn(&K, &Stores) -> Vec<ServerKey>;

/// What a pass reads of an object beside its spec and labels.
pub trait Noted {
    /// A number that is another one where it has changed.
    fn noted(&self) -> i32 {
        0
    }
}

impl Noted for McpServer {}
impl Noted for ToolPin {}
impl Noted for AgentDelegation {}
impl Noted for Service {}
impl Noted for ServiceAccount {}
impl Noted for ConfigMap {}
impl Noted for Deployment {
    /// How many of its pods can be called.
    fn noted(&self) -> i32 {
        self.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
    }
}

/// Marks servers for what a watch sees.
pub struct Marker<K> {
    concerns: Concerns<K>,
    stores: Stores,
    queue: Arc<Queue<ServerKey>>,
    complaints: mpsc::Sender<Message>,
    /// What was complained about and not taken back.
    bad: HashSet<ServerKey>,
}

impl<K> Marker<K> {
    /// A marker for one kind.
    pub fn new(
        concerns: Concerns<K>,
        stores: Stores,
        queue: Arc<Queue<ServerKey>>,
        complaints: mpsc::Sender<Message>,
    ) -> Self {
        Self { concerns, stores, queue, complaints, bad: HashSet::new() }
    }

    fn mark(&self, keys: Vec<ServerKey>) {
        keys.into_iter().for_each(|key| self.queue.mark(key));
    }

    fn complain(&self, complaint: Complaint) {
        // A full queue loses a complaint about one of a thousand bad objects; it comes again with the next list.
        if self.complaints.try_send(Message::Complaint(Box::new(complaint))).is_err() {
            tracing::warn!("too many unreadable objects to complain about each");
        }
    }
}

impl<K> Watched<K> for Marker<K>
where
    K: Resource<DynamicType = ()> + Noted + Send + Sync + 'static,
{
    fn changed(&mut self, before: Option<Arc<K>>, after: &K) {
        let same = |before: &Arc<K>| is_same(before.meta(), after.meta()) && before.noted() == after.noted();
        if before.as_ref().is_some_and(same) {
            return;
        }
        if let Some(before) = before {
            self.mark((self.concerns)(&before, &self.stores));
        }
        self.mark((self.concerns)(after, &self.stores));
    }

    fn deleted(&mut self, object: &K) {
        self.mark((self.concerns)(object, &self.stores));
    }

    fn listed(&mut self) {
        self.mark(self.stores.everything());
    }

    fn unreadable(&mut self, object: &InvalidObject) {
        self.bad.insert(place(&object.metadata));
        self.complain(Complaint::unreadable::<K>(object));
    }

    fn readable(&mut self, metadata: &ObjectMeta) {
        if self.bad.remove(&place(metadata)) {
            self.complain(Complaint::readable::<K>(metadata));
        }
    }
}

fn place(metadata: &ObjectMeta) -> ServerKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    ServerKey::new(text(&metadata.namespace), text(&metadata.name))
}

/// Whether nothing changed but the status, which for our own kinds is ours to write: what a pass reads is spec and labels. Objects
/// without a generation have no status either.
fn is_same(before: &ObjectMeta, after: &ObjectMeta) -> bool {
    let content = |metadata: &ObjectMeta| match metadata.generation {
        Some(generation) => generation.to_string(),
        None => metadata.resource_version.clone().unwrap_or_default(),
    };
    before.uid == after.uid
        && content(before) == content(after)
        && before.labels == after.labels
        && before.owner_references == after.owner_references
        && before.deletion_timestamp == after.deletion_timestamp
}

/// A server concerns itself.
#[must_use]
pub fn of_server(server: &McpServer, _: &Stores) -> Vec<ServerKey> {
    vec![ServerKey::of(server)]
}

/// A pin concerns the server that it names.
#[must_use]
pub fn of_pin(pin: &ToolPin, _: &Stores) -> Vec<ServerKey> {
    vec![pinned(pin)]
}

/// A delegation concerns the servers that it names, and as a parent those of its namespace that others name.
#[must_use]
pub fn of_delegation(delegation: &AgentDelegation, stores: &Stores) -> Vec<ServerKey> {
    let mut keys = delegated(delegation);
    let namespace = delegation.namespace().unwrap_or_default();
    keys.extend(stores.delegations_in(&namespace).iter().flat_map(|other| delegated(other)));
    keys.sort();
    keys.dedup();
    keys
}

/// A child concerns the server that its label names.
#[must_use]
pub fn of_child<K: Resource>(child: &K, _: &Stores) -> Vec<ServerKey> {
    let namespace = child.namespace().unwrap_or_default();
    child.labels().get(LABEL_SERVER).map(|name| ServerKey::new(namespace, name.as_str())).into_iter().collect()
}

/// A policy for the whole cluster concerns every server.
#[must_use]
pub fn of_cluster_policy(_: &ConfigMap, stores: &Stores) -> Vec<ServerKey> {
    stores.servers.state().iter().map(|server| ServerKey::of(server.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(change: serde_json::Value) -> ObjectMeta {
        let mut metadata = json!({"name": "a", "uid": "1", "generation": 1, "resourceVersion": "7"});
        for (name, value) in change.as_object().unwrap() {
            metadata[name] = value.clone();
        }
        serde_json::from_value(metadata).unwrap()
    }

    #[test]
    fn our_own_status_write_marks_nothing_and_everything_else_does() {
        let before = metadata(json!({}));
        assert!(is_same(&before, &metadata(json!({"resourceVersion": "8"}))));
        for change in [
            json!({"generation": 2}),
            json!({"labels": {"a": "b"}}),
            json!({"deletionTimestamp": "2026-11-30T00:00:00Z"}),
            json!({"uid": "2"}),
        ] {
            assert!(!is_same(&before, &metadata(change.clone())), "{change}");
        }
        let map = |version: &str| metadata(json!({"generation": null, "resourceVersion": version}));
        assert!(!is_same(&map("7"), &map("8")), "a ConfigMap has no generation");
    }
}
