//! The snapshot of one server: everything that its sidecars enforce, from parsed resources and resolved inputs.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    grant::Grant,
    snapshot::{Access, Pin, Protocol, Snapshot, TrustedIssuer, Upstream, VERSION},
};

use crate::{
    keys,
    modules::Modules,
    server::Server,
    world::{ClusterIssuer, Mode, Resolved, Unresolved},
};

/// Issuers with keys, and what is wrong with the keys of some.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keyring {
    pub(crate) issuers: Vec<TrustedIssuer>,
    /// The issuers without usable keys, by name.
    pub(crate) problems: Vec<(String, Unresolved)>,
}

/// Everything that a snapshot is made of beside the server itself.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) upstream: Upstream,
    pub(crate) issuers: Vec<TrustedIssuer>,
    pub(crate) pin: Option<Pin>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) policies: Modules,
}

/// Builds the snapshot. Total: whatever could be wrong was found before.
pub(crate) fn build(server: &Server, mode: &Mode, parts: Parts) -> Snapshot {
    let Parts { upstream, issuers, pin, mut grants, policies } = parts;
    grants.sort_by(|a, b| a.name.cmp(&b.name));
    let access = &server.access;
    Snapshot {
        version: VERSION.to_owned(),
        server: server.id.clone(),
        labels: server.labels.clone(),
        generation: server.generation,
        upstream,
        protocol: Protocol { revisions: server.revisions.clone() },
        access: Access {
            audience: server.audience.clone(),
            public_url: access.public_url.as_ref().map(|(url, _)| url.clone()),
            hosts: hosts(server, mode),
            origins: access.origins.clone(),
            issuers,
            tenants: access.tenants.clone(),
            insufficient_scope: access.insufficient_scope,
            advertised_scopes: access.advertised_scopes.clone(),
        },
        tools: server.tools.clone(),
        pinning: server.pinning,
        pin,
        grants,
        policies: policies.0,
        limits: server.limits,
        verify: server.verify,
        stale: server.stale,
    }
}

/// The hosts that are accepted beside loopback: the declared ones, that of the public URL, and the Service's names.
fn hosts(server: &Server, mode: &Mode) -> BTreeSet<String> {
    let mut hosts = server.access.hosts.clone();
    hosts.extend(server.access.public_url.iter().map(|(_, host)| host.clone()));
    if let Mode::Cluster(settings) = mode {
        let (name, namespace) = (&server.id.name, &server.id.namespace);
        hosts.extend([
            name.to_string(),
            format!("{name}.{namespace}"),
            format!("{name}.{namespace}.svc"),
            format!("{name}.{namespace}.svc.{}", settings.cluster_domain),
        ]);
    }
    hosts
}

/// The issuers of a server, in the order of their names. One without keys is there all the same, with none: its tokens
/// are refused for want of a key, and the condition says why.
pub(crate) fn keyring(
    server: &Server,
    mode: &Mode,
    resolved: &BTreeMap<String, Resolved<serde_json::Value>>,
) -> Keyring {
    let mut ring = Keyring::default();
    for (name, declared) in &server.access.issuers {
        let found = match resolved.get(name) {
            Some(Ok(jwks)) => keys::usable(jwks).map_err(malformed),
            Some(Err(why)) => Err(why.clone()),
            None => Err(Unresolved::Pending("the keys have not been fetched yet".to_owned())),
        };
        let jwks = ring.note(name, found);
        let (issuer, claims) = (declared.issuer.clone(), declared.claims.clone());
        ring.issuers.push(TrustedIssuer { name: name.clone(), issuer, jwks, claims, service_accounts: None });
    }
    match mode {
        Mode::Cluster(settings) => ring.add_service_accounts(server, &settings.service_accounts),
        Mode::Local(folder) => {
            if let Some(accounts) = folder.service_accounts.clone() {
                ring.add_service_accounts(server, &Ok(accounts));
            }
            ring.issuers.extend(folder.dev_issuer.clone());
        }
    }
    ring
}

/// The name of the cluster's own issuer in a snapshot. No manifest can use it: names there are DNS labels.
const SERVICE_ACCOUNTS: &str = "cluster.serviceaccounts";

impl Keyring {
    fn note(&mut self, name: &str, found: Resolved<(serde_json::Value, usize)>) -> serde_json::Value {
        match found {
            Ok((jwks, _)) => jwks,
            Err(why) => {
                self.problems.push((name.to_owned(), why));
                keys::none()
            }
        }
    }

    fn add_service_accounts(&mut self, server: &Server, cluster: &Resolved<ClusterIssuer>) {
        let Some(accounts) = &server.access.service_accounts else { return };
        let cluster = match cluster {
            Ok(cluster) => cluster,
            Err(why) => {
                self.problems.push(("serviceAccounts".to_owned(), why.clone()));
                return;
            }
        };
        // One issuer has one entry: a second would leave it to chance which of them reads a token.
        let twice: Vec<TrustedIssuer> = self.issuers.extract_if(.., |known| known.issuer == cluster.issuer).collect();
        for known in twice {
            let why =
                "is the issuer of this cluster's service accounts, which serviceAccounts already accepts: leave it out";
            self.problems.push((known.name, Unresolved::Malformed(why.to_owned())));
        }
        let jwks = self.note("serviceAccounts", keys::usable(&cluster.jwks).map_err(malformed));
        let (name, issuer) = (SERVICE_ACCOUNTS.to_owned(), cluster.issuer.clone());
        let service_accounts = Some(accounts.clone());
        self.issuers.push(TrustedIssuer { name, issuer, jwks, claims: Default::default(), service_accounts });
    }
}

fn malformed(why: String) -> Unresolved {
    Unresolved::Malformed(format!("the key set {why}"))
}
