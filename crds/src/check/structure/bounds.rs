//! Types and bounds of one value.

use std::collections::BTreeSet;

use serde_json::Value;

use super::suggest;

/// Why the value is not of the declared type.
pub(super) fn type_problem(schema: &Value, value: &Value) -> Option<String> {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        let fits = value.is_string() || value.is_i64() || value.is_u64();
        return (!fits).then(|| format!("has to be a string or an integer, not {}", name_of(value)));
    }
    let (fits, wanted) = match schema.get("type")?.as_str()? {
        "object" => (value.is_object(), "an object"),
        "array" => (value.is_array(), "a list"),
        "string" => (value.is_string(), "a string"),
        "boolean" => (value.is_boolean(), "true or false"),
        "integer" => (value.is_i64() || value.is_u64(), "an integer"),
        _ => return None,
    };
    (!fits).then(|| format!("has to be {wanted}, not {}{}", name_of(value), quoting_hint(wanted, value)))
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// YAML reads `y`, `on` and `1e3` as something else; quotes make them text.
fn quoting_hint(wanted: &str, value: &Value) -> &'static str {
    let unquoted = wanted == "a string" && (value.is_boolean() || value.is_number());
    if unquoted { ": put it in quotes" } else { "" }
}

/// Why a string or number is outside its bounds.
pub(super) fn scalar_problem(schema: &Value, value: &Value) -> Option<String> {
    enum_problem(schema, value)
        .or_else(|| number_problem(schema, value))
        .or_else(|| length_problem(schema, value))
        .or_else(|| format_problem(schema, value))
}

fn enum_problem(schema: &Value, value: &Value) -> Option<String> {
    let allowed = schema.get("enum")?.as_array()?;
    if allowed.contains(value) {
        return None;
    }
    let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
    let written = value.as_str().unwrap_or_default();
    let meant = suggest::phrase(written, names.iter().copied());
    Some(format!("{written:?} is not one of {}{meant}", names.join(", ")))
}

fn number_problem(schema: &Value, value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    if let Some(min) = bound("minimum").filter(|min| number < *min) {
        return Some(format!("has to be at least {min}, not {value}"));
    }
    if let Some(max) = bound("maximum").filter(|max| number > *max) {
        return Some(format!("has to be at most {max}, not {value}"));
    }
    let narrow = schema.get("format").and_then(Value::as_str) == Some("int32");
    let fits = !narrow || value.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
    (!fits).then(|| format!("{value} does not fit into 32 bits"))
}

fn length_problem(schema: &Value, value: &Value) -> Option<String> {
    let length = value.as_str()?.chars().count();
    count_problem(schema, length, "Length", "characters")
}

fn format_problem(schema: &Value, value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let is_time = schema.get("format").and_then(Value::as_str) == Some("date-time");
    let parsed: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> =
        if is_time { serde_json::from_value(value.clone()).ok() } else { return None };
    let has_zone = text.contains('T') && (text.ends_with('Z') || text.rfind(['+', '-']) > text.find('T'));
    (parsed.is_none() || !has_zone)
        .then(|| format!("{text:?} is not a time: write RFC 3339 with a zone, such as 2027-01-31T00:00:00Z"))
}

/// Why there are too few or too many of something; `keyword` is what `min` and `max` stand before.
pub(super) fn count_problem(schema: &Value, count: usize, keyword: &str, things: &str) -> Option<String> {
    let bound = |side: &str| schema.get(format!("{side}{keyword}")).and_then(Value::as_u64);
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    if let Some(min) = bound("min").filter(|min| count < *min) {
        return Some(format!("has {count} {things}, and needs at least {min}"));
    }
    let max = bound("max").filter(|max| count > *max)?;
    Some(format!("has {count} {things}, and may have at most {max}"))
}

/// The elements that repeat an earlier one: of a set by value, of a map by its keys.
pub(super) fn duplicates(schema: &Value, elements: &[Value]) -> Vec<(usize, String)> {
    let keys: Vec<&str> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => vec![],
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            keys.into_iter().flatten().filter_map(Value::as_str).collect()
        }
        _ => return vec![],
    };
    let identity = |element: &Value| match keys.as_slice() {
        [] => element.to_string(),
        keys => keys.iter().map(|key| format!("{key} {}", element.get(key).unwrap_or(&Value::Null))).collect(),
    };
    let mut seen = BTreeSet::new();
    let repeated = |(at, element): (usize, &Value)| {
        let id = identity(element);
        (!seen.insert(id.clone())).then(|| (at, format!("{id} is here twice: leave one of them out")))
    };
    elements.iter().enumerate().filter_map(repeated).collect()
}
