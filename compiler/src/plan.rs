//! What `compile` gives back: what to enforce, what to run, and what to say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use cotter_core::{
    report::Uses,
    snapshot::{Digest, Sealed},
};
use cotter_crds::{AgentDelegationStatus, McpServerStatus, ToolPinStatus};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service, ServiceAccount},
};

/// What follows from a world.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the sidecars are to enforce. `None` where the server or a policy cannot be used as it is: whatever is in
    /// force stays in force, and the status says why.
    pub snapshot: Option<Sealed>,
    /// The objects that the cluster is to have. `None` on a laptop, and wherever there is no snapshot: what exists is
    /// then left as it is, neither changed nor pruned.
    pub children: Option<Children>,
    /// On a laptop, the server that has to be started for an upstream over HTTP.
    pub process: Option<Process>,
    /// On a laptop, the files that the snapshot's upstream names.
    pub files: Vec<SecretFile>,
    /// The definitions as sidecars see them; `None` while none has read them.
    pub observed: Option<Observed>,
    /// The server's status.
    pub server_status: McpServerStatus,
    /// The status of each ToolPin that names the server, by name.
    pub pin_statuses: BTreeMap<String, ToolPinStatus>,
    /// The status of each AgentDelegation that names the server, by name.
    pub delegation_statuses: BTreeMap<String, AgentDelegationStatus>,
    /// What delegations that also name other servers need to know of this one.
    pub evidence: Evidence,
    /// What a person at a terminal is told, in order.
    pub notices: Vec<Notice>,
    /// When a condition changes by time alone: compile again then.
    pub next: Option<Timestamp>,
}

/// The objects of one server. Destructure it without `..`, so that a new one cannot be forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Children {
    /// The pods' own service account; `None` where the manifest names one.
    pub service_account: Option<ServiceAccount>,
    /// What a sidecar starts with while the operator is away.
    pub bootstrap: ConfigMap,
    /// The definitions as sidecars see them. `None` means leave what is there.
    pub observed: Option<ConfigMap>,
    /// The one way in.
    pub service: Service,
    /// Server and sidecar.
    pub deployment: Deployment,
}

/// The definitions that the sidecars see, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// A tools/list result: `{"tools":[…]}`, sorted by name, each object exactly as the server sent it.
    pub tools_json: String,
    /// Names whose definition is not the same at every sidecar; the most frequent one is given.
    pub differing: Vec<String>,
    /// Names left out because the whole would be too large.
    pub omitted: Vec<String>,
}

/// What one server's compile tells the delegations that name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The snapshot that its sidecars are to enforce.
    pub desired: Option<Digest>,
    /// Live sidecars.
    pub live: u32,
    /// Live sidecars that enforce exactly that snapshot.
    pub enforced: u32,
    /// Uses of delegations, by name, all live sidecars together.
    pub uses: BTreeMap<String, Uses>,
    /// The tenants that may be there, for shadowing.
    pub tenants: BTreeSet<String>,
    /// The tools that are callable there, for shadowing.
    pub callable: BTreeSet<String>,
}

impl Evidence {
    /// Whether every live sidecar enforces the wanted snapshot, and there is one.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.desired.is_some() && self.live > 0 && self.live == self.enforced
    }
}

/// A program to start on a laptop.
#[derive(Clone, PartialEq, Eq)]
pub struct Process {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment, on top of a small fixed one.
    pub env: BTreeMap<String, String>,
    /// The loopback port that it will listen on.
    pub port: u16,
}

impl fmt::Debug for Process {
    /// Without the values of variables: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("port", &self.port)
            .finish()
    }
}

/// A file to write, readable by its owner alone, before the sidecar starts.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretFile {
    /// Where.
    pub path: PathBuf,
    /// What.
    pub contents: String,
}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// One line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about: `server`, `pin`, `delegation`.
    pub about: &'static str,
    /// The line.
    pub text: String,
}
