//! The objects of the folder as a cluster would keep them: with generation, age and status.

use std::collections::{BTreeMap, btree_map::Entry};

use cotter_core::snapshot::Digest;
use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    columns::{self, Kind},
    folder::Manifest,
};

/// What tells two objects apart.
pub(crate) type Key = (Kind, String, String);

/// One object with what only a server of objects can add.
#[derive(Debug, Clone)]
struct Kept {
    value: Value,
    spec: Digest,
    generation: i64,
    created: Timestamp,
    status: Value,
}

/// All objects of the folder's own kinds.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    kept: BTreeMap<Key, Kept>,
}

impl Inventory {
    /// Takes over what the folder holds now. What is gone from the folder is gone here.
    pub(crate) fn replace(&mut self, manifests: &[&Manifest], now: Timestamp) {
        let mut kept = BTreeMap::new();
        for manifest in manifests {
            let Some(kind) = Kind::of(&manifest.value) else { continue };
            let key = (kind, namespace(&manifest.value), columns::name(&manifest.value).to_owned());
            let spec = Digest::of(manifest.value.get("spec").unwrap_or(&Value::Null).to_string().as_bytes());
            let old = self.kept.remove(&key);
            let generation =
                old.as_ref().map_or(1, |old| if old.spec == spec { old.generation } else { old.generation + 1 });
            let created = old.as_ref().map_or(now, |old| old.created);
            let status = old.map_or(Value::Null, |old| old.status);
            kept.insert(key, Kept { value: manifest.value.clone(), spec, generation, created, status });
        }
        self.kept = kept;
    }

    /// The objects of a kind in their types; one that does not fit its type is left out, since the check already told why.
    pub(crate) fn typed<T: DeserializeOwned>(&self, kind: Kind) -> Vec<T> {
        let ours = self.kept.iter().filter(|((found, ..), _)| *found == kind);
        ours.filter_map(|(key, kept)| {
            let read = serde_json::from_value(kept.full(key));
            read.inspect_err(
                |error| tracing::warn!(kind = kind.name(), name = key.2, %error, "failed to read an object"),
            )
            .ok()
        })
        .collect()
    }

    /// Takes over a status.
    pub(crate) fn set_status(&mut self, key: &Key, status: &impl Serialize) {
        if let (Entry::Occupied(mut kept), Ok(status)) = (self.kept.entry(key.clone()), serde_json::to_value(status)) {
            kept.get_mut().status = status;
        }
    }

    /// Every object with its status, by kind and name.
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.kept.iter().map(|(key, kept)| kept.full(key)).collect()
    }
}

impl Kept {
    fn full(&self, (kind, namespace, name): &Key) -> Value {
        let mut value = self.value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("creationTimestamp".to_owned(), json!(second(self.created)));
            metadata.insert("generation".to_owned(), json!(self.generation));
            metadata.insert("uid".to_owned(), json!(uid(&format!("{}/{namespace}/{name}", kind.name()))));
        }
        if let (Some(object), false) = (value.as_object_mut(), self.status.is_null()) {
            object.insert("status".to_owned(), self.status.clone());
        }
        value
    }
}

/// Times of the Kubernetes API have whole seconds.
fn second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The same object has the same uid in every run, in the form of a UUID.
fn uid(text: &str) -> String {
    let hex = Digest::of(text.as_bytes()).to_string();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    [part(7, 15), part(15, 19), part(19, 23), part(23, 27), part(27, 39)].join("-")
}

/// An object's namespace, as the folder filled it in.
pub(crate) fn namespace(object: &Value) -> String {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default").to_owned()
}
