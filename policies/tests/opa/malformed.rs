//! Inputs that Cotter would never make: neither engine allows anything by them.

use std::collections::BTreeMap;

use cotter_policies::{Sandbox, cases::changed, library::DECISION};
use serde_json::{Value, json};

use crate::{
    answers::{allows, in_order},
    cases::base,
    program::{Errors, Files},
};

/// Members that a permission rests on, each by pointer; without one of the right kind nothing is allowed.
const LOAD_BEARING: &[&str] =
    &["/principal", "/principal/delegated", "/server", "/server/tenants", "/tool", "/tool/scope", "/tool/effect"];
/// Those of a principal that acts under a delegation.
const DELEGATED: &[&str] = &[
    "/principal/tenant",
    "/grants",
    "/grants/triage",
    "/grants/triage/scopes",
    "/grants/triage/effects",
    "/grants/triage/tools",
    "/grants/triage/tenants",
    "/tool/name",
];

fn delegated() -> Value {
    let grant = json!({"scopes": {"case:write": true}, "effects": {"Write": true}, "tools": {"case_tag": true}, "tenants": {"tenant-7": true}, "ancestors": []});
    let changes = BTreeMap::from([
        ("/principal/scopes".to_owned(), Value::Null),
        ("/principal/delegated".to_owned(), json!(true)),
        ("/grants".to_owned(), json!({"triage": grant})),
    ]);
    changed(&base(), &changes).unwrap()
}

/// Values that are never of the right kind there; nothing stands for a member that is not there.
fn wrong() -> Vec<Option<Value>> {
    let values = [
        json!(null),
        json!(0),
        json!(-1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!(["x"]),
        json!({}),
        json!({"x": {"y": 1}}),
    ];
    values.into_iter().map(Some).chain([None]).collect()
}

fn with(document: &Value, pointer: &str, value: Option<Value>) -> Value {
    let (mut document, (parent, name)) = (document.clone(), pointer.rsplit_once('/').unwrap());
    let members = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => drop(members.insert(name.to_owned(), value)),
        None => drop(members.remove(name)),
    }
    document
}

/// Each member in turn, with each wrong value.
fn mutants(document: &Value, pointers: &[&str]) -> Vec<Value> {
    let each = pointers.iter().flat_map(|pointer| wrong().into_iter().map(move |value| (*pointer, value)));
    each.map(|(pointer, value)| with(document, pointer, value)).collect()
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn neither_engine_allows_what_is_malformed() {
    let none = BTreeMap::new();
    let (mut sandbox, files) = (Sandbox::new(&none).unwrap(), Files::new(&none));
    let sound = files.answers(DECISION, &[base(), delegated()], Errors::Undefined).unwrap();
    assert!(sound.iter().all(allows), "what they are made from is allowed: {sound:?}");

    let mut inputs = mutants(&base(), LOAD_BEARING);
    inputs.extend(mutants(&base(), &["/principal/scopes"]));
    inputs.extend(mutants(&delegated(), LOAD_BEARING));
    inputs.extend(mutants(&delegated(), DELEGATED));
    inputs.extend([json!({}), json!([]), json!("x"), json!(7), json!(true), json!(null)]);
    // By default a builtin that fails is undefined there, and refuses here. Both may be; a permission may not.
    let theirs = files.answers(DECISION, &inputs, Errors::Undefined).unwrap();
    let mut failed = 0;
    for (input, theirs) in inputs.iter().zip(theirs) {
        assert!(!sandbox.decide(input).unwrap().0.allow, "{input}");
        assert!(!allows(&theirs), "opa: {input}");
        match sandbox.answer(DECISION, input) {
            Ok(ours) => assert_eq!(ours.map(in_order), theirs.map(in_order), "{input}"),
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 0 && failed < inputs.len() / 2, "some fail, most do not: {failed} of {}", inputs.len());
}
