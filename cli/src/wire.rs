//! What `up` and the other commands tell each other over the socket.

use cotter_core::{catalogue::ToolState, drift::Class, effect::Effect};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One server, as its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Server {
    /// Its name.
    pub(crate) name: String,
    /// Its namespace, where the manifest says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    /// Where clients go.
    pub(crate) endpoint: String,
    /// What tokens have to be minted for.
    pub(crate) audience: String,
    /// A tenant that may be here, for examples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    /// Why what its manifests say now is not in force, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_back: Option<String>,
    /// Its tools, as its sidecar has them; none while nothing is in force.
    pub(crate) tools: Vec<Tool>,
}

/// One declared tool, as its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tool {
    /// Its name.
    pub(crate) name: String,
    /// The scope that it demands.
    pub(crate) scope: String,
    /// Its effect.
    pub(crate) effect: Effect,
    /// Whether it may be listed and called at this moment, policy aside.
    pub(crate) callable: bool,
    /// How it stands to what was approved; absent while the server was not read.
    pub(crate) state: Option<ToolState>,
    /// The class of the difference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<Class>,
}

/// The objects of the folder as `kubectl get -o json` would show them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Objects {
    /// Every object with its status.
    pub(crate) items: Vec<Value>,
}

/// Who runs here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Its process.
    pub(crate) pid: u32,
}
