//! The policy modules of one server: its own, from the ConfigMaps that it names, and those of the whole cluster.
//!
//! In a snapshot a module is called after its ConfigMap and key: `NAME/KEY`, and `cluster/NAME/KEY` where it is everybody's. Neither part
//! of a name has a slash, so that no module of a server can take the place of a cluster-wide one.

use std::collections::BTreeMap;

use cotter_policies::check::{CLUSTER_WIDE, Findings, is_cluster_wide};

use crate::{
    server::Server,
    verdict::count,
    world::{Data, Resolved, Unresolved, World},
};

/// The label of a ConfigMap whose modules are everybody's, and its value.
pub const LABEL_POLICY: &str = "cotter.dev/policy";
/// See [`LABEL_POLICY`].
pub const POLICY_CLUSTER: &str = "cluster";

/// The ending of the keys that are policy modules.
const REGO: &str = ".rego";

/// The modules of one server, by the names that they have in its snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Modules(pub(crate) BTreeMap<String, String>);

impl Modules {
    /// How many there are, in words, and how many of them are everybody's.
    pub(crate) fn told(&self) -> String {
        let wide = self.0.keys().filter(|name| is_cluster_wide(name)).count();
        match (self.0.len(), wide) {
            (0, _) => "no module of its own".to_owned(),
            (all, 0) => count(all, "module"),
            (all, wide) if all == wide => format!("{}, cluster-wide", count(all, "module")),
            (all, wide) => format!("{}, {wide} of them cluster-wide", count(all, "module")),
        }
    }
}

/// The modules that a server is to enforce.
///
/// # Errors
/// What could not be read, the cluster's first: then none is used, and what was in force stays.
pub(crate) fn of(server: &Server, world: &World) -> Resolved<Modules> {
    let mut modules = BTreeMap::new();
    for (name, data) in &world.cluster_policies {
        add(&mut modules, CLUSTER_WIDE, name, data.as_ref().map_err(Clone::clone)?)?;
    }
    for name in &server.policies {
        match world.policies.get(name) {
            Some(Ok(data)) => add(&mut modules, "", name, data)?,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(Unresolved::Pending(format!("the ConfigMap {name} has not been read yet"))),
        }
    }
    Ok(Modules(modules))
}

fn add(modules: &mut BTreeMap<String, String>, place: &str, name: &str, data: &Data) -> Resolved<()> {
    let found: Vec<_> = rego(place, name, data).collect();
    let words = if place.is_empty() { "the ConfigMap" } else { "the cluster-wide ConfigMap" };
    if found.is_empty() {
        return Err(Unresolved::NotFound(format!(
            "{words} {name} has no key that ends in {REGO}: name the module so, such as policy.rego"
        )));
    }
    // The API server lets no slash into either; a folder on a laptop has not been through it.
    if name.contains('/') || data.keys().any(|key| key.contains('/')) {
        return Err(Unresolved::Malformed(format!("{words} {name} has a name or a key with a slash: leave it out")));
    }
    modules.extend(found.into_iter().map(|(name, text)| (name, text.to_owned())));
    Ok(())
}

fn rego<'d>(place: &str, name: &str, data: &'d Data) -> impl Iterator<Item = (String, &'d str)> + use<'d> {
    let prefix = prefix(place, name);
    let keys = data.iter().filter(|(key, _)| key.ends_with(REGO));
    keys.map(move |(key, text)| (format!("{prefix}{key}"), text.as_str()))
}

fn prefix(place: &str, name: &str) -> String {
    format!("{place}{name}/")
}

/// Every module of a world that could be read, whether its server can be used or not. They stay where they lie: what is too large is not
/// copied.
pub(crate) fn texts(world: &World) -> impl Iterator<Item = (String, &str)> {
    let places = [(CLUSTER_WIDE, &world.cluster_policies), ("", &world.policies)];
    let read = places.into_iter().flat_map(|(place, policies)| {
        policies.iter().filter_map(move |(name, data)| Some((place, name, data.as_ref().ok()?)))
    });
    read.flat_map(|(place, name, data)| rego(place, name, data))
}

/// Puts the findings in the place of the ConfigMaps that they are about.
pub(crate) fn refuse(world: &mut World, findings: &Findings) {
    for (place, policies) in [(CLUSTER_WIDE, &mut world.cluster_policies), ("", &mut world.policies)] {
        for (name, policy) in policies {
            let prefix = prefix(place, name);
            let is_own = |file: &str| file.strip_prefix(&prefix).is_some_and(|key| !key.contains('/'));
            let own = findings.0.iter().filter(|finding| is_own(&finding.file));
            let own: Vec<String> = own.map(ToString::to_string).collect();
            if !own.is_empty() {
                *policy = Err(Unresolved::Malformed(own.join("\n")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cotter_crds::McpServer;
    use cotter_policies::check::Finding;

    use super::*;
    use crate::world::{LocalSettings, Mode};

    fn world() -> World {
        let spec = serde_json::json!({"audience": "a", "upstream": {}});
        let data = |key: &str| Ok(Data::from([(key.to_owned(), "package cotter.user.x\n".to_owned())]));
        World {
            mode: Mode::Local(LocalSettings::default()),
            server: McpServer::new("support", serde_json::from_value(spec).unwrap()),
            pins: Vec::new(),
            delegations: Vec::new(),
            keys: BTreeMap::new(),
            policies: BTreeMap::from([("cluster".to_owned(), data("a.rego")), ("org".to_owned(), data("a.rego"))]),
            cluster_policies: BTreeMap::from([("org".to_owned(), data("a.rego")), ("b".to_owned(), data("a.rego"))]),
            reports: Vec::new(),
            ready_pods: None,
            charged: BTreeMap::new(),
            others: BTreeMap::new(),
            now: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    fn names(world: &World) -> Vec<String> {
        let names: BTreeMap<String, &str> = texts(world).collect();
        names.into_keys().collect()
    }

    #[test]
    fn a_finding_takes_out_the_config_map_that_it_is_about_and_no_other() {
        assert_eq!(names(&world()), ["cluster/a.rego", "cluster/b/a.rego", "cluster/org/a.rego", "org/a.rego"]);
        for (file, left) in [
            ("cluster/a.rego", ["cluster/b/a.rego", "cluster/org/a.rego", "org/a.rego"]),
            ("cluster/org/a.rego", ["cluster/a.rego", "cluster/b/a.rego", "org/a.rego"]),
            ("org/a.rego", ["cluster/a.rego", "cluster/b/a.rego", "cluster/org/a.rego"]),
        ] {
            let text = |text: &str| text.to_owned();
            let finding =
                Finding { file: text(file), line: 1, column: 1, message: text("m"), help: text("h"), source: text("") };
            let mut world = world();
            refuse(&mut world, &Findings(vec![finding]));
            assert_eq!(names(&world), left, "{file}");
        }
    }
}
