//! The first step of a pass: everything that one server's compile needs, from memory. No IO.

use std::collections::{BTreeMap, BTreeSet};

use cotter_compiler::world::{ClusterIssuer, ClusterSettings, Data, Mode, Resolved, Unresolved, World};
use cotter_core::{name::ServerRef, report::Report};
use cotter_crds::{McpServer, ToolPin, server::Issuer};
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    key::ServerKey,
    keys,
    objects::{self, Kind},
    operator::Operator,
};

/// What there is to compile.
pub enum Slice {
    /// The server does not exist, or is about to be gone.
    Gone,
    /// Something that it refers to was not looked at yet; its server is marked when it was.
    Waiting,
    /// All of it.
    World(Box<World>),
}

/// Gathers one server's slice.
pub fn dereference(operator: &Operator, key: &ServerKey) -> Slice {
    let server = operator.stores.servers.get(&key.object());
    let Some(server) = server.filter(|server| server.metadata.deletion_timestamp.is_none()) else { return Slice::Gone };
    let server = operator.statuses.freshest(server.as_ref());
    operator.objects.need(key, references(&server));
    operator.keys.need(key, key_sources(&server));
    let Some(policies) = policies(operator, &server) else { return Slice::Waiting };
    let Some(keys) = key_sets(operator, key, &server) else { return Slice::Waiting };
    let pins = operator.stores.pins_of(key).iter().map(|pin| operator.statuses.freshest(pin.as_ref())).collect();
    let delegations = operator.stores.delegations_in(&key.namespace);
    let delegations: Vec<_> = delegations.iter().map(|one| operator.statuses.freshest(one.as_ref())).collect();
    Slice::World(Box::new(World {
        mode: Mode::Cluster(settings(operator, key, &server)),
        pins: with_bad_pins(operator, key, pins),
        charged: operator.spending.charged(&key.namespace, &delegations),
        delegations,
        keys,
        policies,
        cluster_policies: cluster_policies(operator),
        reports: reports(operator, key),
        ready_pods: ready_pods(operator, key),
        others: operator.others(key),
        now: Timestamp::now(),
        server,
    }))
}

fn reports(operator: &Operator, key: &ServerKey) -> Vec<Report> {
    let (Ok(namespace), Ok(name)) = (key.namespace.parse(), key.name.parse()) else { return Vec::new() };
    let live = operator.fleet.live(&ServerRef { namespace, name });
    live.iter().map(|report| report.as_ref().clone()).collect()
}

fn ready_pods(operator: &Operator, key: &ServerKey) -> Option<u32> {
    let deployment = operator.stores.deployments.get(&key.object())?;
    let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
    u32::try_from(ready.unwrap_or_default()).ok()
}

fn settings(operator: &Operator, key: &ServerKey, server: &McpServer) -> ClusterSettings {
    let mut settings = operator.settings.clone();
    if server.spec.access.service_accounts.enabled {
        settings.service_accounts = cluster_issuer(operator).or_else(|why| operator.kept.cluster(key).ok_or(why));
    }
    settings
}

fn cluster_issuer(operator: &Operator) -> Resolved<ClusterIssuer> {
    let keys = operator.keys.get(&keys::Source::Cluster).unwrap_or_else(not_yet)?;
    let unnamed = || Unresolved::Malformed("the API server does not name its issuer".to_owned());
    let issuer = keys.issuer.ok_or_else(unnamed)?;
    let of_no_use = |error| Unresolved::Malformed(format!("the API server's issuer is of no use: {error}"));
    let issuer = issuer.parse().map_err(of_no_use)?;
    Ok(ClusterIssuer { issuer, jwks: keys.jwks })
}

/// In the moment between the first pass and the first answer.
fn not_yet<T>() -> Resolved<T> {
    Err(Unresolved::Pending("the keys have not been fetched yet".to_owned()))
}

fn policies(operator: &Operator, server: &McpServer) -> Option<BTreeMap<String, Resolved<Data>>> {
    let names = server.spec.policies.iter().map(|policy| policy.config_map_ref.name.as_str());
    names.map(|name| Some((name.to_owned(), operator.objects.get(&object(server, Kind::ConfigMap, name))?))).collect()
}

