//! The one way in.

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{metadata, sidecar};
use crate::server::Server;

/// Port 80 of the Service leads to the sidecar, never to the server.
pub(super) fn service(server: &Server) -> Service {
    let port = ServicePort {
        name: Some("mcp".to_owned()),
        port: 80,
        target_port: Some(IntOrString::String(sidecar::PORT_NAME.to_owned())),
        protocol: Some("TCP".to_owned()),
        app_protocol: Some("http".to_owned()),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata::of(server, server.id.name.as_str()),
        spec: Some(ServiceSpec {
            selector: Some(metadata::selector(server)),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
