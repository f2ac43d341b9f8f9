//! An McpServer that was parsed: nothing in it can be malformed any more.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    decision::Approval,
    name::{Audience, Issuer, Scope, ServerRef, ToolName},
    snapshot::{
        ClaimNames, Enforcement, InsufficientScope, Limits, ServiceAccounts, Sessions, Stale, ToolRule, Verify,
    },
};
use cotter_crds::server::{PodTemplate, Sidecar};
use k8s_openapi::api::core::v1::{
    Affinity, EnvFromSource, EnvVar, ResourceRequirements, TopologySpreadConstraint, Volume, VolumeMount,
};

/// A server whose every field was parsed.
#[derive(Debug, Clone)]
pub struct Server {
    /// Namespace and name.
    pub id: ServerRef,
    /// `metadata.uid`; absent on a laptop.
    pub uid: Option<String>,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.labels`, for policy.
    pub labels: BTreeMap<String, String>,
    /// What tokens are minted for.
    pub audience: Audience,
    /// How it is reached.
    pub upstream: Upstream,
    /// Revisions that clients may speak.
    pub revisions: BTreeSet<String>,
    /// Who may call.
    pub access: Access,
    /// The declared tools.
    pub tools: BTreeMap<ToolName, ToolRule>,
    /// What to do with tools where there is no pin.
    pub pinning: Enforcement,
    /// ConfigMaps with policy modules.
    pub policies: BTreeSet<String>,
    /// Bounds.
    pub limits: Limits,
    /// How the catalogue is re-read.
    pub verify: Verify,
    /// What happens without contact.
    pub stale: Stale,
    /// How many pods.
    pub replicas: i32,
    /// The sidecar's own container.
    pub sidecar: Sidecar,
    /// What the pods get beside, as written; affinity and spread were parsed.
    pub pod_template: PodTemplate,
    /// Where pods go and do not go.
    pub affinity: Option<Affinity>,
    /// How pods spread.
    pub spread: Vec<TopologySpreadConstraint>,
    /// What is declared and not done by this version.
    pub unsupported: Vec<String>,
}

/// Names that a remark lists; the rest is counted.
const NAMED: usize = 5;

impl Server {
    /// What its owner should know although nothing is wrong, one sentence each.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let named = |wanted: &dyn Fn(&ToolRule) -> bool| {
            let names: Vec<&str> =
                self.tools.iter().filter(|(_, rule)| wanted(rule)).map(|(name, _)| name.as_str()).collect();
            let more = names.len().saturating_sub(NAMED);
            let listed = names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
            if more == 0 { listed } else { format!("{listed} and {more} more") }
        };
        let waits = named(&|rule| rule.approval == Approval::Always);
        let repeats = named(&|rule| rule.effect.is_consequential() && rule.idempotency_key.is_none());
        let mut remarks = Vec::new();
        if !self.unsupported.is_empty() {
            remarks.push(format!("This version does nothing with {}.", self.unsupported.join(", ")));
        }
        if let Upstream::Container(container) = &self.upstream
            && let Transport::Http { port, .. } = container.transport
        {
            remarks.push(format!(
                "The server listens on port {port} itself: whoever reaches that port goes past the sidecar."
            ));
        }
        if !waits.is_empty() {
            remarks
                .push(format!("Calls of {waits} wait for a person, which this version cannot ask: they are refused."));
        }
        if !repeats.is_empty() {
            remarks.push(format!("A repeated call of {repeats} cannot be recognised: declare an idempotencyKey."));
        }
        remarks
    }
}

/// How the server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Upstream {
    /// Run by Cotter.
    Container(Box<Container>),
    /// Elsewhere.
    Remote(Remote),
}

/// A server that Cotter runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// The image.
    pub image: String,
    /// The program; empty where the image's entrypoint is meant.
    pub command: Vec<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables.
    pub env: Vec<EnvVar>,
    /// Sources of variables.
    pub env_from: Vec<EnvFromSource>,
    /// CPU and memory.
    pub resources: Option<ResourceRequirements>,
    /// Volumes of the pod.
    pub volumes: Vec<Volume>,
    /// Where they are mounted.
    pub volume_mounts: Vec<VolumeMount>,
    /// How it speaks.
    pub transport: Transport,
}

/// How a server that Cotter runs speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Over stdin and stdout.
    Stdio(Sessions),
    /// Over Streamable HTTP on a port of its own.
    Http {
        /// The port.
        port: u16,
        /// The path of the endpoint.
        path: String,
    },
}

/// A server that is elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its endpoint.
    pub url: String,
    /// What is presented to it.
    pub credentials: Option<Credentials>,
    /// The Secret and key with the only authorities to trust.
    pub ca: Option<KeyOf>,
}

/// What is presented to a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Where the secret is.
    pub secret: KeyOf,
    /// The header that carries it.
    pub header: String,
    /// What stands before it.
    pub prefix: String,
}

/// One key of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOf {
    /// The Secret.
    pub name: String,
    /// The key.
    pub key: String,
}

/// Who may call.
#[derive(Debug, Clone)]
pub struct Access {
    /// The URL that clients use, and its host with the port if one is written.
    pub public_url: Option<(String, String)>,
    /// Further accepted hosts.
    pub hosts: BTreeSet<String>,
    /// Accepted origins.
    pub origins: BTreeSet<String>,
    /// Who may mint tokens, by name.
    pub issuers: BTreeMap<String, DeclaredIssuer>,
    /// Set where service accounts of this cluster are accepted.
    pub service_accounts: Option<ServiceAccounts>,
    /// Admitted tenants.
    pub tenants: BTreeSet<String>,
    /// What a caller without scope is told.
    pub insufficient_scope: InsufficientScope,
    /// Scopes that challenges name.
    pub advertised_scopes: Vec<Scope>,
}

/// Somebody who may mint tokens; the keys come separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredIssuer {
    /// What `iss` has to be.
    pub issuer: Issuer,
    /// Which claims hold what.
    pub claims: ClaimNames,
}
