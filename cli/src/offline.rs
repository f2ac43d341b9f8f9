//! The snapshots that a folder's manifests come to, without starting anything.

use std::{collections::BTreeMap, path::Path};

use cotter_compiler::{compile, gate::Gate, guard::Guard};
use cotter_core::snapshot::Sealed;
use cotter_crds::{AgentDelegation, McpServer, ToolPin};
use jiff::Timestamp;

use crate::{
    CHECK_WORD,
    columns::Kind,
    failure::{Doing as _, Failure},
    folder::Folder,
    up::{
        inventory::Inventory,
        world::{self, Surroundings},
    },
};

/// One snapshot for each server of a folder.
///
/// # Errors
/// Any problem of any file: what is decided from half a folder would mislead.
pub(crate) fn snapshots(path: &Path, namespace: &str) -> Result<Vec<Sealed>, Failure> {
    let mut folder = Folder::in_namespace(namespace);
    folder.reload(path).doing(format!("read the folder {}", path.display()))?;
    let problems: Vec<String> = folder.problems().iter().map(|problem| problem.text()).collect();
    if !problems.is_empty() {
        return Err(Failure::cannot(problems.concat().trim_end().to_owned()));
    }
    let (now, manifests) = (Timestamp::now(), folder.objects());
    let mut inventory = Inventory::default();
    inventory.replace(&manifests, now);
    let (pins, delegations): (Vec<ToolPin>, Vec<AgentDelegation>) =
        (inventory.typed(Kind::ToolPin), inventory.typed(Kind::AgentDelegation));
    let surroundings = Surroundings {
        given: &path.display().to_string(),
        folder: path,
        state_dir: path,
        issuer: None,
        secrets: world::data(&manifests, "Secret"),
        config_maps: world::data(&manifests, "ConfigMap"),
        cluster_policies: world::cluster_policies(&manifests),
        pins: &pins,
        delegations: &delegations,
    };
    let servers: Vec<McpServer> = inventory.typed(Kind::McpServer);
    let gate = Gate::new(Guard::new(CHECK_WORD).doing("find this program")?);
    let sealed = servers.iter().map(|server| {
        let mut world = surroundings.world(server, 0, Vec::new(), BTreeMap::new(), now);
        gate.pass(&mut world);
        let plan = compile(&world);
        let name = server.metadata.name.clone().unwrap_or_default();
        let conditions = &plan.server_status.conditions;
        let why = conditions
            .iter()
            .filter(|condition| condition.status == "False")
            .map(|condition| condition.message.clone());
        let why = why.collect::<Vec<_>>().join("; ");
        plan.snapshot.ok_or_else(|| Failure::cannot(format!("the McpServer {name} cannot be used: {why}")))
    });
    sealed.collect()
}
