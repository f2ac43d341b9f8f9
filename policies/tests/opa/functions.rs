//! Every function that a module may call, in both engines.

use std::collections::BTreeMap;

use cotter_policies::{Sandbox, cases::changed, library::DECISION};
use serde_json::{Value, json};

use crate::{
    answers::plain,
    cases::base,
    dice::Dice,
    inputs::{WORDS, number},
    program::{Errors, Files},
};

/// Each with a text `t`, a number `n`, a list of texts `l` and an object `o` from the arguments.
const SAME: &[&str] = &[
    "abs(n)",
    "array.concat(l, [t])",
    "array.reverse(l)",
    "array.slice(l, 0, 1)",
    "base64.decode(base64.encode(t))",
    "base64.encode(t)",
    "base64.is_valid(t)",
    "base64url.decode(base64url.encode(t))",
    "base64url.encode(t)",
    "base64url.encode_no_pad(t)",
    "bits.and(6, count(l))",
    "bits.negate(count(l))",
    "bits.or(6, count(l))",
    "bits.xor(6, count(l))",
    "ceil(n)",
    "concat(\"-\", l)",
    "contains(t, \"a\")",
    "count(l)",
    "count(o)",
    "endswith(t, \"b\")",
    "floor(n)",
    "format_int(count(l), 16)",
    "glob.match(\"case_*\", [\"_\"], t)",
    "glob.match(\"*-*\", [], t)",
    "indexof(t, \"b\")",
    "indexof_n(t, \"b\")",
    "intersection({{t, \"a\"}, {\"a\"}})",
    "is_array(l)",
    "is_boolean(t)",
    "is_null(o.d)",
    "is_number(n)",
    "is_object(o)",
    "is_set(l)",
    "is_string(t)",
    "json.filter(o, [\"a/b\"])",
    "json.is_valid(t)",
    "json.remove(o, [\"a/b\"])",
    "json.unmarshal(json.marshal(o))",
    "max(l)",
    "min(l)",
    "object.filter(o, [\"a\"])",
    "object.get(o, [\"a\", \"b\"], t)",
    "object.keys(o)",
    "object.remove(o, [\"a\"])",
    "object.subset(o, {\"a\": {\"b\": t}})",
    "object.union(o, {\"a\": {\"z\": n}})",
    "object.union_n([o, {\"a\": {\"z\": n}}])",
    "regex.find_n(`[a-c]+`, t, -1)",
    "regex.is_valid(`^[a-c]+$`)",
    "regex.match(`^[0-9A-Za-z_-]+$`, t)",
    "regex.match(`^.$`, t)",
    "regex.replace(t, `[a-c]+`, \"x\")",
    "regex.split(`[-_]`, t)",
    "replace(t, \"a\", \"b\")",
    "round(min([n, 9007199254740991]))",
    "semver.compare(\"1.2.3\", \"1.10.0\")",
    "semver.is_valid(t)",
    "sort(l)",
    "split(t, \"a\")",
    "sprintf(\"%d\", [count(l)])",
    "startswith(t, \"C-\")",
    "strings.any_prefix_match(t, [\"a\", \"C\"])",
    "strings.any_suffix_match(t, [\"b\", \"1\"])",
    "strings.count(t, \"a\")",
    "strings.reverse(t)",
    "substring(t, 1, 2)",
    "substring(t, 0, -1)",
    "sum([n, 1])",
    "time.add_date(time.parse_rfc3339_ns(input.now), 0, 1, 1)",
    "time.clock([time.parse_rfc3339_ns(input.now), \"Europe/Berlin\"])",
    "time.date(time.parse_rfc3339_ns(input.now))",
    "time.diff(time.parse_rfc3339_ns(input.now), 0)",
    "time.format(time.parse_rfc3339_ns(input.now))",
    "time.parse_duration_ns(\"1h3s\")",
    "time.parse_ns(\"2006-01-02\", \"2026-11-30\")",
    "time.weekday(time.parse_rfc3339_ns(input.now))",
    "to_number(t)",
    "trim(t, \" ab\")",
    "trim_left(t, \" ab\")",
    "trim_prefix(t, \"a\")",
    "trim_right(t, \" ab\")",
    "trim_space(t)",
    "trim_suffix(t, \"b\")",
    "type_name(n)",
    "union({{t}, {\"a\"}})",
    "n + 1",
    "n * 2",
    "n < 100",
    "n == 100",
    "t < \"b\"",
    "{t: n}",
];

