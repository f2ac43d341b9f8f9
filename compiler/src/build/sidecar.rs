//! The sidecar's container.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector, Probe,
        ResourceRequirements, SecurityContext, VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};

use super::{
    CREDENTIALS_DIR, bootstrap, pod,
    server_container::{RUN_DIR, mount},
};
use crate::{
    server::{Server, Transport, Upstream},
    world::ClusterSettings,
};

/// The container's name, which logs and metrics show.
const NAME: &str = "cotter-proxy";
/// The name of the port that the Service leads to.
pub(super) const PORT_NAME: &str = "mcp";
const ADMIN_NAME: &str = "cotter-admin";

const PROXY_IN_IMAGE: &str = "/usr/local/bin/cotter-proxy";
const BOOTSTRAP_DIR: &str = "/etc/cotter/bootstrap";
const TOKEN_DIR: &str = "/var/run/secrets/cotter.dev/operator";
const STATE_DIR: &str = "/var/lib/cotter";

/// The user of our images. Not that of any server's image that we know of.
const USER: i64 = 65_532;

/// Ports of the sidecar; a pod has one network, so the server's own port is stepped aside for.
const PORTS: [u16; 2] = [8080, 18080];
const ADMIN_PORTS: [u16; 2] = [9090, 19090];

pub(super) fn container(server: &Server, settings: &ClusterSettings) -> Container {
    let (port, admin) = (free(PORTS, server), free(ADMIN_PORTS, server));
    let args = [
        format!("--bootstrap={BOOTSTRAP_DIR}/{}", bootstrap::BOOTSTRAP_KEY),
        format!("--token-file={TOKEN_DIR}/{}", pod::TOKEN_FILE),
        format!("--state-dir={STATE_DIR}"),
        format!("--listen=0.0.0.0:{port}"),
        format!("--admin=0.0.0.0:{admin}"),
    ];
    Container {
        name: NAME.to_owned(),
        image: Some(image(server, settings)),
        command: Some(vec![PROXY_IN_IMAGE.to_owned()]),
        args: Some(args.to_vec()),
        env: Some(vec![pod_name()]),
        ports: Some(vec![listens(PORT_NAME, port), listens(ADMIN_NAME, admin)]),
        resources: Some(resources(server)),
        volume_mounts: Some(mounts(server)),
        security_context: Some(security_context()),
        // Often: until it was asked a new pod is not called, and one whose server is gone still is.
        readiness_probe: Some(Probe { period_seconds: Some(1), failure_threshold: Some(3), ..probe("/readyz") }),
        liveness_probe: Some(Probe { period_seconds: Some(10), failure_threshold: Some(6), ..probe("/healthz") }),
        ..Container::default()
    }
}

/// The image: the manifest's own, else that of the installation.
pub(super) fn image(server: &Server, settings: &ClusterSettings) -> String {
    server.sidecar.image.clone().unwrap_or_else(|| settings.sidecar_image.clone())
}

/// Small requests, and a bound on memory that a full catalogue and a thousand sessions stay below.
pub(super) fn resources(server: &Server) -> ResourceRequirements {
    let amounts = |pairs: &[(&str, &str)]| -> BTreeMap<String, Quantity> {
        pairs.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect()
    };
    server.sidecar.resources.clone().unwrap_or_else(|| ResourceRequirements {
        requests: Some(amounts(&[("cpu", "10m"), ("memory", "32Mi")])),
        limits: Some(amounts(&[("memory", "256Mi")])),
        ..ResourceRequirements::default()
    })
}

/// The strictest that Kubernetes has a word for.
pub(super) fn security_context() -> SecurityContext {
    SecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        read_only_root_filesystem: Some(true),
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        ..SecurityContext::default()
    }
}

fn mounts(server: &Server) -> Vec<VolumeMount> {
    let mut mounts = vec![
        mount(pod::BOOTSTRAP, BOOTSTRAP_DIR, true),
        mount(pod::TOKEN, TOKEN_DIR, true),
        mount(pod::STATE, STATE_DIR, false),
    ];
    match &server.upstream {
        Upstream::Container(container) if matches!(container.transport, Transport::Stdio(_)) => {
            mounts.push(mount(pod::RUN, RUN_DIR, false));
        }
        Upstream::Remote(remote) if remote.credentials.is_some() || remote.ca.is_some() => {
            mounts.push(mount(pod::UPSTREAM, CREDENTIALS_DIR, true));
        }
        _ => {}
    }
    mounts
}

fn free([usual, other]: [u16; 2], server: &Server) -> u16 {
    let taken = match &server.upstream {
        Upstream::Container(container) => match &container.transport {
            Transport::Http { port, .. } => Some(*port),
            Transport::Stdio(_) => None,
        },
        Upstream::Remote(_) => None,
    };
    if taken == Some(usual) { other } else { usual }
}

fn listens(name: &str, port: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(port),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// The sidecar says which pod it is; the operator believes only what the token says.
fn pod_name() -> EnvVar {
    let field = ObjectFieldSelector { api_version: Some("v1".to_owned()), field_path: "metadata.name".to_owned() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: "POD_NAME".to_owned(), value: None, value_from: Some(source) }
}

fn probe(path: &str) -> Probe {
    let http = HTTPGetAction {
        path: Some(path.to_owned()),
        port: IntOrString::String(ADMIN_NAME.to_owned()),
        ..HTTPGetAction::default()
    };
    Probe { http_get: Some(http), timeout_seconds: Some(1), ..Probe::default() }
}
