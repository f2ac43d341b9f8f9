//! The effective form of a tool: without the members that neither a model nor a host acts on.
//!
//! It is what the effective digest hashes. A change that this form does not show has class `Cosmetic`; everything that
//! is not named here stays in, so an unknown keyword is never lost.

use serde_json::{Value, json};

/// Keywords whose value is one schema. `items` may also be an array of schemas.
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is an array of schemas.
const MANY: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value is an object of schemas by name; the names are not keywords.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Where the members of a schema lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Below {
    /// To one schema.
    pub(crate) one: bool,
    /// To an array of schemas.
    pub(crate) many: bool,
    /// To schemas by name.
    pub(crate) named: bool,
}

/// Where the value of a schema keyword leads; nowhere for `default`, `const`, `enum`, `examples` and unknown keywords.
pub(crate) fn below(keyword: &str) -> Below {
    Below { one: ONE.contains(&keyword), many: MANY.contains(&keyword), named: NAMED.contains(&keyword) }
}

/// The effective form of a tool object, from which the ignored members have been taken out already.
///
/// In `inputSchema` and `outputSchema`, at every level: `$schema` with a string goes, `required` with strings only is
/// sorted by code point. At the top: `execution` goes if it is `{"taskSupport":"forbidden"}`, `annotations` if empty.
#[must_use]
pub fn effective(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(members) = tool.as_object_mut() {
        if members.get("execution") == Some(&json!({"taskSupport": "forbidden"})) {
            members.remove("execution");
        }
        if members.get("annotations") == Some(&json!({})) {
            members.remove("annotations");
        }
        for schema in ["inputSchema", "outputSchema"] {
            members.get_mut(schema).into_iter().for_each(normalise);
        }
    }
    tool
}

fn normalise(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if members.get("$schema").is_some_and(Value::is_string) {
        members.remove("$schema");
    }
    members.get_mut("required").into_iter().for_each(sort_names);
    for (keyword, value) in members.iter_mut() {
        let below = below(keyword);
        match value {
            Value::Object(named) if below.named => named.values_mut().for_each(normalise),
            Value::Array(many) if below.many => many.iter_mut().for_each(normalise),
            one if below.one => normalise(one),
            _ => {}
        }
    }
}

fn sort_names(required: &mut Value) {
    if let Some(names) = required.as_array_mut()
        && names.iter().all(Value::is_string)
    {
        names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}
