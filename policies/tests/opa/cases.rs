//! Every case, in both engines.

use std::{fs, path::Path};

use cotter_policies::{
    Sandbox,
    cases::{Cases, changed},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    answers::{allows, same},
    bodies::worked_modules,
    program::{Files, checkout},
};

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Mia, who calls case_tag.
pub(crate) fn base() -> Value {
    read(&checkout("policies/cases/base.yaml"))
}

/// Every file of cases of the library, and the one of the worked modules.
fn every_file() -> Vec<Cases> {
    let entries = fs::read_dir(checkout("policies/cases")).unwrap().map(|entry| entry.unwrap().path());
    let paths = entries.filter(|path| !path.ends_with("base.yaml"));
    let mut files: Vec<Cases> = paths.map(|path| read(&path)).collect();
    let mut worked: Cases = read(&checkout("examples/policies/cases.yaml"));
    worked.modules = worked_modules();
    files.push(worked);
    files
}

/// The inputs of the cases and of their twins, but for those that no rule has to do with: arguments that are refused before there is an
/// input, and an evaluation that is stopped.
fn inputs(cases: &Cases, sandbox: &Sandbox) -> Vec<Value> {
    let base = changed(&base(), &cases.set).unwrap();
    let each = cases.cases.iter().flat_map(|case| {
        let (input, arguments) = (changed(&base, &case.set).unwrap(), case.arguments.as_deref());
        let twin = case
            .twin
            .as_ref()
            .map(|twin| (changed(&input, &twin.set).unwrap(), twin.arguments.as_deref().or(arguments), &twin.expect));
        [Some((input, arguments, &case.expect)), twin].into_iter().flatten()
    });
    let ends = each.filter(|(_, _, expect)| !expect.reasons.contains("PolicyTimeout"));
    let called = ends.filter_map(|(input, arguments, _)| match arguments {
        Some(arguments) => sandbox.called(&input, arguments).ok(),
        None => Some(input),
    });
    called.collect()
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn every_case_has_the_same_decision() {
    let (mut allowed, mut all) = (0, 0);
    for cases in every_file() {
        let mut sandbox = Sandbox::new(&cases.modules).unwrap();
        let inputs = inputs(&cases, &sandbox);
        let answers = same(&cases.about, &mut sandbox, &Files::new(&cases.modules), &inputs);
        for (input, answer) in inputs.iter().zip(&answers).filter(|_| answers.len() == inputs.len()) {
            assert_eq!(sandbox.decide(input).unwrap().0.allow, allows(answer), "{}: {input}", cases.about);
        }
        allowed += answers.iter().filter(|answer| allows(answer)).count();
        all += inputs.len();
    }
    assert!(allowed > 20 && all > 50, "{allowed} of {all}");
}
