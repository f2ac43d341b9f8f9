//! The structural part of a schema: declared fields, types, bounds, required fields, lists without duplicates.
//!
//! It covers the keywords that the definitions of this crate use; a test fails when they use another.

use serde_json::{Map, Value};

use super::{FieldPath, Problem, suggest};

mod bounds;

/// Every structural problem of the object, in the order of its fields.
pub(super) fn check(schema: &Value, object: &Value) -> Vec<Problem> {
    let mut walk = Walk { problems: vec![], only_unknown: false };
    walk.value(schema, object, &FieldPath::root());
    walk.problems
}

/// The fields that are not declared.
pub(super) fn unknown_fields(schema: &Value, object: &Value) -> Vec<Problem> {
    let mut walk = Walk { problems: vec![], only_unknown: true };
    walk.value(schema, object, &FieldPath::root());
    walk.problems
}

/// Whether a text is a DNS subdomain, as names of objects are.
pub(super) fn is_object_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        let edges = bytes.first().is_some_and(|b| inner(*b)) && bytes.last().is_some_and(|b| inner(*b));
        edges && bytes.iter().all(|b| inner(*b) || *b == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Members of every object, which the schema of a kind does not declare.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

struct Walk {
    problems: Vec<Problem>,
    only_unknown: bool,
}

impl Walk {
    fn add(&mut self, path: &FieldPath, message: impl Into<String>) {
        self.problems.push(Problem { path: path.clone(), message: message.into() });
    }

    fn value(&mut self, schema: &Value, value: &Value, path: &FieldPath) {
        if !self.only_unknown
            && let Some(message) = bounds::type_problem(schema, value)
        {
            return self.add(path, message);
        }
        match value {
            Value::Object(members) => self.object(schema, members, path),
            Value::Array(elements) => self.list(schema, elements, path),
            Value::String(_) | Value::Number(_) if !self.only_unknown => {
                if let Some(message) = bounds::scalar_problem(schema, value) {
                    self.add(path, message);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, schema: &Value, members: &Map<String, Value>, path: &FieldPath) {
        let declared = schema.get("properties").and_then(Value::as_object);
        let values = schema.get("additionalProperties");
        let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        for (name, member) in members {
            let at = path.key(name);
            match declared.and_then(|declared| declared.get(name)).or(values) {
                Some(schema) => self.value(schema, member, &at),
                None if open || (path.is_root() && OF_EVERY_OBJECT.contains(&name.as_str())) => {}
                None => self.add(&at, not_declared(name, declared)),
            }
        }
        if !self.only_unknown {
            self.required(schema, members, path);
            let message = bounds::count_problem(schema, members.len(), "Properties", "members");
            message.into_iter().for_each(|message| self.add(path, message));
        }
    }

    fn required(&mut self, schema: &Value, members: &Map<String, Value>, path: &FieldPath) {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| !members.contains_key(*name)) {
            self.add(&path.key(name), "is required");
        }
    }

    fn list(&mut self, schema: &Value, elements: &[Value], path: &FieldPath) {
        if let Some(items) = schema.get("items") {
            elements.iter().enumerate().for_each(|(at, element)| self.value(items, element, &path.index(at)));
        }
        if !self.only_unknown {
            let message = bounds::count_problem(schema, elements.len(), "Items", "items");
            message.into_iter().for_each(|message| self.add(path, message));
            for (at, message) in bounds::duplicates(schema, elements) {
                self.add(&path.index(at), message);
            }
        }
    }
}

fn not_declared(name: &str, declared: Option<&Map<String, Value>>) -> String {
    let names: Vec<&str> = declared.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let fields = if names.is_empty() { String::new() } else { format!(" (there are {})", names.join(", ")) };
    format!("unknown field {name:?}{}{fields}", suggest::phrase(name, names.iter().copied()))
}
