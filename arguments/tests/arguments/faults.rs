//! Schemas that are wrong or ask for what is not enforced: the tool stays usable, the rest is checked, and the gap is told.

use cotter_arguments::{Checker, Coverage};
use serde_json::{Value, json};

fn gaps(schema: &Value) -> Vec<String> {
    match Checker::new(schema).coverage() {
        Coverage::Partly(gaps) => gaps.clone(),
        other => panic!("{schema}: {other:?}"),
    }
}

fn is_nothing(schema: &Value) -> bool {
    matches!(Checker::new(schema).coverage(), Coverage::Nothing(_))
}

#[test]
fn a_keyword_that_cannot_be_enforced_is_told_and_the_rest_is_checked() {
    for (fault, gap) in [
        (json!({"type": "any"}), "/properties/x/type"),
        (json!({"required": true}), "/properties/x/required"),
        (json!({"enum": "a"}), "/properties/x/enum"),
        (json!({"pattern": "^(?!admin)"}), "/properties/x/pattern"),
        (json!({"pattern": "^(?=.*[0-9])[a-z0-9]+$"}), "/properties/x/pattern"),
        (json!({"pattern": "(a)\\1"}), "/properties/x/pattern"),
        (json!({"pattern": "["}), "/properties/x/pattern"),
        (json!({"$ref": "#/$defs/none"}), "/properties/x/$ref"),
        (json!({"allOf": [{"minLength": -1}]}), "/properties/x/allOf/0/minLength"),
        (json!(5), "/properties/x"),
    ] {
        let schema = json!({"type": "object", "properties": {"x": fault, "y": {"type": "integer"}}, "additionalProperties": false});
        assert_eq!(gaps(&schema), [gap], "{schema}");
        let checker = Checker::new(&schema);
        assert_eq!(checker.check(Some(r#"{"x":"anything","y":1}"#)), Ok(()), "{schema}");
        assert!(checker.check(Some(r#"{"x":"anything","y":"1"}"#)).is_err(), "{schema}");
        assert!(checker.check(Some(r#"{"z":1}"#)).is_err(), "{schema}");
    }
}

#[test]
fn what_is_left_over_is_not_refused_where_it_is_not_known_what_from() {
    for schema in [
        json!({"properties": 5, "additionalProperties": false}),
        json!({"patternProperties": {"^(?!x)": {}}, "additionalProperties": false}),
    ] {
        assert_eq!(gaps(&schema).len(), 1, "{schema}");
        assert_eq!(Checker::new(&schema).check(Some(r#"{"a":1}"#)), Ok(()), "{schema}");
    }
}

#[test]
fn a_gap_never_makes_the_rest_stricter() {
    for turning in [
        json!({"not": {"pattern": "(?!a)b"}}),
        json!({"oneOf": [{"pattern": "(?!a)b"}, {"type": "string"}]}),
        json!({"if": {"pattern": "(?!a)b"}, "then": false}),
        json!({"contains": {"pattern": "(?!a)b"}, "maxContains": 1}),
    ] {
        let schema = json!({"properties": {"x": turning}});
        assert!(is_nothing(&schema), "{schema}");
        assert_eq!(Checker::new(&schema).check(Some(r#"{"x":"a"}"#)), Ok(()), "{schema}");
    }
}

#[test]
fn nothing_outside_the_schema_is_looked_at() {
    for at in [
        "http://127.0.0.1:1/s.json",
        "file:///etc/passwd",
        "other.json",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        assert_eq!(gaps(&json!({"properties": {"x": {"$ref": at}}})), ["/properties/x/$ref"], "{at}");
    }
    assert!(is_nothing(&json!({"properties": {"x": {"$id": "https://e.example/x", "type": "string"}}})));
    assert_eq!(gaps(&json!({"properties": {"x": {"$dynamicRef": "#n"}}})), ["/properties/x/$dynamicRef"]);
}

#[test]
fn a_schema_that_names_itself_is_checked_whole() {
    let schema = json!({"$id": "https://e.example/s", "$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {
        "x": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}}});
    let checker = Checker::new(&schema);
    assert_eq!(checker.coverage(), &Coverage::Whole);
    assert!(checker.check(Some(r#"{"x":"a"}"#)).is_ok() && checker.check(Some(r#"{"x":1}"#)).is_err());
}

#[test]
fn what_is_no_schema_at_all_checks_nothing() {
    for schema in [json!("object"), json!(5), json!([]), json!(null)] {
        assert!(is_nothing(&schema), "{schema}");
    }
    assert!(Checker::new(&json!(false)).check(Some("{}")).is_err(), "`false` is a schema, and it lets nothing pass");
}
