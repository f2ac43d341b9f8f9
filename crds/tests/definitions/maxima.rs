//! Everything has a maximum.

use serde_json::Value;

use crate::site;

fn has(schema: &Value, keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| schema.get(keyword).is_some())
}

#[test]
fn every_string_list_and_map_has_a_maximum() {
    for (kind, schema) in site::schemas() {
        for (place, schema) in site::declared(&schema) {
            let bounded = match schema.get("type").and_then(Value::as_str) {
                Some("string") => has(schema, &["maxLength", "enum", "format"]),
                Some("array") => has(schema, &["maxItems"]),
                Some("integer") => place.ends_with("tolerationSeconds") || has(schema, &["maximum", "minimum"]),
                Some("object") if has(schema, &["additionalProperties"]) => has(schema, &["maxProperties"]),
                Some("object" | "boolean") => true,
                None => has(schema, &["x-kubernetes-int-or-string"]) && has(schema, &["maxLength"]),
                other => panic!("{kind} {place}: type {other:?}"),
            };
            assert!(bounded, "{kind} {place} has no maximum");
        }
    }
}

/// `uint32` and `double` are formats that the API server warns about.
#[test]
fn numbers_are_int32_or_int64() {
    for (kind, schema) in site::schemas() {
        for (place, schema) in site::declared(&schema) {
            let format = schema.get("format").and_then(Value::as_str).unwrap_or("date-time");
            assert!(["int32", "int64", "date-time"].contains(&format), "{kind} {place}: {format}");
        }
    }
}

/// A list without a list type is atomic only by accident.
#[test]
fn every_list_of_a_spec_says_how_it_merges() {
    for (kind, schema) in site::schemas() {
        for (place, schema) in site::declared(&schema) {
            let list = schema.get("type").and_then(Value::as_str) == Some("array");
            let says = has(schema, &["x-kubernetes-list-type"]);
            assert!(!list || says || !place.starts_with("spec"), "{kind} {place} has no list type");
        }
    }
}
