//! Whether what exists already says what is wanted, so that a pass that changes nothing writes nothing.

use cotter_core::snapshot::Digest;
use serde::Serialize;
use serde_json::Value;

/// The digest of what was last applied. With it a member that is no longer wanted is noticed: it is still there, and
/// nothing else would say that it was ours.
pub const APPLIED: &str = "cotter.dev/applied";

/// An object as it is applied: with its own digest as annotation.
///
/// # Errors
/// An object that JSON cannot hold.
pub fn stamped<K: Serialize>(wanted: &K) -> Result<(Value, String), serde_json::Error> {
    let mut wanted = serde_json::to_value(wanted)?;
    prune(&mut wanted);
    let digest = Digest::of(&serde_json::to_vec(&wanted)?).to_string();
    if let Some(annotations) = member(&mut wanted, "metadata").and_then(|metadata| member(metadata, "annotations")) {
        annotations.insert(APPLIED.to_owned(), Value::String(digest.clone()));
    }
    Ok((wanted, digest))
}

/// The member, an object; made where it is absent.
fn member<'a, P: Parent + ?Sized>(parent: &'a mut P, name: &str) -> Option<&'a mut serde_json::Map<String, Value>> {
    let value = parent.members()?.entry(name).or_insert_with(|| Value::Object(serde_json::Map::new()));
    value.as_object_mut()
}

trait Parent {
    fn members(&mut self) -> Option<&mut serde_json::Map<String, Value>>;
}

impl Parent for Value {
    fn members(&mut self) -> Option<&mut serde_json::Map<String, Value>> {
        self.as_object_mut()
    }
}

impl Parent for serde_json::Map<String, Value> {
    fn members(&mut self) -> Option<&mut serde_json::Map<String, Value>> {
        Some(self)
    }
}

/// Whether everything in `wanted` is in `live`. What only `live` has (defaults, status, what others own) does not
/// count; a list has to have exactly the wanted items, since defaulting never adds one.
#[must_use]
pub fn covers(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted.iter().all(|(name, value)| live.get(name).is_some_and(|live| covers(value, live)))
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len() && wanted.iter().zip(live).all(|(wanted, live)| covers(wanted, live))
        }
        _ => wanted == live,
    }
}

/// Takes `null` and empty objects out: the API server does not keep them, and applying them says nothing.
fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(prune);
            members.retain(|_, member| !member.is_null());
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_added_does_not_count_and_what_they_changed_does() {
        let wanted = json!({"spec": {"replicas": 1, "containers": [{"name": "a", "image": "x"}]}});
        let live = json!({"spec": {"replicas": 1, "strategy": "default",
            "containers": [{"name": "a", "image": "x", "imagePullPolicy": "Always"}]}, "status": {"ready": 1}});
        assert!(covers(&wanted, &live));
        for change in [
            json!({"spec": {"replicas": 2}}),
            json!({"spec": {"containers": [{"name": "a", "image": "y"}]}}),
            json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}}),
            json!({"spec": {"containers": []}}),
            json!({"spec": null}),
        ] {
            let mut changed = live.clone();
            for (name, value) in change["spec"].as_object().into_iter().flatten() {
                changed["spec"][name] = value.clone();
            }
            if change["spec"].is_null() {
                changed["spec"] = Value::Null;
            }
            assert!(!covers(&wanted, &changed), "{changed}");
        }
    }

    #[test]
    fn the_stamp_follows_the_content_and_nothing_else() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"x": 1, "y": null}});
        let (stamped_object, digest) = stamped(&object).unwrap();
        assert_eq!(stamped_object["metadata"]["annotations"][APPLIED], digest);
        assert_eq!(stamped_object["spec"], json!({"x": 1}));
        assert_eq!(stamped(&json!({"metadata": {"name": "a"}, "spec": {"x": 1}})).unwrap().1, digest);
        assert_ne!(stamped(&json!({"metadata": {"name": "a"}, "spec": {"x": 2}})).unwrap().1, digest);
    }
}
