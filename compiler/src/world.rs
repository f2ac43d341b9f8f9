//! What `compile` is given: one server's slice of the world, with every input already read. Nothing is looked up.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use cotter_core::{
    name::Issuer,
    report::{Report, Uses},
    snapshot::TrustedIssuer,
};
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::plan::Evidence;

/// Something that was read for us, or why it could not be.
pub type Resolved<T> = Result<T, Unresolved>;

/// Why something could not be read, in words for a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// It is not there, or lacks the key.
    #[error("{0}")]
    NotFound(String),
    /// It is there and is not what it has to be.
    #[error("{0}")]
    Malformed(String),
    /// It could not be fetched, and none is known from before.
    #[error("{0}")]
    Unreachable(String),
    /// It has not been fetched yet.
    #[error("{0}")]
    Pending(String),
}

/// The keys and values of a Secret or ConfigMap.
pub type Data = BTreeMap<String, String>;

/// What was charged to the budget of one delegation so far, and how often it was used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charged {
    /// Calls in all.
    pub calls: u64,
    /// Those of each run of a sidecar that may charge more, by its id.
    pub runs: BTreeMap<String, u64>,
    /// Uses over all sidecars that ever were; where that is not known, those that report now are summed up.
    pub uses: Option<Uses>,
}

/// What was charged, by the delegation's name. One that is not here was charged nothing.
pub type Ledger = BTreeMap<String, Charged>;

/// One server and everything that has to do with it.
#[derive(Debug, Clone)]
pub struct World {
    /// A cluster or a laptop.
    pub mode: Mode,
    /// The server. Its status is the previous one: it says since when things are so.
    pub server: McpServer,
    /// Every ToolPin of the namespace that names the server, in any order, with previous status.
    pub pins: Vec<ToolPin>,
    /// Every AgentDelegation of the namespace, in any order, with previous status: parents need not name the server.
    pub delegations: Vec<AgentDelegation>,
    /// Key sets, by the name of the issuer in `access.issuers`.
    pub keys: BTreeMap<String, Resolved<Value>>,
    /// The server's own policy modules, by the name of the ConfigMap.
    pub policies: BTreeMap<String, Resolved<Data>>,
    /// Policy modules for every server, by the name of the ConfigMap.
    pub cluster_policies: BTreeMap<String, Resolved<Data>>,
    /// What the live sidecars of this server report. A sidecar that is gone is not here.
    pub reports: Vec<Report>,
    /// How many pods of this server its Service leads to; `None` where that is not known, and on a laptop, which has no Service.
    pub ready_pods: Option<u32>,
    /// What was charged to the budgets of the namespace's delegations.
    pub charged: Ledger,
    /// The namespace's other servers, with what their own last compile saw: a delegation may name several.
    pub others: BTreeMap<String, Evidence>,
    /// The time of this pass. It decides conditions, and never anything in a snapshot but whether a delegation is
    /// longer than allowed.
    pub now: Timestamp,
}

/// Where the server runs.
#[derive(Debug, Clone)]
pub enum Mode {
    /// In pods of a cluster.
    Cluster(ClusterSettings),
    /// As a child process, or elsewhere, with an in-process sidecar on loopback.
    Local(LocalSettings),
}

impl Mode {
    /// How long a delegation may last.
    #[must_use]
    pub const fn longest_delegation(&self) -> SignedDuration {
        match self {
            Self::Cluster(settings) => settings.longest_delegation,
            Self::Local(_) => LONGEST_DELEGATION,
        }
    }
}

/// How long a delegation may last unless the operator is told otherwise: 90 days.
pub const LONGEST_DELEGATION: SignedDuration = SignedDuration::from_hours(90 * 24);

/// How the operator was installed.
#[derive(Debug, Clone)]
pub struct ClusterSettings {
    /// The operator's snapshot stream, as sidecars reach it.
    pub operator_url: String,
    /// The certificates that the operator's chain ends in, PEM.
    pub operator_ca_pem: String,
    /// The image with `cotter-proxy` and `cotter-shim`.
    pub sidecar_image: String,
    /// The cluster's DNS domain, usually `cluster.local`.
    pub cluster_domain: String,
    /// The issuer of this cluster's service-account tokens, or why it is not known.
    pub service_accounts: Resolved<ClusterIssuer>,
    /// How long a delegation may last.
    pub longest_delegation: SignedDuration,
}

/// The issuer of service-account tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterIssuer {
    /// What `iss` is.
    pub issuer: Issuer,
    /// Its public keys.
    pub jwks: Value,
}

/// What `cotter up` knows of its folder.
#[derive(Clone, Default)]
pub struct LocalSettings {
    /// The folder, as a person would write it on a command line.
    pub folder: String,
    /// The loopback port of the sidecar.
    pub port: u16,
    /// The folder's development issuer, accepted beside the manifest's own.
    pub dev_issuer: Option<TrustedIssuer>,
    /// Who stands for the cluster's issuer of service-account tokens here, for servers that accept them.
    pub service_accounts: Option<ClusterIssuer>,
    /// Where credentials for remote servers are put as files.
    pub state_dir: PathBuf,
    /// Secrets of the folder.
    pub secrets: BTreeMap<String, Data>,
    /// ConfigMaps of the folder.
    pub config_maps: BTreeMap<String, Data>,
}

impl fmt::Debug for LocalSettings {
    /// Without values of Secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSettings")
            .field("port", &self.port)
            .field("state_dir", &self.state_dir)
            .field("secrets", &self.secrets.keys())
            .field("config_maps", &self.config_maps.keys())
            .finish_non_exhaustive()
    }
}
