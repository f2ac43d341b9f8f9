//! The one maker of metadata: names from the owner, labels, and the owner reference by which everything goes with it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::server::Server;

/// The label that says whose a pod or object is; the Service and the Deployment select by it.
pub const LABEL_SERVER: &str = "cotter.dev/server";
/// The value of `app.kubernetes.io/managed-by` of everything that Cotter makes.
pub const MANAGED_BY: &str = "cotter";

/// Metadata of an object of this server.
pub(super) fn of(server: &Server, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(server.id.namespace.to_string()),
        labels: Some(labels(server)),
        owner_references: owner(server).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// Metadata of the pods: what the manifest wants, and ours, which win.
pub(super) fn of_pod(server: &Server) -> ObjectMeta {
    let template = &server.pod_template;
    let mut wanted = template.labels.clone();
    wanted.extend(labels(server));
    ObjectMeta {
        labels: Some(wanted),
        annotations: (!template.annotations.is_empty()).then(|| template.annotations.clone()),
        ..ObjectMeta::default()
    }
}

fn labels(server: &Server) -> BTreeMap<String, String> {
    let mut labels = selector(server);
    labels.insert("app.kubernetes.io/name".to_owned(), server.id.name.to_string());
    labels.insert("app.kubernetes.io/managed-by".to_owned(), MANAGED_BY.to_owned());
    labels
}

/// What selects the pods: one label, because a selector can never be changed.
pub(super) fn selector(server: &Server) -> BTreeMap<String, String> {
    BTreeMap::from([(LABEL_SERVER.to_owned(), server.id.name.to_string())])
}

fn owner(server: &Server) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: cotter_crds::API_VERSION.to_owned(),
        kind: "McpServer".to_owned(),
        name: server.id.name.to_string(),
        uid: server.uid.clone()?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

/// The service account of a server's pods: the one that the manifest names, else one of their own. A report about the
/// server is believed from no other.
#[must_use]
pub fn service_account_name(server: &str, named: Option<&str>) -> String {
    named.map_or_else(|| format!("{server}-mcp"), str::to_owned)
}

pub(super) fn account(server: &Server) -> String {
    service_account_name(server.id.name.as_str(), server.pod_template.service_account_name.as_deref())
}

/// The ConfigMap that a sidecar starts with.
pub(super) fn bootstrap_name(server: &Server) -> String {
    format!("{}-bootstrap", server.id.name)
}

/// The ConfigMap with the definitions that sidecars see.
#[must_use]
pub fn observed_name(server: &str) -> String {
    format!("{server}-observed")
}
