//! One server's slice of the world, from the files of the folder.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cotter_compiler::{
    modules::{LABEL_POLICY, POLICY_CLUSTER},
    plan::Evidence,
    world::{Data, LocalSettings, Mode, Resolved, Unresolved, World},
};
use cotter_core::{report::Report, snapshot::TrustedIssuer};
use cotter_crds::{AgentDelegation, McpServer, ToolPin, server::Issuer};
use jiff::Timestamp;
use serde_json::Value;

use super::{inventory::namespace, program};
use crate::{columns, folder::Manifest, issuer};

const NOT_FETCHED: &str =
    "`cotter up` does not fetch keys: name them by jwks.configMapRef, or use the development issuer";

/// What the folder has beside the objects of its own kinds, and how it runs.
pub(crate) struct Surroundings<'a> {
    /// The folder as the person wrote it.
    pub(crate) given: &'a str,
    /// Where it is.
    pub(crate) folder: &'a Path,
    /// Where credentials for remote servers are put.
    pub(crate) state_dir: &'a Path,
    /// The development issuer, where tokens of it are accepted.
    pub(crate) issuer: Option<&'a TrustedIssuer>,
    /// Secrets, by namespace and name.
    pub(crate) secrets: BTreeMap<(String, String), Data>,
    /// ConfigMaps, by namespace and name.
    pub(crate) config_maps: BTreeMap<(String, String), Data>,
    /// Policy modules for every server of the folder, by the name of the ConfigMap.
    pub(crate) cluster_policies: BTreeMap<String, Resolved<Data>>,
    /// All pins of the folder.
    pub(crate) pins: &'a [ToolPin],
    /// All delegations of the folder.
    pub(crate) delegations: &'a [AgentDelegation],
}

/// Secrets and ConfigMaps of the folder.
pub(crate) fn data(manifests: &[&Manifest], kind: &str) -> BTreeMap<(String, String), Data> {
    let wanted = manifests.iter().map(|manifest| &manifest.value);
    let wanted = wanted.filter(|value| value.get("kind").and_then(Value::as_str) == Some(kind));
    wanted.map(|value| ((namespace(value), columns::name(value).to_owned()), values(value))).collect()
}

/// ConfigMaps of the folder whose policy modules are for every server of it, whatever its namespace.
pub(crate) fn cluster_policies(manifests: &[&Manifest]) -> BTreeMap<String, Resolved<Data>> {
    let is_wide = |value: &&Value| {
        let label = value.pointer("/metadata/labels").and_then(|labels| labels.get(LABEL_POLICY));
        value.get("kind").and_then(Value::as_str) == Some("ConfigMap")
            && label.and_then(Value::as_str) == Some(POLICY_CLUSTER)
    };
    let mut policies = BTreeMap::new();
    for value in manifests.iter().map(|manifest| &manifest.value).filter(is_wide) {
        let name = columns::name(value).to_owned();
        let twice = || {
            let text = format!(
                "two ConfigMaps {name} are labelled {LABEL_POLICY}: {POLICY_CLUSTER}, in two namespaces: in a cluster only those in the operator's own count"
            );
            Unresolved::Malformed(text)
        };
        match policies.entry(name.clone()) {
            Entry::Vacant(free) => drop(free.insert(Ok(values(value)))),
            Entry::Occupied(mut taken) => drop(taken.insert(Err(twice()))),
        }
    }
    policies
}

fn values(object: &Value) -> Data {
    let member = |name: &str| object.get(name).and_then(Value::as_object).into_iter().flatten();
    let text = |(key, value): (&String, &Value)| value.as_str().map(|text| (key.clone(), text.to_owned()));
    let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
    let decode = |(key, text): (String, String)| {
        let bytes = STANDARD.decode(text.trim()).ok()?;
        String::from_utf8(bytes).ok().map(|text| (key, text))
    };
    let plain = member("data").filter_map(text);
    let mut data: Data = if is_secret { plain.filter_map(decode).collect() } else { plain.collect() };
    data.extend(member("stringData").filter_map(text));
    data
}

