//! `McpServer`: a server and what its tools demand.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    reference::NameRef,
    rule,
    schema::{self, rules},
};

mod access;
mod limits;
mod pod;
mod protocol;
mod status;
mod tool;
mod upstream;

pub use access::{Access, Claims, InsufficientScope, Issuer, Jwks, NamespaceTenant, ServiceAccounts};
pub use limits::{Limits, Rate, Stale, StaleAction, Verify};
pub use pod::{PodTemplate, Sidecar};
pub use protocol::{Allow, Protocol, REVISIONS};
pub use status::{McpServerStatus, Observed, ServerInfo, SnapshotStatus, SurfaceStatus, ToolCounts};
pub use tool::{Approval, Tool, ToolLimits};
pub use upstream::{Container, Credentials, Http, Remote, Sessions, Stdio, Tls, Upstream, Volume, Workload};

/// An MCP server, who may call it, and what each of its tools demands of a caller.
///
/// Only the tools named here exist for callers; each needs its scope, and is callable only while what the server offers is what was approved in a ToolPin (`kubectl explain tpin`).
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cotter.dev",
    version = "v1alpha1",
    kind = "McpServer",
    plural = "mcpservers",
    singular = "mcpserver",
    shortname = "mcps",
    category = "cotter",
    namespaced,
    status = "McpServerStatus",
    derive = "PartialEq",
    doc = "An MCP server, who may call it, and what each of its tools demands of a caller.",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Tools", type_ = "string", json_path = ".status.tools.callableOfDeclared"),
    printcolumn(name = "Drift", type_ = "integer", json_path = ".status.tools.drifted"),
    printcolumn(name = "Proxies", type_ = "string", json_path = ".status.snapshot.enforcedOfTotal"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    ),
    printcolumn(name = "Audience", type_ = "string", json_path = ".spec.audience", priority = 1),
    printcolumn(name = "Protocol", type_ = "string", json_path = ".status.surface.protocol", priority = 1),
    printcolumn(name = "Snapshot", type_ = "string", json_path = ".status.snapshot.desired", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[rule::WORKLOAD_OWNS_PODS])))]
pub struct McpServerSpec {
    /// What a token must be minted for to be accepted here: an RFC 8707 resource identifier, that is an absolute URI without a fragment, such as https://mcp.example.com/mcp or support://mcp. Compared byte for byte with the token's `aud`.
    #[schemars(schema_with = "schema::audience")]
    pub audience: String,

    /// Where the server is: exactly one of container, workload and remote.
    pub upstream: Upstream,

    /// Which revisions of the protocol clients may speak, and what beside tools they may use. By default the three newest revisions, and tools only.
    #[serde(default)]
    pub protocol: Protocol,

    /// Who may call. Nothing here means nobody: at least one issuer (or serviceAccounts) and one tenant are needed before anybody gets in.
    #[serde(default)]
    pub access: Access,

    /// The tools that callers may see, each with the scope that it needs and the effect that it has. A tool that the server offers and this list does not name is never listed to a caller and is answered as unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub tools: Vec<Tool>,

    /// What happens to a tool that no ToolPin covers. `Enforce` (the default): it is not callable until somebody approves it. `Audit`: it is callable and reported.
    #[serde(default)]
    pub pinning: Pinning,

    /// Rego modules of your own, in packages below `cotter.user`. They can refuse and demand approval; they cannot allow what would be refused without them. Modules in ConfigMaps of the operator's namespace labelled `cotter.dev/policy=cluster` hold as well, without being named here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = rules(&[rule::POLICIES_DIFFER])))]
    pub policies: Vec<PolicySource>,

    /// Bounds on what callers may send, receive and use.
    #[serde(default)]
    pub limits: Limits,

    /// How often the tools are compared with what was approved, and how long an old comparison counts.
    #[serde(default)]
    pub verify: Verify,

    /// What the sidecars do when they have not heard from the operator for a while.
    #[serde(default)]
    pub stale: Stale,

    /// How many pods run, each a sidecar with the server beside it (upstream.container) or alone (upstream.remote). 1 by default.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 256))]
    pub replicas: i32,

    /// The sidecar's own container. Leave it out for the image that the operator was installed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Sidecar>,

    /// What the pods get beside server and sidecar. Not with upstream.workload, whose pods belong to somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

fn one() -> i32 {
    1
}

/// What happens to a tool that no ToolPin covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Pinning {
    /// Not callable until it is approved.
    #[default]
    Enforce,
    /// Callable, and reported.
    Audit,
}

/// Where Rego modules come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySource {
    /// A ConfigMap in the same namespace. Each of its keys that ends in `.rego` is one module; at most 32 modules of 64 KiB each.
    pub config_map_ref: NameRef,
}
