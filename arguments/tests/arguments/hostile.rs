//! Schemas and arguments that are made to cost: each test ends at once, or it would not end at all.

use std::time::{Duration, Instant};

use cotter_arguments::{Checker, Coverage, Fault};
use serde_json::{Map, Value, json};

/// More than any check takes here without optimisation, and far less than what these schemas are made for.
const SOON: Duration = Duration::from_secs(20);

fn within<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    assert!(began.elapsed() < SOON, "{what} took {:?}", began.elapsed());
    result
}

fn refused(schema: &Value) -> &'static str {
    within("compiling", || match Checker::new(schema).coverage() {
        Coverage::Nothing(why) => *why,
        other => panic!("{other:?}"),
    })
}

/// Definitions `c0`, `c1`, …, each made of a reference to the next.
fn chain(length: usize, step: impl Fn(Value) -> Value, last: Value) -> Value {
    let mut definitions: Map<String, Value> =
        (0..length).map(|n| (format!("c{n}"), step(json!({"$ref": format!("#/$defs/c{}", n + 1)})))).collect();
    definitions.insert(format!("c{length}"), last);
    json!({"$defs": definitions, "$ref": "#/$defs/c0"})
}

#[test]
fn references_that_double_are_not_followed() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let doubling = chain(6, |next| json!({ keyword: [next, next, next, next, next] }), json!({"type": "object"}));
        assert!(refused(&doubling).contains("4096"), "{keyword}");
    }
    let few = chain(3, |next| json!({"allOf": [next, next]}), json!({"required": ["a"]}));
    assert!(Checker::new(&few).check(Some("{}")).is_err(), "a few are");
}

#[test]
fn references_in_a_circle_or_a_long_row_are_not_followed() {
    assert!(refused(&json!({"$ref": "#"})).contains("refers to itself"));
    assert!(refused(&json!({"anyOf": [{"$ref": "#/anyOf/1"}, {"not": {"$ref": "#"}}]})).contains("refers to itself"));
    assert!(refused(&chain(1000, |next| json!({"allOf": [next]}), json!({}))).contains("16"));
    let row = chain(1000, |next| json!({"properties": {"n": next}}), json!({"type": "string"}));
    assert_eq!(Checker::new(&row).coverage(), &Coverage::Whole, "a row that leads into the value ends with the value");
}

#[test]
fn a_schema_that_is_too_large_is_not_compiled() {
    let many = |count: usize| (0..count).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect::<Map<_, _>>();
    assert!(refused(&json!({"properties": many(5000)})).contains("4096"));
    assert!(refused(&json!({"description": "d".repeat(300_000)})).contains("256 KiB"));
    let patterns: Map<_, _> = (0..200).map(|n| (format!("p{n}"), json!({"pattern": format!("a{n}")}))).collect();
    assert!(refused(&json!({"properties": patterns})).contains("128 patterns"));
    assert!(refused(&json!({"enum": [vec![0; 1000]]})).contains("256 values"));
    assert_eq!(Checker::new(&json!({"properties": many(1000)})).coverage(), &Coverage::Whole);
}

/// A value nested so many times.
fn nested(depth: usize, wrap: impl Fn(Value) -> Value, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| wrap(inner))
}