/// The policy modules of the whole cluster. A key that is not text holds no module that could be read, and must not pass for none.
fn cluster_policies(operator: &Operator) -> BTreeMap<String, Resolved<Data>> {
    let maps = operator.stores.policies.state().into_iter();
    maps.map(|map| {
        let not_text = map.binary_data.iter().flat_map(BTreeMap::keys).find(|key| key.ends_with(".rego"));
        let data = match not_text {
            Some(key) => Err(Unresolved::Malformed(format!(
                "the cluster-wide ConfigMap {} has {key} in binaryData: it is not UTF-8 text",
                map.name_any()
            ))),
            None => Ok(map.data.clone().unwrap_or_default()),
        };
        (map.name_any(), data)
    })
    .collect()
}

fn key_sets(operator: &Operator, key: &ServerKey, server: &McpServer) -> Option<BTreeMap<String, Resolved<Value>>> {
    let issuers = server.spec.access.issuers.iter();
    issuers.map(|issuer| Some((issuer.name.clone(), key_set(operator, key, server, issuer)?))).collect()
}

fn key_set(operator: &Operator, key: &ServerKey, server: &McpServer, issuer: &Issuer) -> Option<Resolved<Value>> {
    if let Some((source, reference)) = inline(server, issuer) {
        let place = format!("{:?} {}", source.kind, source.name);
        return Some(keys::inline(&place, &reference, operator.objects.get(&source)?));
    }
    let fetched = operator.keys.get(&fetched_from(issuer)).unwrap_or_else(not_yet);
    Some(fetched.map(|keys| keys.jwks).or_else(|why| operator.kept.keys(key, issuer).ok_or(why)))
}

/// The pins, and for each that cannot be read one that approves nothing: two pins for a server are a conflict, and with
/// none at all `pinning: Audit` would let everything through.
fn with_bad_pins(operator: &Operator, key: &ServerKey, mut pins: Vec<ToolPin>) -> Vec<ToolPin> {
    for name in operator.bad_pins.borrow().get(key).into_iter().flatten() {
        let known = pins.iter().any(|pin| pin.name_any() == *name);
        let spec = serde_json::from_value(json!({"serverRef": {"name": key.name}}));
        if let (false, Ok(spec)) = (known, spec) {
            let mut pin = ToolPin::new(name, spec);
            pin.metadata.namespace = Some(key.namespace.clone());
            pins.push(pin);
        }
    }
    pins
}

fn references(server: &McpServer) -> BTreeSet<objects::Source> {
    let policies = server.spec.policies.iter();
    let mut sources: BTreeSet<_> =
        policies.map(|policy| object(server, Kind::ConfigMap, &policy.config_map_ref.name)).collect();
    sources.extend(server.spec.access.issuers.iter().filter_map(|issuer| Some(inline(server, issuer)?.0)));
    sources
}

fn key_sources(server: &McpServer) -> BTreeSet<keys::Source> {
    let issuers = server.spec.access.issuers.iter().filter(|issuer| inline(server, issuer).is_none());
    let mut sources: BTreeSet<_> = issuers.map(fetched_from).collect();
    if server.spec.access.service_accounts.enabled {
        sources.insert(keys::Source::Cluster);
    }
    sources
}

fn fetched_from(issuer: &Issuer) -> keys::Source {
    let uri = issuer.jwks.as_ref().and_then(|jwks| jwks.uri.clone());
    uri.map_or_else(|| keys::Source::Discovery(issuer.issuer.clone()), keys::Source::Url)
}

/// The object and the key in it, where the manifest names one.
fn inline(server: &McpServer, issuer: &Issuer) -> Option<(objects::Source, String)> {
    let jwks = issuer.jwks.as_ref()?;
    match (&jwks.secret_ref, &jwks.config_map_ref) {
        (Some(secret), _) => Some((object(server, Kind::Secret, &secret.name), secret.key.clone())),
        (None, Some(map)) => Some((object(server, Kind::ConfigMap, &map.name), map.key.clone())),
        (None, None) => None,
    }
}

fn object(server: &McpServer, kind: Kind, name: &str) -> objects::Source {
    objects::Source { kind, namespace: server.namespace().unwrap_or_default(), name: name.to_owned() }
}
