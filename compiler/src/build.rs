//! The objects that a server has in a cluster. Total: one function for each object, no clock, no environment.
//!
//! The server is the adversary: its container has no credential, no volume and no namespace of the sidecar's. The two
//! share the pod's network and, for a server over stdio, one directory with the shim's socket.

mod bootstrap;
mod metadata;
mod observed;
mod pod;
mod server_container;
mod service;
mod sidecar;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ServiceAccount};

pub use bootstrap::BOOTSTRAP_KEY;
pub use metadata::{LABEL_SERVER, MANAGED_BY, observed_name, service_account_name};
pub use observed::OBSERVED_KEY;
pub(crate) use observed::observed;

use crate::{
    plan::{Children, Observed},
    server::Server,
    world::ClusterSettings,
};

/// The audience of the token with which a sidecar speaks to the operator. No other container of the pod may have one.
pub const OPERATOR_AUDIENCE: &str = "cotter.dev/operator";
/// How names of volumes of ours start; a manifest may not use it.
pub(crate) const RESERVED: &str = "cotter-";

/// Where the shim's socket is, in both containers.
pub(crate) const SOCKET: &str = "/run/cotter/shim.sock";
/// Where a remote server's credential and authorities are, in the sidecar.
pub(crate) const CREDENTIALS_DIR: &str = "/etc/cotter/upstream";
/// The credential's file.
pub(crate) const CREDENTIALS_FILE: &str = "token";
/// The authorities' file.
pub(crate) const CA_FILE: &str = "ca.crt";

/// Everything that is made for one server.
pub(crate) fn children(
    server: &Server,
    settings: &ClusterSettings,
    sealed: &cotter_core::snapshot::Sealed,
    seen: Option<&Observed>,
) -> Children {
    Children {
        service_account: service_account(server),
        bootstrap: bootstrap::config_map(server, settings, sealed),
        observed: seen.map(|seen| observed::config_map(server, seen)),
        service: service::service(server),
        deployment: deployment(server, settings),
    }
}

/// The pods' own account, without any right. It exists so that a report is believed from this server's pods alone.
fn service_account(server: &Server) -> Option<ServiceAccount> {
    if server.pod_template.service_account_name.is_some() {
        return None;
    }
    Some(ServiceAccount {
        metadata: metadata::of(server, &metadata::account(server)),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    })
}

fn deployment(server: &Server, settings: &ClusterSettings) -> Deployment {
    use k8s_openapi::{
        api::{apps::v1::DeploymentSpec, core::v1::PodTemplateSpec},
        apimachinery::pkg::apis::meta::v1::LabelSelector,
    };
    Deployment {
        metadata: metadata::of(server, server.id.name.as_str()),
        spec: Some(DeploymentSpec {
            replicas: Some(server.replicas),
            revision_history_limit: Some(3),
            selector: LabelSelector { match_labels: Some(metadata::selector(server)), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(metadata::of_pod(server)),
                spec: Some(pod::spec(server, settings)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
