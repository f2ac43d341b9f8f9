//! The strings of an observed definition that nobody approved where they stand.

use serde_json::Value;

use super::keyword::is_dialect;
use crate::pointer::join;

/// Strings, and names of members, that the approved definition does not have at the same place.
pub(super) fn strings<'o>(approved: &Value, observed: &'o Value) -> Vec<(String, &'o str)> {
    let mut fresh = Vec::new();
    collect(Some(approved), observed, "", &mut fresh);
    fresh
}

fn collect<'o>(approved: Option<&Value>, observed: &'o Value, path: &str, fresh: &mut Vec<(String, &'o str)>) {
    if approved == Some(observed) {
        return;
    }
    match observed {
        Value::String(text) => fresh.push((path.to_owned(), text)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let known = approved.and_then(Value::as_array).and_then(|known| known.get(index));
                collect(known, item, &join(path, &index.to_string()), fresh);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let known = approved.and_then(Value::as_object).and_then(|known| known.get(name));
                let path = join(path, name);
                if known.is_none() {
                    fresh.push((path.clone(), name));
                }
                collect(known, member, &path, fresh);
            }
        }
        _ => {}
    }
}

/// Whether a string is a `$schema` that names no known dialect. The effective form leaves `$schema` out because it only
/// names a dialect; one that does not is text that a model is shown with the rest of the schema.
pub(super) fn is_strange_dialect(pointer: &str, text: &str) -> bool {
    pointer.ends_with("/$schema") && text != "$schema" && !is_dialect(text)
}
