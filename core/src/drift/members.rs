//! The members of a tool, each with its row of the table.

use serde_json::{Map, Value};

use super::bound::Changes;
use super::schema::{self, Side};
use super::{Class, Why};
use crate::pointer::join;

/// The changes between two effective forms.
pub(super) fn changes(before: &Value, after: &Value, changes: &mut Changes) {
    each(before, after, |name, before, after| member(name, before, after, changes));
}

fn member(name: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Changes) {
    let pointer = join("", name);
    match name {
        "description" | "title" if texts(before, after) => prose(pointer, name, changes),
        "icons" if arrays(before, after) => prose(pointer, name, changes),
        "annotations" if objects(before, after) => annotations(before, after, changes),
        "inputSchema" => match (before, after) {
            (Some(before), Some(after)) => schema::changes(Side::Input, before, after, &pointer, changes),
            _ => changes.add(pointer, Class::AuthorityExpanding, Why::NotNamed),
        },
        "outputSchema" => match (before, after) {
            (Some(before), Some(after)) => schema::changes(Side::Output, before, after, &pointer, changes),
            (None, _) => changes.add(pointer, Class::Additive, Why::OutputAdded),
            (_, None) => changes.add(pointer, Class::Narrowing, Why::OutputRemoved),
        },
        _ => not_named(before, after, pointer, changes),
    }
}

fn annotations(before: Option<&Value>, after: Option<&Value>, changes: &mut Changes) {
    let none = Value::Object(Map::new());
    each(before.unwrap_or(&none), after.unwrap_or(&none), |name, before, after| {
        let pointer = join("/annotations", name);
        if name == "title" && texts(before, after) {
            prose(pointer, name, changes);
        } else {
            changes.add(pointer, Class::AuthorityExpanding, Why::Hint);
        }
    });
}

fn not_named(before: Option<&Value>, after: Option<&Value>, pointer: String, changes: &mut Changes) {
    let mut add = |pointer| changes.add(pointer, Class::AuthorityExpanding, Why::NotNamed);
    match (before, after) {
        (Some(before), Some(after)) => differing(before, after, &pointer, &mut add),
        _ => add(pointer),
    }
}

/// Adds a change of prose.
pub(super) fn prose(pointer: String, name: &str, changes: &mut Changes) {
    changes.add(pointer, Class::Text, if name == "description" { Why::Description } else { Why::Prose });
}

/// Calls `add` with the pointer to every place where two values differ: members of objects as deep as both have them,
/// anything else as a whole.
pub(super) fn differing(before: &Value, after: &Value, pointer: &str, add: &mut impl FnMut(String)) {
    if before == after {
        return;
    }
    if !(before.is_object() && after.is_object()) {
        return add(pointer.to_owned());
    }
    each(before, after, |name, before, after| {
        let pointer = join(pointer, name);
        match (before, after) {
            (Some(before), Some(after)) => differing(before, after, &pointer, add),
            _ => add(pointer),
        }
    });
}

/// Calls `visit` for every name whose value differs between two objects.
pub(super) fn each(before: &Value, after: &Value, mut visit: impl FnMut(&str, Option<&Value>, Option<&Value>)) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return };
    for (name, old) in before {
        let new = after.get(name);
        if new != Some(old) {
            visit(name, Some(old), new);
        }
    }
    for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        visit(name, None, Some(new));
    }
}

/// Whether each of both is a string or absent.
pub(super) fn texts(before: Option<&Value>, after: Option<&Value>) -> bool {
    before.is_none_or(Value::is_string) && after.is_none_or(Value::is_string)
}

/// Whether each of both is an array or absent.
pub(super) fn arrays(before: Option<&Value>, after: Option<&Value>) -> bool {
    before.is_none_or(Value::is_array) && after.is_none_or(Value::is_array)
}

fn objects(before: Option<&Value>, after: Option<&Value>) -> bool {
    before.is_none_or(Value::is_object) && after.is_none_or(Value::is_object)
}
