//! The cases and the Rego tests, and that together they reach every line of the library.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use cotter_core::reason::DenyReason;
use cotter_policies::{
    Sandbox,
    cases::{Cases, Outcome},
    library::{BASE, CASES, FILES},
};
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
    let missed: Vec<_> = coverage.iter().filter(|file| !file.missed.is_empty()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let reached: Vec<&str> =
        coverage.iter().filter(|file| !file.covered.is_empty()).map(|file| file.file.as_str()).collect();
    assert_eq!(reached, FILES.map(|(name, _)| name), "each file of the library, and no other");
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

fn run(cases: &str) -> Vec<Outcome> {
    let cases: Cases = serde_saphyr::from_str(cases).unwrap();
    cases.run(&base(), &mut Sandbox::new(&BTreeMap::new()).unwrap()).unwrap()
}

/// What is said of the only one that fails.
fn failure(cases: &str) -> String {
    let mut failed: Vec<_> = run(cases).into_iter().filter(|outcome| outcome.failure.is_some()).collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    let failed = failed.remove(0);
    format!("{}: {}", failed.name, failed.failure.unwrap())
}

#[test]
fn a_case_that_expects_something_else_fails() {
    let text = "about: x\ncases: [{name: y, expect: {allow: false, reasons: [NoDelegation]}}, {name: z, expect: {allow: true}}]";
    let outcomes = run(text);
    assert_eq!(
        outcomes.iter().filter(|outcome| outcome.failure.is_some()).count(),
        2,
        "the second lacks its twin: {outcomes:?}"
    );
}

#[test]
fn the_twin_of_an_allowed_case_is_a_refusal() {
    let twin = |allow: &str| {
        format!(
            "about: x\ncases: [{{name: y, expect: {{allow: true}}, twin: {{name: z, set: {{/principal/scopes: []}}, expect: {{{allow}}}}}}}]"
        )
    };
    assert!(run(&twin("allow: false, reasons: [MissingScope]")).iter().all(|outcome| outcome.failure.is_none()));
    // It says what is true of it, and is no twin all the same.
    let allowed = "about: x\ncases: [{name: y, expect: {allow: true}, twin: {name: z, expect: {allow: true}}}]";
    assert!(
        failure(allowed).starts_with("y / z: the twin of an allowed case has to be refused"),
        "{}",
        failure(allowed)
    );
    let nested = "about: x\ncases: [{name: y, expect: {allow: true}, twin: {name: z, set: {/principal/scopes: []}, \
                  expect: {allow: false, reasons: [MissingScope]}, twin: {name: q, expect: {allow: true}}}}]";
    assert!(failure(nested).contains("a twin has no twin of its own"), "{}", failure(nested));
}

#[test]
fn a_change_that_leads_nowhere_fails_its_case_with_what_there_is() {
    let set = |pointer: &str| {
        format!(
            "about: x\ncases: [{{name: y, set: {{{pointer}: [desk]}}, expect: {{allow: false, reasons: [MissingScope]}}}}]"
        )
    };
    assert_eq!(
        failure(&set("/principle/groups")),
        "y: failed to set /principle/groups: there is no /principle; the nearest that there is: /principal, /protocol, /grants"
    );
    assert!(
        run(&set("/principal/groups").replace("reasons: [MissingScope]", "reasons: []"))[0]
            .failure
            .as_ref()
            .unwrap()
            .starts_with("allow is true")
    );
    let of_file = "about: x\nset: {/tol/effect: Read}\ncases: [{name: y, expect: {allow: false}}]";
    assert!(
        failure(of_file).contains("failed to set /tol/effect: there is no /tol; the nearest that there is: /tool"),
        "{}",
        failure(of_file)
    );
    let of_twin = "about: x\ncases: [{name: y, expect: {allow: true}, twin: {name: z, set: {/principal/scope/x: 1}, expect: {allow: false}}}]";
    assert!(failure(of_twin).starts_with("y / z: failed to set /principal/scope/x"), "{}", failure(of_twin));
}

#[test]
fn a_case_of_another_version_fails() {
    let of = |version: &str| {
        format!(
            "about: x\ncases: [{{name: y, set: {{/version: {version}, /principal/scopes: []}}, expect: {{allow: false, reasons: [MissingScope]}}}}]"
        )
    };
    assert!(failure(&of("cotter.input/v9")).contains("write cotter.input/v1"), "{}", failure(&of("cotter.input/v9")));
    assert!(run(&of("cotter.input/v1")).iter().all(|outcome| outcome.failure.is_none()));
}

#[test]
fn the_program_has_every_file_of_cases() {
    let names = files("cases", ".yaml")
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    assert_eq!(names, CASES.map(|(name, _)| name));
    assert_eq!(serde_saphyr::from_str::<Value>(BASE).unwrap(), base());
    for (name, text) in CASES {
        serde_saphyr::from_str::<Cases>(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
