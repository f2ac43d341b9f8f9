//! Where a module means something else in `opa`: always, what is not told there refuses here.

use std::collections::BTreeMap;

use cotter_policies::{Sandbox, cases::changed, library::DECISION};
use serde_json::{Value, json};

use crate::{
    answers::allows,
    cases::base,
    program::{Errors, Files},
};

/// Mia without a tenant and without a text, where every tenant is admitted.
fn nameless() -> Value {
    let changes = BTreeMap::from([
        ("/server/tenants".to_owned(), json!({"*": true})),
        ("/principal/tenant".to_owned(), Value::Null),
    ]);
    changed(&base(), &changes).unwrap()
}

/// Whether Cotter and `opa`, as it is by default, allow the call under a module of this one rule.
fn allowed(body: &str) -> (bool, bool) {
    let modules = BTreeMap::from([("m".to_owned(), format!("package cotter.user.m\n\n{body}\n"))]);
    let input = nameless();
    let theirs = Files::new(&modules).answers(DECISION, std::slice::from_ref(&input), Errors::Undefined).unwrap();
    (Sandbox::new(&modules).unwrap().decide(&input).unwrap().0.allow, allows(&theirs[0]))
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn what_is_missing_under_not_refuses_here_and_is_undefined_there() {
    for condition in [
        "not input.principal.tenant in {\"tenant-7\"}",
        "not startswith(input.args.text, \"a\")",
        "not regex.match(`^a`, input.args.text)",
    ] {
        assert_eq!(allowed(&format!("deny contains \"x\" if {condition}")), (false, true), "{condition}");
        let by_itself = condition.trim_start_matches("not ");
        let rule = format!("deny contains \"x\" if not holds\n\nholds if {by_itself}");
        assert_eq!(allowed(&rule), (false, false), "a rule of its own means the same: {rule}");
    }
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn a_function_that_fails_refuses_here_and_is_undefined_there() {
    for condition in ["to_number(input.principal.subject) > 1", "time.parse_rfc3339_ns(input.principal.subject) > 1"] {
        assert_eq!(allowed(&format!("deny contains \"x\" if {condition}")), (false, true), "{condition}");
    }
}
