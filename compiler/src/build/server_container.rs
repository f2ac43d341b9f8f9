//! The server's container, as its manifest describes it. Over stdio the shim starts the server and relays its sessions.

use cotter_core::snapshot::Sessions;
use k8s_openapi::api::core::v1::{self, Capabilities, ContainerPort, SecurityContext, VolumeMount};

use super::{SOCKET, pod, sidecar};
use crate::{
    server::{Container, Server, Transport},
    world::ClusterSettings,
};

/// The container's name, which logs and metrics show.
const NAME: &str = "server";

/// Where the shim is put. In the server's container it cannot be written.
const SHIM_DIR: &str = "/cotter/bin";
/// Where the shim's socket is: the one directory that server and sidecar share.
pub(super) const RUN_DIR: &str = "/run/cotter";
/// The shim in the sidecar's image.
const SHIM_IN_IMAGE: &str = "/usr/local/bin/cotter-shim";

/// The server's container: it sees its own volumes and, over stdio, shim and socket. Nothing else of ours.
pub(super) fn server(container: &Container) -> v1::Container {
    let mut mounts = container.volume_mounts.clone();
    let (command, args, ports) = match &container.transport {
        Transport::Stdio(sessions) => {
            mounts.push(mount(pod::SHIM, SHIM_DIR, true));
            mounts.push(mount(pod::RUN, RUN_DIR, false));
            (shim_command(*sessions), stdio_args(container), None)
        }
        Transport::Http { port, .. } => (container.command.clone(), container.args.clone(), Some(vec![listens(*port)])),
    };
    v1::Container {
        name: NAME.to_owned(),
        image: Some(container.image.clone()),
        command: filled(command),
        args: filled(args),
        env: filled(container.env.clone()),
        env_from: filled(container.env_from.clone()),
        resources: container.resources.clone(),
        volume_mounts: filled(mounts),
        ports,
        security_context: Some(confined()),
        ..v1::Container::default()
    }
}

fn shim_command(sessions: Sessions) -> Vec<String> {
    let sessions = match sessions {
        Sessions::PerSession => "per-session",
        Sessions::Shared => "shared",
    };
    let shim = format!("{SHIM_DIR}/cotter-shim");
    [&shim, "--socket", SOCKET, "--sessions", sessions, "--"].map(str::to_owned).to_vec()
}

fn stdio_args(container: &Container) -> Vec<String> {
    container.command.iter().chain(&container.args).cloned().collect()
}

fn listens(port: u16) -> ContainerPort {
    ContainerPort { container_port: i32::from(port), protocol: Some("TCP".to_owned()), ..ContainerPort::default() }
}

/// What no server needs. Its user and its root file system are the image's own: many images write there.
fn confined() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        ..SecurityContext::default()
    }
}

/// Copies the shim out of the sidecar's image, before the server starts.
pub(super) fn shim(server: &Server, settings: &ClusterSettings) -> v1::Container {
    v1::Container {
        name: "cotter-shim".to_owned(),
        image: Some(sidecar::image(server, settings)),
        command: Some(vec![SHIM_IN_IMAGE.to_owned()]),
        args: Some(vec!["--copy-to".to_owned(), SHIM_DIR.to_owned()]),
        resources: Some(sidecar::resources(server)),
        volume_mounts: Some(vec![mount(pod::SHIM, SHIM_DIR, false)]),
        security_context: Some(sidecar::security_context()),
        ..v1::Container::default()
    }
}

pub(super) fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

fn filled<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
