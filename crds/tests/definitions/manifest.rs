//! The manifests from which cases start.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value};

/// A manifest of `cases/full` by its file name.
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) object: Value,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// All manifests of `cases/full`, by name.
pub(crate) fn all() -> Vec<Manifest> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder().join("full")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| Manifest {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        object: serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap(),
    };
    paths.into_iter().map(read).collect()
}

/// RFC 7396: members are replaced or merged, `null` removes.
pub(crate) fn merge(target: &mut Value, change: &Value) {
    let Value::Object(members) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let object = target.as_object_mut().unwrap();
    for (name, value) in members {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// What stands in `said` and not, or otherwise, in `kept`, which may have more.
pub(crate) fn lost(said: &Value, kept: &Value, at: &str) -> Vec<String> {
    match (said, kept) {
        (Value::Object(said), Value::Object(kept)) => {
            let member = |(name, value): (&String, &Value)| {
                lost(value, kept.get(name).unwrap_or(&Value::Null), &format!("{at}.{name}"))
            };
            said.iter().flat_map(member).collect()
        }
        (Value::Array(said), Value::Array(kept)) if said.len() == kept.len() => {
            let elements = said.iter().zip(kept).enumerate();
            elements.flat_map(|(i, (said, kept))| lost(said, kept, &format!("{at}[{i}]"))).collect()
        }
        _ if said == kept => vec![],
        _ => vec![format!("{at}: {said} became {kept}")],
    }
}
