//! Where the server is.

use k8s_openapi::{
    api::core::v1::{EnvFromSource, EnvVar, ResourceRequirements, VolumeMount},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    embedded,
    reference::{CertificateRef, TokenRef},
    rule,
    schema::{self, rules, rules_at},
};

/// Where the server is: exactly one of the three.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::UPSTREAM_UNION])))]
pub struct Upstream {
    /// Cotter runs the server: each pod is the server's container and the sidecar, and only the sidecar is reachable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,

    /// The server runs in pods that somebody else owns; the sidecar is injected into them when they are created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,

    /// The server is elsewhere; Cotter runs a proxy in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
}

/// A server that Cotter runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::TRANSPORT_UNION, rule::STDIO_NEEDS_COMMAND])))]
pub struct Container {
    /// The server's image, best by digest: a tag can be moved to another image, and the pin would only see the tools that it then offers. `cotter up` does not use the image; it starts command and args as a child process.
    #[schemars(schema_with = "schema::image")]
    pub image: String,

    /// The program to start. Required with stdio, where a shim takes the place of the image's entrypoint; with http the image's entrypoint is the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::words")]
    pub command: Vec<String>,

    /// Arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::words")]
    pub args: Vec<String>,

    /// Environment of the server, as in a pod. The sidecar sees none of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::env")]
    pub env: Vec<EnvVar>,

    /// Secrets and ConfigMaps of which every key becomes a variable of the server's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::env_from")]
    pub env_from: Vec<EnvFromSource>,

    /// CPU and memory of the server's container, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::resources")]
    pub resources: Option<ResourceRequirements>,

    /// Volumes of the pod for the server to mount, as in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::volumes")]
    pub volumes: Vec<Volume>,

    /// Where the server's container mounts the volumes, as in a pod. The sidecar mounts none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::volume_mounts")]
    pub volume_mounts: Vec<VolumeMount>,

    /// The server speaks over stdin and stdout. Exactly one of stdio and http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdio: Option<Stdio>,

    /// The server listens for Streamable HTTP on a port of the pod. Exactly one of stdio and http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
}

/// A volume of a pod: its name and one source, kept as written and checked when the pod is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    /// The name by which volumeMounts mean it.
    pub name: String,
    /// The source, as in a pod.
    #[serde(flatten)]
    pub source: Map<String, Value>,
}

/// A server that speaks over stdin and stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stdio {
    /// Who shares a process. `PerSession` (the default): every session of every caller gets a process of its own. `Shared`: one process serves all sessions, so one caller's state may show to another.
    #[serde(default)]
    pub sessions: Sessions,
}

/// Who shares a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Sessions {
    /// One process for each session.
    #[default]
    PerSession,
    /// One process for all sessions.
    Shared,
}

/// A server that listens on a port of its pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http {
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// The path of the MCP endpoint, `/mcp` by default.
    #[serde(default = "mcp")]
    #[schemars(schema_with = "schema::path")]
    pub path: String,
}

fn mcp() -> String {
    "/mcp".to_owned()
}

/// Pods that somebody else owns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Which pods of this namespace. Not empty.
    #[schemars(schema_with = "embedded::selector")]
    pub selector: LabelSelector,

    /// Where the server listens inside the pod.
    pub http: Http,
}

/// A server that is elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules_at(".url", &[rule::REMOTE_ENCRYPTED, rule::TLS_NEEDS_HTTPS])))]
pub struct Remote {
    /// URL of the server's MCP endpoint. http:// is refused unless allowPlaintext is true or the host is a Service of this cluster (ends in .svc); `cotter up` accepts loopback as well.
    #[schemars(schema_with = "schema::url")]
    pub url: String,

    /// What the proxy presents to the server. The caller's own token never goes upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,

    /// How the server's certificate is checked. Leave it out for the public certificate authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,

    /// Accept that whoever is on the path reads and changes every call. false by default.
    #[serde(default)]
    pub allow_plaintext: bool,
}

/// What the proxy presents to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// The Secret that holds the token.
    pub secret_ref: TokenRef,

    /// The request header that carries it, `Authorization` by default.
    #[serde(default = "authorization")]
    #[schemars(schema_with = "schema::header")]
    pub header: String,

    /// What stands before the token in the header, `Bearer ` with its space by default.
    #[serde(default = "bearer")]
    #[schemars(schema_with = "schema::header_prefix")]
    pub prefix: String,
}

fn authorization() -> String {
    "Authorization".to_owned()
}

fn bearer() -> String {
    "Bearer ".to_owned()
}

/// How the server's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// The Secret that holds the certificates of the only authorities to trust.
    pub ca_secret_ref: CertificateRef,
}
