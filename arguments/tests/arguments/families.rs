//! Each family of keywords: what it lets pass and, beside it, what it refuses.

use cotter_arguments::{Checker, Coverage, Fault};
use serde_json::{Value, json};

/// A schema, arguments that it lets pass, arguments that it refuses, where, and by which keyword.
type Case = (Value, &'static str, &'static str, &'static str, &'static str);

fn of(property: &Value) -> Value {
    json!({"type": "object", "properties": {"x": property}})
}

fn plain() -> Vec<Case> {
    vec![
        (json!({"type": "object", "required": ["a"]}), r#"{"a":null}"#, "{}", "/a", "required"),
        (
            json!({"additionalProperties": false, "properties": {"a": {}}}),
            r#"{"a":1}"#,
            r#"{"b":1}"#,
            "/b",
            "additionalProperties",
        ),
        (of(&json!({"type": "string"})), r#"{"x":""}"#, r#"{"x":1}"#, "/x", "type"),
        (of(&json!({"type": ["string", "null"]})), r#"{"x":null}"#, r#"{"x":false}"#, "/x", "type"),
        (of(&json!({"type": "integer"})), r#"{"x":1.0}"#, r#"{"x":1.5}"#, "/x", "type"),
        (of(&json!({"type": "integer"})), r#"{"x":123456789012345678901234567890}"#, r#"{"x":"1"}"#, "/x", "type"),
        (of(&json!({"enum": ["a", 1, null]})), r#"{"x":1.0}"#, r#"{"x":"b"}"#, "/x", "enum"),
        (of(&json!({"const": {"a": [1]}})), r#"{"x":{"a":[1.0]}}"#, r#"{"x":{"a":[1,2]}}"#, "/x", "const"),
        (of(&json!({"minimum": 1})), r#"{"x":1}"#, r#"{"x":0.9}"#, "/x", "minimum"),
        (of(&json!({"exclusiveMaximum": 5})), r#"{"x":4.9}"#, r#"{"x":5}"#, "/x", "exclusiveMaximum"),
        (of(&json!({"multipleOf": 0.1})), r#"{"x":0.3}"#, r#"{"x":0.35}"#, "/x", "multipleOf"),
        (of(&json!({"maxLength": 2})), r#"{"x":"éé"}"#, r#"{"x":"abc"}"#, "/x", "maxLength"),
        (of(&json!({"minLength": 1})), r#"{"x":"a"}"#, r#"{"x":""}"#, "/x", "minLength"),
        (of(&json!({"pattern": "^[a-z]+\\d$"})), r#"{"x":"ab1"}"#, r#"{"x":"AB1"}"#, "/x", "pattern"),
        (of(&json!({"maxItems": 1})), r#"{"x":[1]}"#, r#"{"x":[1,2]}"#, "/x", "maxItems"),
        (of(&json!({"minItems": 1})), r#"{"x":[1]}"#, r#"{"x":[]}"#, "/x", "minItems"),
        (
            of(&json!({"uniqueItems": true})),
            r#"{"x":[1,"1",[1]]}"#,
            r#"{"x":[{"a":1,"b":0},{"b":-0.0,"a":1.0}]}"#,
            "/x",
            "uniqueItems",
        ),
        (
            of(&json!({"uniqueItems": true})),
            r#"{"x":[1e300,1e301,18446744073709551615,1e19]}"#,
            r#"{"x":[10e299,1e300]}"#,
            "/x",
            "uniqueItems",
        ),
        (
            of(&json!({"uniqueItems": true})),
            r#"{"x":[9007199254740993,9007199254740992.0]}"#,
            r#"{"x":[18446744073709551616,1.8446744073709551616e19]}"#,
            "/x",
            "uniqueItems",
        ),
        (of(&json!({"items": {"type": "string"}})), r#"{"x":["a"]}"#, r#"{"x":["a",2]}"#, "/x/1", "type"),
        (
            of(&json!({"prefixItems": [{"type": "string"}], "items": false})),
            r#"{"x":["a"]}"#,
            r#"{"x":["a","b"]}"#,
            "/x/1",
            "false",
        ),
        (of(&json!({"contains": {"const": 1}})), r#"{"x":[0,1]}"#, r#"{"x":[0]}"#, "/x", "contains"),
        (of(&json!({"maxProperties": 1})), r#"{"x":{"a":1}}"#, r#"{"x":{"a":1,"b":2}}"#, "/x", "maxProperties"),
        (
            of(&json!({"propertyNames": {"maxLength": 1}})),
            r#"{"x":{"a":1}}"#,
            r#"{"x":{"ab":1}}"#,
            "/x",
            "propertyNames",
        ),
        (
            of(&json!({"patternProperties": {"^n": {"type": "number"}}})),
            r#"{"x":{"n1":1}}"#,
            r#"{"x":{"n1":"1"}}"#,
            "/x/n1",
            "type",
        ),
        (
            of(&json!({"additionalProperties": {"type": "string"}})),
            r#"{"x":{"k":"v"}}"#,
            r#"{"x":{"k":1}}"#,
            "/x/k",
            "type",
        ),
    ]
}

fn joined() -> Vec<Case> {
    vec![
        (
            of(&json!({"allOf": [{"type": "string"}, {"minLength": 2}]})),
            r#"{"x":"ab"}"#,
            r#"{"x":"a"}"#,
            "/x",
            "minLength",
        ),
        (of(&json!({"anyOf": [{"type": "string"}, {"type": "null"}]})), r#"{"x":null}"#, r#"{"x":1}"#, "/x", "anyOf"),
        (of(&json!({"oneOf": [{"minimum": 0}, {"maximum": 5}]})), r#"{"x":6}"#, r#"{"x":3}"#, "/x", "oneOf"),
        (of(&json!({"not": {"type": "string"}})), r#"{"x":1}"#, r#"{"x":"a"}"#, "/x", "not"),
        (
            of(&json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "number"}})),
            r#"{"x":1}"#,
            r#"{"x":true}"#,
            "/x",
            "type",
        ),
        (json!({"dependentRequired": {"a": ["b"]}}), r#"{"a":1,"b":2}"#, r#"{"a":1}"#, "/b", "required"),
        (
            json!({"dependentSchemas": {"a": {"properties": {"b": {"const": 1}}}}}),
            r#"{"b":2}"#,
            r#"{"a":1,"b":2}"#,
            "/b",
            "const",
        ),
        (
            json!({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false}),
            r#"{"a":1}"#,
            r#"{"b":1}"#,
            "/b",
            "unevaluatedProperties",
        ),
        (
            of(&json!({"prefixItems": [{}], "unevaluatedItems": false})),
            r#"{"x":[1]}"#,
            r#"{"x":[1,2]}"#,
            "/x",
            "unevaluatedItems",
        ),
        (
            json!({"$defs": {"t": {"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"}),
            r#"{"next":{"next":{}}}"#,
            r#"{"next":{"next":1}}"#,
            "/next/next",
            "type",
        ),
        (
            json!({"$defs": {"t": {"$anchor": "tag", "enum": ["a"]}}, "properties": {"x": {"$ref": "#tag"}}}),
            r#"{"x":"a"}"#,
            r#"{"x":"b"}"#,
            "/x",
            "enum",
        ),
        (json!({"properties": {"a/b": {"type": "string"}}}), r#"{"a/b":""}"#, r#"{"a/b":1}"#, "/a~1b", "type"),
    ]
}

/// Older drafts, where they say another thing than 2020-12 does.
fn older() -> Vec<Case> {
    let seven = "http://json-schema.org/draft-07/schema#";
    let four = "http://json-schema.org/draft-04/schema#";
    vec![
        (
            json!({"$schema": seven, "properties": {"x": {"items": [{"type": "string"}], "additionalItems": false}}}),
            r#"{"x":["a"]}"#,
            r#"{"x":["a",1]}"#,
            "/x",
            "additionalItems",
        ),
        (
            json!({"$schema": seven, "definitions": {"t": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/t"}}}),
            r#"{"x":"a"}"#,
            r#"{"x":1}"#,
            "/x",
            "type",
        ),
        (json!({"$schema": seven, "dependencies": {"a": ["b"]}}), r#"{"a":1,"b":2}"#, r#"{"a":1}"#, "/b", "required"),
        (
            json!({"$schema": four, "properties": {"x": {"maximum": 5, "exclusiveMaximum": true}}}),
            r#"{"x":4}"#,
            r#"{"x":5}"#,
            "/x",
            "exclusiveMaximum",
        ),
        (
            json!({"$schema": "https://schemas.example/own", "properties": {"x": {"type": "string"}}}),
            r#"{"x":"a"}"#,
            r#"{"x":1}"#,
            "/x",
            "type",
        ),
    ]
}

#[test]
fn every_family_of_keywords_lets_pass_and_refuses() {
    for (schema, good, bad, place, keyword) in plain().into_iter().chain(joined()).chain(older()) {
        let checker = Checker::new(&schema);
        assert_eq!(checker.coverage(), &Coverage::Whole, "{schema}");
        assert_eq!(checker.check(Some(good)), Ok(()), "{schema} has to let {good} pass");
        let Err(Fault::Broken(problems)) = checker.check(Some(bad)) else { panic!("{schema} has to refuse {bad}") };
        let first = &problems[0];
        assert_eq!((first.pointer.as_str(), first.keyword), (place, keyword), "{schema} on {bad}: {problems:?}");
    }
}

#[test]
fn what_only_describes_refuses_nothing() {
    let schema = json!({"type": "object", "x-order": 3, "properties": {
        "x": {"type": "string", "format": "email", "contentEncoding": "base64", "contentMediaType": "application/json", "nullable": false, "deprecated": true}}});
    for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        let mut schema = schema.clone();
        schema["$schema"] = json!(draft);
        let checker = Checker::new(&schema);
        assert_eq!(
            (checker.coverage(), checker.check(Some(r#"{"x":"no mail {"}"#))),
            (&Coverage::Whole, Ok(())),
            "{draft}"
        );
        assert!(checker.check(Some(r#"{"x":1}"#)).is_err(), "{draft}: the rest is checked all the same");
    }
}

#[test]
fn no_arguments_are_an_empty_object() {
    let checker = Checker::new(&json!({"type": "object", "required": ["a"]}));
    assert!(checker.check(None).is_err());
    assert_eq!(Checker::new(&json!({"type": "object"})).check(None), Ok(()));
}

#[test]
fn a_problem_repeats_no_value_and_no_more_than_three_are_told() {
    let names: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    let properties: Value = names
        .iter()
        .map(|name| (name.clone(), json!({"type": "integer", "maximum": 1})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let checker = Checker::new(&json!({"properties": properties, "additionalProperties": false}));
    let secret = "hunter2-s3cret";
    let arguments: Value =
        names.iter().map(|name| (name.clone(), json!(secret))).collect::<serde_json::Map<_, _>>().into();
    let Err(Fault::Broken(problems)) = checker.check(Some(&arguments.to_string())) else { panic!("it is refused") };
    assert_eq!(problems.len(), 3);
    assert!(problems.iter().all(|problem| !format!("{problem} {problem:?}").contains(secret)), "{problems:?}");
}

#[test]
fn a_name_that_a_caller_made_up_is_bounded_and_printable() {
    let checker = Checker::new(&json!({"properties": {"a": {}}, "additionalProperties": false}));
    let name = format!("\u{202e}{}", "n".repeat(10_000));
    let Err(Fault::Broken(problems)) = checker.check(Some(&json!({ name: 1 }).to_string())) else {
        panic!("it is refused")
    };
    let pointer = &problems[0].pointer;
    assert!(pointer.len() < 200 && pointer.starts_with("/\\u{202e}nnn"), "{problems:?}");
}
