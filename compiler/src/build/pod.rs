//! The pod: the server's container where Cotter runs the server, and the sidecar's.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EmptyDirVolumeSource, KeyToPath, PodSecurityContext, PodSpec,
    ProjectedVolumeSource, SeccompProfile, SecretProjection, SecretVolumeSource, ServiceAccountTokenProjection, Volume,
    VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{CA_FILE, CREDENTIALS_FILE, OPERATOR_AUDIENCE, metadata, server_container, sidecar};
use crate::{
    server::{Remote, Server, Transport, Upstream},
    world::ClusterSettings,
};

/// The volumes of ours, by name. Only [`SHIM`] and [`RUN`] are mounted into the server's container.
pub(super) const BOOTSTRAP: &str = "cotter-bootstrap";
pub(super) const TOKEN: &str = "cotter-token";
pub(super) const STATE: &str = "cotter-state";
pub(super) const UPSTREAM: &str = "cotter-upstream";
pub(super) const SHIM: &str = "cotter-shim";
pub(super) const RUN: &str = "cotter-run";

/// The file of the operator's token.
pub(super) const TOKEN_FILE: &str = "token";
/// The shortest life that the API server grants; kubelet renews it at four fifths.
const TOKEN_SECONDS: i64 = 600;

/// The last good snapshot and what is written beside it; a snapshot is a few MiB at most.
const STATE_SIZE: &str = "64Mi";
/// The shim is one small program, its sockets take no room.
const SHIM_SIZE: &str = "16Mi";

pub(super) fn spec(server: &Server, settings: &ClusterSettings) -> PodSpec {
    let template = &server.pod_template;
    let mut volumes = vec![bootstrap(server), token(), empty(STATE, STATE_SIZE)];
    let mut containers: Vec<Container> = Vec::new();
    let mut init_containers = None;
    match &server.upstream {
        Upstream::Container(container) => {
            if let Transport::Stdio(_) = container.transport {
                volumes.extend([empty(SHIM, SHIM_SIZE), empty(RUN, SHIM_SIZE)]);
                init_containers = Some(vec![server_container::shim(server, settings)]);
            }
            volumes.extend(container.volumes.iter().cloned());
            containers.push(server_container::server(container));
        }
        Upstream::Remote(remote) => volumes.extend(upstream(remote)),
    }
    containers.push(sidecar::container(server, settings));
    PodSpec {
        service_account_name: Some(metadata::account(server)),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(security_context()),
        init_containers,
        containers,
        volumes: Some(volumes),
        image_pull_secrets: filled(&template.image_pull_secrets),
        node_selector: (!template.node_selector.is_empty()).then(|| template.node_selector.clone()),
        tolerations: filled(&template.tolerations),
        affinity: server.affinity.clone(),
        topology_spread_constraints: filled(&server.spread),
        priority_class_name: template.priority_class_name.clone(),
        runtime_class_name: template.runtime_class_name.clone(),
        termination_grace_period_seconds: template.termination_grace_period_seconds,
        ..PodSpec::default()
    }
}

fn filled<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// For every container of the pod; each one adds to it. Processes are never shared between containers.
fn security_context() -> PodSecurityContext {
    let seccomp = SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None };
    PodSecurityContext { seccomp_profile: Some(seccomp), ..PodSecurityContext::default() }
}

fn bootstrap(server: &Server) -> Volume {
    let source = ConfigMapVolumeSource { name: metadata::bootstrap_name(server), ..ConfigMapVolumeSource::default() };
    Volume { name: BOOTSTRAP.to_owned(), config_map: Some(source), ..Volume::default() }
}

/// The sidecar's identity towards the operator: a token of its own audience, short-lived, bound to this pod.
fn token() -> Volume {
    let projection = ServiceAccountTokenProjection {
        audience: Some(OPERATOR_AUDIENCE.to_owned()),
        expiration_seconds: Some(TOKEN_SECONDS),
        path: TOKEN_FILE.to_owned(),
    };
    projected(TOKEN, vec![VolumeProjection { service_account_token: Some(projection), ..VolumeProjection::default() }])
}

fn projected(name: &str, sources: Vec<VolumeProjection>) -> Volume {
    let projected = ProjectedVolumeSource { sources: Some(sources), ..ProjectedVolumeSource::default() };
    Volume { name: name.to_owned(), projected: Some(projected), ..Volume::default() }
}

/// Credential and authorities of a remote server, for the sidecar alone.
fn upstream(remote: &Remote) -> Option<Volume> {
    let credentials = remote.credentials.as_ref().map(|credentials| (&credentials.secret, CREDENTIALS_FILE));
    let ca = remote.ca.as_ref().map(|ca| (ca, CA_FILE));
    let wanted: Vec<_> = credentials.into_iter().chain(ca).collect();
    let item = |key: &str, path: &str| KeyToPath { key: key.to_owned(), path: path.to_owned(), mode: None };
    match wanted.as_slice() {
        [] => None,
        [(secret, file)] => {
            let items = Some(vec![item(&secret.key, file)]);
            let source =
                SecretVolumeSource { secret_name: Some(secret.name.clone()), items, ..SecretVolumeSource::default() };
            Some(Volume { name: UPSTREAM.to_owned(), secret: Some(source), ..Volume::default() })
        }
        several => {
            let one = |(secret, file): &(&crate::server::KeyOf, &str)| VolumeProjection {
                secret: Some(SecretProjection {
                    name: secret.name.clone(),
                    items: Some(vec![item(&secret.key, file)]),
                    optional: None,
                }),
                ..VolumeProjection::default()
            };
            Some(projected(UPSTREAM, several.iter().map(one).collect()))
        }
    }
}

fn empty(name: &str, size: &str) -> Volume {
    let source = EmptyDirVolumeSource { size_limit: Some(Quantity(size.to_owned())), medium: None };
    Volume { name: name.to_owned(), empty_dir: Some(source), ..Volume::default() }
}