#[test]
fn a_schema_that_doubles_with_each_level_of_the_value_ends() {
    let tree = json!({"$defs": {"t": {"type": "object", "properties": {
        "n": {"allOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}]}}}}, "$ref": "#/$defs/t"});
    let checker = Checker::new(&tree);
    assert_eq!(checker.coverage(), &Coverage::Whole);
    let deep = |innermost| nested(60, |inner| json!({ "n": inner }), innermost).to_string();
    within("deep", || assert_eq!(checker.check(Some(&deep(json!({})))), Ok(())));
    within("deep", || assert!(matches!(checker.check(Some(&deep(json!(1)))), Err(Fault::Broken(_)))));
}

#[test]
fn what_is_unevaluated_is_found_out_in_bounded_time() {
    let schema = nested(
        7,
        |inner| json!({"allOf": [inner, {"anyOf": [true, true]}], "unevaluatedProperties": false}),
        json!({"properties": {"a": {}}}),
    );
    let tree =
        json!({"$defs": {"t": {"properties": {"a": {"$ref": "#/$defs/t"}}, "allOf": [schema]}}, "$ref": "#/$defs/t"});
    let checker = Checker::new(&tree);
    let deep = nested(60, |inner| json!({ "a": inner }), json!({}));
    within("deep", || drop(checker.check(Some(&deep.to_string()))));
    within("deep", || assert!(checker.check(Some(r#"{"b":1}"#)).is_err()));
}

#[test]
fn every_step_of_the_stack_is_bounded() {
    let body = |next| json!({"anyOf": [{"allOf": [next]}]});
    let tree = chain(
        4,
        body,
        json!({"properties": {"n": {"$ref": "#/$defs/c0"}}, "items": {"$ref": "#/$defs/c0"}, "not": {"type": "string"}}),
    );
    let arguments = |innermost| nested(60, |inner| json!({ "n": inner }), innermost).to_string();
    // The smallest stack that requests are served on.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let end = thread.spawn(move || {
        let checker = Checker::new(&tree);
        assert_eq!(checker.coverage(), &Coverage::Whole);
        (checker.check(Some(&arguments(json!({})))), checker.check(Some(&arguments(json!("end")))))
    });
    let (good, bad) = end.unwrap().join().unwrap();
    assert!(good.is_ok() && bad.is_err(), "{good:?} {bad:?}");
}

#[test]
fn a_pattern_takes_time_by_the_length_of_the_text() {
    for pattern in ["^(a+)+$", "^(a|aa)*$", "(x+x+)+y", "^(?:a?){50}a{50}$", "[ab]*a[ab]{12}$"] {
        let checker = Checker::new(&json!({"properties": {"x": {"pattern": pattern}}}));
        assert_eq!(checker.coverage(), &Coverage::Whole, "{pattern}");
        let arguments = json!({"x": format!("{}!", "a".repeat(100_000))}).to_string();
        within(pattern, || assert!(checker.check(Some(&arguments)).is_err(), "{pattern}"));
    }
}

#[test]
fn a_pattern_that_would_compile_to_too_much_is_left_out() {
    for pattern in ["^(?:(?:a{100}){100}){100}$", "(?:\\p{L}{1,500}x){20}"] {
        let checker = within(pattern, || Checker::new(&json!({"properties": {"x": {"pattern": pattern}}})));
        assert_eq!(checker.coverage(), &Coverage::Partly(vec!["/properties/x/pattern".to_owned()]), "{pattern}");
    }
}

#[test]
fn a_text_against_many_patterns_is_too_costly_and_against_one_it_is_not() {
    let arguments = json!({"x": "a".repeat(200_000)}).to_string();
    let checker = |count: usize| {
        let patterns: Vec<Value> = (0..count).map(|n| json!({"pattern": format!("[ab]*a[ab]{{12}}c{n}$")})).collect();
        Checker::new(&json!({"properties": {"x": {"anyOf": patterns}}}))
    };
    within("many", || assert_eq!(checker(100).check(Some(&arguments)), Err(Fault::TooCostly)));
    within("one", || assert!(matches!(checker(1).check(Some(&arguments)), Err(Fault::Broken(_)))));
}

#[test]
fn many_values_against_many_options_end() {
    let options: Vec<Value> = (0..4000).map(|n| json!({ "a": n })).collect();
    let checker = Checker::new(&json!({"properties": {"x": {"items": {"enum": options}}}}));
    let arguments = |value: Value| json!({"x": vec![value; 20_000]}).to_string();
    within("refused", || assert!(checker.check(Some(&arguments(json!({"a": -1})))).is_err()));
    within("listed", || drop(checker.check(Some(&arguments(json!({"a": 3999}))))));
}

#[test]
fn unique_items_take_time_by_their_number() {
    let checker = Checker::new(&json!({"properties": {"x": {"uniqueItems": true}}}));
    let mut items: Vec<Value> = (0..50_000).map(|n| json!({"a": n, "b": [n]})).collect();
    within("distinct", || assert_eq!(checker.check(Some(&json!({ "x": items }).to_string())), Ok(())));
    items.push(json!({"b": [7.0], "a": 7}));
    within("not", || assert!(checker.check(Some(&json!({ "x": items }).to_string())).is_err()));
}

#[test]
fn large_arguments_pass_where_they_are_what_was_asked_for() {
    let checker = Checker::new(&json!({"type": "object", "properties": {
        "text": {"type": "string", "maxLength": 2_000_000}, "numbers": {"type": "array", "items": {"type": "integer", "minimum": 0}}}}));
    let large = json!({"text": "é".repeat(200_000), "numbers": vec![7; 200_000]}).to_string();
    within("large", || assert_eq!(checker.check(Some(&large)), Ok(())));
    let large = json!({"text": "é".repeat(200_000), "numbers": vec![-7; 200_000]}).to_string();
    within("large", || assert!(checker.check(Some(&large)).is_err()));
}

#[test]
fn numbers_at_the_ends_of_what_can_be_written_cost_nothing() {
    let checker = Checker::new(&json!({"properties": {"x": {"multipleOf": 5e-324}, "y": {"maximum": 1e308}}}));
    within("numbers", || drop(checker.check(Some(r#"{"x":1.7e308,"y":-1.7e308}"#))));
    within("numbers", || assert!(checker.check(Some(r#"{"y":1.7e308}"#)).is_err()));
}
