//! Where the server is.

use cotter_core::snapshot::Sessions;
use cotter_crds::server as crd;
use http::Uri;

use super::{Place, pod, server::bounded};
use crate::{
    build::{OPERATOR_AUDIENCE, RESERVED},
    problem::{Kind, Problems},
    server::{Container, Credentials, KeyOf, Remote, Transport, Upstream},
};

pub(super) fn validate(spec: &crd::Upstream, place: Place, problems: &mut Problems) -> Option<Upstream> {
    let path = "spec.upstream";
    match (&spec.container, &spec.workload, &spec.remote) {
        (Some(one), None, None) => {
            container(one, place, problems).map(|container| Upstream::Container(Box::new(container)))
        }
        (None, None, Some(one)) => remote(one, place, problems).map(Upstream::Remote),
        (None, Some(_), None) => {
            problems.add_as(Kind::Unsupported, format!("{path}.workload"), "is not served by this version: write container, so that Cotter runs the server, or remote, with the URL of its Service");
            None
        }
        _ => {
            problems.add(path, "write exactly one of container (Cotter runs the server), workload (the pods are somebody else's) and remote (a URL)");
            None
        }
    }
}

fn container(spec: &crd::Container, place: Place, problems: &mut Problems) -> Option<Container> {
    let path = "spec.upstream.container";
    let transport = transport(spec, problems);
    let is_stdio = matches!(transport, Some(Transport::Stdio(_)));
    if spec.command.is_empty() && is_stdio {
        problems.add(format!("{path}.command"), "is needed with stdio, because the shim takes the place of the image's entrypoint: write the program to start, such as command: [node, server.js]");
    } else if spec.command.is_empty() && place == Place::Laptop {
        problems.add(format!("{path}.command"), "is needed here, because the image is not used: write the program to start, such as command: [node, server.js]");
    }
    let volumes = volumes(spec, problems);
    Some(Container {
        image: spec.image.clone(),
        command: spec.command.clone(),
        args: spec.args.clone(),
        env: spec.env.clone(),
        env_from: spec.env_from.clone(),
        resources: spec.resources.clone(),
        volumes,
        volume_mounts: spec.volume_mounts.clone(),
        transport: transport?,
    })
}

fn transport(spec: &crd::Container, problems: &mut Problems) -> Option<Transport> {
    let path = "spec.upstream.container";
    match (&spec.stdio, &spec.http) {
        (Some(stdio), None) => Some(Transport::Stdio(match stdio.sessions {
            crd::Sessions::PerSession => Sessions::PerSession,
            crd::Sessions::Shared => Sessions::Shared,
        })),
        (None, Some(http)) => {
            if !http.path.starts_with('/') || http.path.contains(['?', '#', ' ']) {
                problems.add(
                    format!("{path}.http.path"),
                    "write an absolute path without query and fragment, such as /mcp",
                );
            }
            let port = u16::try_from(http.port).ok().filter(|port| *port > 0);
            if port.is_none() {
                problems
                    .add(format!("{path}.http.port"), format_args!("{} is not a port: write 1 to 65535", http.port));
            }
            Some(Transport::Http { port: port?, path: http.path.clone() })
        }
        _ => {
            problems.add(path, "write exactly one of stdio: {} and http: {port: 8000, path: /mcp}");
            None
        }
    }
}

/// The server's volumes may neither take the names of ours, nor mint what only the sidecar is to have.
fn volumes(spec: &crd::Container, problems: &mut Problems) -> Vec<k8s_openapi::api::core::v1::Volume> {
    let path = "spec.upstream.container.volumes";
    let mut volumes = Vec::new();
    for (at, written) in spec.volumes.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if written.name.starts_with(RESERVED) {
            problems.add(
                format!("{path}.name"),
                format_args!("names that start with {RESERVED:?} are Cotter's own: choose another"),
            );
        }
        let Some(volume) = pod::volume(path.clone(), written, problems) else { continue };
        let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        let mut tokens = sources.filter_map(|source| source.service_account_token.as_ref());
        if tokens.any(|token| token.audience.as_deref() == Some(OPERATOR_AUDIENCE)) {
            problems.add(
                path,
                format_args!("a token for {OPERATOR_AUDIENCE} would let the server speak as its sidecar: leave it out"),
            );
        }
        volumes.push(volume);
    }
    for (at, mount) in spec.volume_mounts.iter().enumerate().filter(|(_, mount)| mount.name.starts_with(RESERVED)) {
        problems.add(
            format!("spec.upstream.container.volumeMounts[{at}].name"),
            format_args!("{:?} is Cotter's own", bounded(&mount.name)),
        );
    }
    volumes
}

fn remote(spec: &crd::Remote, place: Place, problems: &mut Problems) -> Option<Remote> {
    let path = "spec.upstream.remote";
    let Some(host) =
        authority(&spec.url).and_then(|_| spec.url.parse::<Uri>().ok()?.host().map(str::to_ascii_lowercase))
    else {
        problems.add(
            format!("{path}.url"),
            format_args!(
                "{:?} has to be an absolute http:// or https:// URL without user and fragment",
                bounded(&spec.url)
            ),
        );
        return None;
    };
    let plaintext = spec.url.starts_with("http://");
    let near = is_cluster_internal(&host) || (place == Place::Laptop && is_loopback(&host));
    if plaintext && !spec.allow_plaintext && !near {
        problems.add(format!("{path}.url"), "is plain http://, so whoever is on the path reads and changes every call: write https://, or allowPlaintext: true if that is meant");
    }
    if plaintext && spec.tls.is_some() {
        problems.add(format!("{path}.tls"), "has no effect on an http:// URL: write https://, or leave tls out");
    }
    Some(Remote {
        url: spec.url.clone(),
        credentials: spec.credentials.as_ref().map(|credentials| Credentials {
            secret: KeyOf { name: credentials.secret_ref.name.clone(), key: credentials.secret_ref.key.clone() },
            header: credentials.header.clone(),
            prefix: credentials.prefix.clone(),
        }),
        ca: spec
            .tls
            .as_ref()
            .map(|tls| KeyOf { name: tls.ca_secret_ref.name.clone(), key: tls.ca_secret_ref.key.clone() }),
    })
}

/// Host, and port where it is written, of an absolute http or https URL without user and fragment.
pub(super) fn authority(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority()?;
    let plain = known && !url.contains('#') && !authority.as_str().contains('@') && !authority.host().is_empty();
    plain.then(|| authority.to_string())
}

/// A host that ends in `.svc`, or `.svc` and a cluster's domain.
fn is_cluster_internal(host: &str) -> bool {
    host.ends_with(".svc") || host.ends_with(".svc.cluster.local")
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
