//! The library as files of its own language.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    bodies::shipped,
    program::{Files, checkout, good, opa},
};

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn the_library_passes_the_strict_check() {
    let rego = checkout("policies/rego");
    good(["check", "--strict", rego.to_str().unwrap()]);
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn what_joins_modules_to_the_library_passes_the_strict_check_too() {
    for (name, modules) in shipped() {
        let files = Files::new(&modules);
        let checked = opa(["check", "--strict", files.rules().to_str().unwrap()]);
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
    }
    let wrong = Files::new(&BTreeMap::new());
    std::fs::write(wrong.rules().join("wrong.rego"), "package wrong\n\nimport data.unused\n\nx := 1\n").unwrap();
    assert!(!opa(["check", "--strict", wrong.rules().to_str().unwrap()]).status.success(), "the check can fail");
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn every_rego_test_of_the_library_and_the_examples_passes() {
    let (rego, examples) = (checkout("policies/rego"), checkout("examples/policies"));
    let examples: Vec<_> = std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut arguments = vec!["test", "--format", "json", rego.to_str().unwrap()];
    arguments.extend(examples.iter().map(|path| path.to_str().unwrap()).filter(|path| path.ends_with(".rego")));
    let tests: Vec<Value> = serde_json::from_str(&good(arguments)).unwrap();
    assert!(tests.len() > 40, "{}", tests.len());
    let failed = |test: &&Value| ["fail", "error", "skip"].iter().any(|word| test.get(*word).is_some());
    let failed: Vec<_> = tests.iter().filter(failed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