impl Surroundings<'_> {
    /// The world of one server.
    pub(crate) fn world(
        &self,
        server: &McpServer,
        port: u16,
        reports: Vec<Report>,
        others: BTreeMap<String, Evidence>,
        now: Timestamp,
    ) -> World {
        let own = |namespace: &Option<String>| namespace.as_deref() == server.metadata.namespace.as_deref();
        let name = server.metadata.name.clone().unwrap_or_default();
        let pins = self.pins.iter().filter(|pin| own(&pin.metadata.namespace) && pin.spec.server_ref.name == name);
        let delegations = self.delegations.iter().filter(|delegation| own(&delegation.metadata.namespace));
        let namespace = server.metadata.namespace.clone().unwrap_or_default();
        let settings = LocalSettings {
            port,
            dev_issuer: self.issuer.cloned(),
            service_accounts: self.issuer.and_then(issuer::service_accounts),
            folder: self.given.to_owned(),
            state_dir: self.state_dir.to_path_buf(),
            secrets: within(&self.secrets, &namespace),
            config_maps: within(&self.config_maps, &namespace),
        };
        World {
            keys: self.keys(server, &settings),
            policies: policies(server, &settings),
            cluster_policies: self.cluster_policies.clone(),
            server: self.with_program(server.clone()),
            mode: Mode::Local(settings),
            pins: pins.cloned().collect(),
            delegations: delegations.cloned().collect(),
            reports,
            charged: BTreeMap::new(),
            ready_pods: None,
            others,
            now,
        }
    }

    /// The manifest with its command as a path, where it is found; where it is not, starting it says so.
    fn with_program(&self, mut server: McpServer) -> McpServer {
        let container = server.spec.upstream.container.as_mut();
        if let Some(command) = container.and_then(|container| container.command.first_mut())
            && let Some(path) = program::find(command, self.folder)
        {
            *command = path.to_string_lossy().into_owned();
        }
        server
    }

    fn keys(&self, server: &McpServer, settings: &LocalSettings) -> BTreeMap<String, Resolved<Value>> {
        let issuers = server.spec.access.issuers.iter();
        issuers.map(|issuer| (issuer.name.clone(), key_set(issuer, settings))).collect()
    }
}

fn within(all: &BTreeMap<(String, String), Data>, namespace: &str) -> BTreeMap<String, Data> {
    let ours = all.iter().filter(|((found, _), _)| found == namespace);
    ours.map(|((_, name), data)| (name.clone(), data.clone())).collect()
}

fn key_set(issuer: &Issuer, settings: &LocalSettings) -> Resolved<Value> {
    let source = issuer.jwks.as_ref();
    let (kind, wanted, held) = match (
        source.and_then(|jwks| jwks.secret_ref.as_ref()),
        source.and_then(|jwks| jwks.config_map_ref.as_ref()),
    ) {
        (Some(wanted), _) => ("Secret", wanted, settings.secrets.get(&wanted.name)),
        (None, Some(wanted)) => ("ConfigMap", wanted, settings.config_maps.get(&wanted.name)),
        (None, None) => return Err(Unresolved::NotFound(NOT_FETCHED.to_owned())),
    };
    let text = held.and_then(|data| data.get(&wanted.key));
    let text = text.ok_or_else(|| {
        let text = format!("there is no {kind} {} with the key {} in this folder", wanted.name, wanted.key);
        Unresolved::NotFound(text)
    })?;
    serde_json::from_str(text).map_err(|error| {
        let text = format!("{kind} {} key {} is not JSON: {error}", wanted.name, wanted.key);
        Unresolved::Malformed(text)
    })
}

fn policies(server: &McpServer, settings: &LocalSettings) -> BTreeMap<String, Resolved<Data>> {
    let names = server.spec.policies.iter().map(|policy| policy.config_map_ref.name.clone());
    let held = |name: String| {
        let data = settings.config_maps.get(&name).cloned();
        let data = data.ok_or_else(|| Unresolved::NotFound(format!("there is no ConfigMap {name} in this folder")));
        (name, data)
    };
    names.map(held).collect()
}
