//! Numbers as they are written: those that a rule gets to see compare in `opa` as they do here; those that are refused would not, or
//! could not be told from others.

use std::collections::BTreeMap;

use cotter_core::reason::DenyReason;
use cotter_policies::{Sandbox, cases::changed, library::DECISION};
use serde_json::{Value, json};

use crate::{
    answers::in_order,
    cases::base,
    program::{Errors, Files},
};

/// What the numbers are compared with.
const MODULE: &str = "package cotter.user.m

bounds := [-9223372036854775808, -1, 0, 0.1, 0.3, 0.30000000000000004, 1, 100, 100.5, 1000000000000000, 9007199254740992, 9007199254740993, 18446744073709551615, 1e22]

deny contains {\"less\": at} if {
	some at, bound in bounds
	input.args.n < bound
}

deny contains {\"same\": at} if {
	some at, bound in bounds
	input.args.n == bound
}

deny contains {\"more\": at} if {
	some at, bound in bounds
	input.args.n > bound
}
";
const SEEN: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "0e7",
    "1",
    "-1",
    "1.0",
    "10e-1",
    "100",
    "1e2",
    "100.0",
    "100.5",
    "1005e-1",
    "0.1",
    "1e-1",
    "0.10",
    "0.3",
    "0.30000000000000004",
    "0.2999999999999999",
    "0.30000000000000010",
    "1e15",
    "9007199254740992",
    "9007199254740993",
    "9007199254740992.0",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e22",
    "10000000000000000000000",
    "5e-324",
    "-1e-300",
];
/// Each equals one of the bounds here, and is less or more in truth.
const REFUSED: &[&str] = &[
    "0.1000000000000000055511151231257827",
    "0.30000000000000001",
    "100.00000000000000001",
    "99.999999999999999999",
    "9007199254740992.5",
    "9007199254740993.0",
    "10000000000000000000001",
    "1e-400",
];

/// An input whose number is written so.
fn text(input: &Value, number: &str) -> String {
    let marked = changed(input, &BTreeMap::from([("/args".to_owned(), json!({"n": "@"}))])).unwrap();
    marked.to_string().replace("\"@\"", number)
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn what_a_rule_sees_compares_the_same() {
    let modules = BTreeMap::from([("m".to_owned(), MODULE.to_owned())]);
    let mut sandbox = Sandbox::new(&modules).unwrap();
    let texts: Vec<String> = SEEN.iter().map(|number| text(&base(), number)).collect();
    let theirs = Files::new(&modules).answers_to(DECISION, &texts, Errors::End).unwrap();
    for (number, theirs) in SEEN.iter().zip(theirs) {
        let input =
            sandbox.called(&base(), &format!("{{\"n\":{number}}}")).unwrap_or_else(|no| panic!("{number}: {no:?}"));
        let ours = sandbox.answer(DECISION, &input).unwrap();
        assert_eq!(ours.map(in_order), theirs.map(in_order), "{number}");
    }
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn what_would_not_is_refused() {
    let modules = BTreeMap::from([("m".to_owned(), MODULE.to_owned())]);
    let mut sandbox = Sandbox::new(&modules).unwrap();
    let texts: Vec<String> = REFUSED.iter().map(|number| text(&base(), number)).collect();
    let theirs = Files::new(&modules).answers_to(DECISION, &texts, Errors::End).unwrap();
    let mut differ = 0;
    for ((number, text), theirs) in REFUSED.iter().zip(&texts).zip(theirs) {
        let refused = sandbox.called(&base(), &format!("{{\"n\":{number}}}")).unwrap_err();
        assert_eq!(refused.first_reason(), Some(DenyReason::ArgumentsNotExact), "{number}");
        let rounded: Value = serde_json::from_str(text).unwrap();
        let ours = sandbox.answer(DECISION, &rounded).unwrap().map(in_order);
        assert!(ours.as_ref().unwrap().to_string().contains("\"same\""), "{number} is rounded to a bound: {ours:?}");
        differ += usize::from(ours != theirs.map(in_order));
    }
    assert!(differ >= 4, "the two engines round differently: {differ} of {}", REFUSED.len());
}
