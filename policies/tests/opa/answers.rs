//! Two engines' answers, side by side.

use cotter_policies::{
    Sandbox,
    library::{DECISION, DECISIONS},
};
use serde_json::Value;

use crate::program::{Errors, Files};

/// Sets come as arrays whose order says nothing.
const SETS: &[&str] = &["reasons", "challengeScopes", "delegations"];

/// An answer in the form in which equal ones are the same.
pub(crate) fn in_order(answer: Value) -> Value {
    let mut answer = plain(answer);
    for set in SETS {
        if let Some(items) = answer.get_mut(*set).and_then(Value::as_array_mut) {
            items.sort_by_cached_key(Value::to_string);
        }
    }
    answer
}

/// Whole numbers without a fraction: one engine writes 100 where the other keeps the 100.0 of the input.
pub(crate) fn plain(value: Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, plain(value))).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => {
                serde_json::from_str(&format!("{float:.0}")).unwrap()
            }
            _ => Value::Number(number),
        },
        other => other,
    }
}

/// An answer about many tools.
fn each_in_order(mut answers: Value) -> Value {
    if let Some(tools) = answers.as_object_mut() {
        tools.values_mut().for_each(|answer| *answer = in_order(answer.take()));
    }
    answers
}

/// The rule that decides on an input, and how its answer is brought into order.
fn question(input: &Value) -> (&'static str, fn(Value) -> Value) {
    if input.get("tools").is_some() { (DECISIONS, each_in_order) } else { (DECISION, in_order) }
}

/// Asks both engines and asserts that they say the same; returns what they said. The inputs are about one tool each, or all about many.
/// Where a rule fails here, it has to fail there, on the same input.
pub(crate) fn same(named: &str, sandbox: &mut Sandbox, files: &Files, inputs: &[Value]) -> Vec<Option<Value>> {
    let (mut sound, mut ours) = (Vec::new(), Vec::new());
    for input in inputs {
        let (rule, order) = question(input);
        match sandbox.answer(rule, input) {
            Ok(said) => {
                sound.push(input.clone());
                ours.push(said.map(order));
            }
            Err(error) => {
                let theirs = files.answers(rule, std::slice::from_ref(input), Errors::End);
                assert!(theirs.is_err(), "{named}: only here: {error}: {input}\nopa: {theirs:?}");
            }
        }
    }
    let Some(first) = sound.first() else { return Vec::new() };
    let (rule, order) = question(first);
    let theirs = files.answers(rule, &sound, Errors::End).unwrap_or_else(|error| panic!("{named}: {error}"));
    for ((input, ours), theirs) in sound.iter().zip(&ours).zip(theirs) {
        assert_eq!(*ours, theirs.map(order), "{named}: {input}");
    }
    ours
}

/// Whether an answer is a permission.
pub(crate) fn allows(answer: &Option<Value>) -> bool {
    answer.as_ref().and_then(|answer| answer.get("allow")) == Some(&Value::Bool(true))
}