/// The same for plain ASCII: letters, digits, spaces.
const SAME_ON_ASCII: &[&str] =
    &["count(t)", "glob.quote_meta(t)", "json.marshal(o.d)", "lower(t)", "sprintf(\"%s and %v\", [t, l])", "upper(t)"];
const ASCII: &[&str] = &["", "a", "abc", "C-41", "Case Tag", "10", "1.2.3", "case_tag", "a, b; c"];

/// What is known to differ, here and in `opa`. One that no longer does is taken off, and off `docs/policy.md`.
const DIFFERENT: &[(&str, &str, &str)] = &[
    // A character outside the basic plane counts twice here.
    (r#"count("🦀")"#, "2", "1"),
    // Letters that change their number.
    (r#"lower("İ")"#, "\"i\u{307}\"", "\"i\""),
    (r#"upper("ß")"#, "\"SS\"", "\"ß\""),
    // Whole numbers beyond 2^53.
    ("round(18446744073709551615)", "18446744073709551615", "1.8446744073709552e+19"),
    // What is escaped.
    (r#"json.marshal("<")"#, r#""\"<\"""#, r#""\"\\u003c\"""#),
    (r#"glob.quote_meta("\\a")"#, r#""\\a""#, r#""\\\\a""#),
    (r#"sprintf("%v", [["\u2028"]])"#, "\"[\\\"\u{2028}\\\"]\"", r#""[\"\\u2028\"]""#),
];

/// Mia, with arguments of every kind.
fn inputs(words: &[&str]) -> Vec<Value> {
    let mut dice = Dice(3);
    let each = words.iter().flat_map(|word| [*word, *word]).map(|word| {
        let nested = json!({"a": {"b": word, "c": number(&mut dice)}, "d": [null, true, word, {"k": 1}]});
        let args = json!({"text": word, "number": number(&mut dice), "tags": dice.few(words, 8), "nested": nested});
        changed(&base(), &BTreeMap::from([("/args".to_owned(), args)])).unwrap()
    });
    each.collect()
}

/// What a module said; nothing where a function failed.
fn said(answer: Option<&Value>) -> String {
    let reasons = answer.and_then(|answer| answer["reasons"].as_array()).map_or(&[] as &[Value], Vec::as_slice);
    let denied = reasons.iter().find(|reason| reason["code"] == "PolicyDenied");
    denied.map_or_else(|| "nothing".to_owned(), |reason| plain(reason["detail"]["is"].clone()).to_string())
}

/// The values of an expression for each input, here and in `opa`.
fn values(expression: &str, inputs: &[Value]) -> Vec<(String, String)> {
    let text = format!(
        "package cotter.user.m\n\ndeny contains {{\"is\": v}} if {{\n\tt := input.args.text\n\tn := input.args.number\n\tl := input.args.tags\n\t\
         o := input.args.nested\n\tv := {expression}\n}}\n"
    );
    let modules = BTreeMap::from([("m".to_owned(), text)]);
    let mut sandbox = Sandbox::new(&modules).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let theirs = Files::new(&modules).answers(DECISION, inputs, Errors::Undefined).unwrap();
    let ours = inputs.iter().map(|input| said(sandbox.answer(DECISION, input).ok().flatten().as_ref()));
    ours.zip(theirs.iter().map(|answer| said(answer.as_ref()))).collect()
}

/// The first input for which each expression has two values, and that it has any.
fn differences(expressions: &[&str], words: &[&str]) -> Vec<String> {
    let inputs = inputs(words);
    let mut found = Vec::new();
    for expression in expressions {
        let values = values(expression, &inputs);
        assert!(values.iter().any(|(ours, _)| ours != "nothing"), "{expression} has no value");
        let differs = inputs.iter().zip(values).find(|(_, (ours, theirs))| ours != theirs);
        found.extend(differs.map(|(input, values)| format!("{expression}: {values:?}: {}", input["args"])));
    }
    found
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn a_function_has_the_same_value() {
    let mut differ = differences(SAME, WORDS);
    differ.extend(differences(SAME_ON_ASCII, ASCII));
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn what_is_said_to_differ_does() {
    for (expression, ours, theirs) in DIFFERENT {
        let found = values(expression, &inputs(&["a"])[..1]);
        assert_eq!(found, [((*ours).to_owned(), (*theirs).to_owned())], "{expression}");
    }
}
