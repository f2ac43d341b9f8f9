//! The cases and the Rego tests, and that together they reach every line of the library.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use cotter_core::reason::DenyReason;
use cotter_policies::{Sandbox, cases::Cases};
use serde_json::Value;

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &str, ending: &str) -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending) && !path.ends_with("base.yaml"));
    paths.sort();
    paths
}

fn base() -> Value {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/base.yaml"))
}

/// Every case has its decision; the reasons that the decisions had.
pub(crate) fn reached() -> BTreeSet<DenyReason> {
    let (mut failures, mut codes) = (Vec::new(), BTreeSet::new());
    for path in files("cases", ".yaml") {
        let cases: Cases = read(&path);
        let mut sandbox = Sandbox::new(&cases.modules).unwrap();
        for outcome in cases.run(&base(), &mut sandbox).unwrap() {
            codes.extend(outcome.codes);
            failures.extend(outcome.failure.map(|failure| format!("{}: {}: {failure}", path.display(), outcome.name)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    codes
}

#[test]
fn every_rego_test_passes_and_the_library_is_covered_line_by_line() {
    let mut sandbox = Sandbox::new(&BTreeMap::new()).unwrap();
    for path in files("cases", ".yaml") {
        let cases: Cases = read(&path);
        if cases.modules.is_empty() {
            cases.run(&base(), &mut sandbox).unwrap();
        }
    }
    let tests = files("rego/cotter", "_test.rego");
    let texts = tests
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap()));
    let outcomes = sandbox.test(&texts.collect()).unwrap();
    assert!(outcomes.len() > 20, "{}", outcomes.len());
    let failed: Vec<_> = outcomes.iter().filter(|test| test.failure.is_some()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let coverage = sandbox.coverage();
    let missed: Vec<_> =
        coverage.iter().filter(|file| file.file.starts_with("cotter/") && !file.missed.is_empty()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(coverage.iter().filter(|file| file.file.starts_with("cotter/")).count() >= 6);
}

#[test]
fn a_rego_test_that_is_false_undefined_or_wrong_fails() {
    let text = "package x_test\n\ntest_false := false\n\ntest_undefined if 1 == 2\n\ntest_wrong if upper(1) == 2\n\ntest_right if 1 == 1\n";
    let outcomes = Sandbox::new(&BTreeMap::new())
        .unwrap()
        .test(&BTreeMap::from([("x_test.rego".to_owned(), text.to_owned())]))
        .unwrap();
    let failed: Vec<_> = outcomes.iter().filter(|test| test.failure.is_some()).map(|test| test.name.as_str()).collect();
    assert_eq!(failed, ["x_test.test_false", "x_test.test_undefined", "x_test.test_wrong"]);
}

#[test]
fn a_case_that_expects_something_else_fails() {
    let text = "about: x\ncases: [{name: y, expect: {allow: false, reasons: [NoDelegation]}}, {name: z, expect: {allow: true}}]";
    let cases: Cases = serde_saphyr::from_str(text).unwrap();
    let outcomes = cases.run(&base(), &mut Sandbox::new(&BTreeMap::new()).unwrap()).unwrap();
    assert_eq!(
        outcomes.iter().filter(|outcome| outcome.failure.is_some()).count(),
        2,
        "the second lacks its twin: {outcomes:?}"
    );
}
