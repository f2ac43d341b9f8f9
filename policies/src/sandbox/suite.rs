//! The tests and cases of a folder, run together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Coverage, Sandbox, SandboxError};
use crate::{cases::Cases, check};

/// What is run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Suite {
    /// Modules, by file.
    pub modules: BTreeMap<String, String>,
    /// Tests in Rego, by file.
    pub tests: BTreeMap<String, String>,
    /// Cases, by file.
    pub cases: BTreeMap<String, Cases>,
    /// The input that cases start from.
    pub base: Value,
}

/// One test or case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The file.
    pub file: String,
    /// The test's or case's name.
    pub name: String,
    /// Why it failed; nothing where it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What came of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The tests, then the cases.
    pub tests: Vec<Row>,
    /// The lines of the modules that they reached.
    pub coverage: Vec<Coverage>,
}

impl Suite {
    /// Runs everything. Says what it is about to run, for whoever has to stop it.
    ///
    /// # Errors
    /// Modules that do not pass the check, tests that are not Rego, and rules of tests that use themselves.
    pub fn run(&self, at: &mut dyn FnMut(&str)) -> Result<Report, SandboxError> {
        check::check_tests(&self.modules, &self.tests, at).map_err(SandboxError::Refused)?;
        at("the modules");
        let mut sandbox = Sandbox::new(&self.modules)?;
        let mut tests = Vec::new();
        for (file, text) in &self.tests {
            let one = BTreeMap::from([(file.clone(), text.clone())]);
            let found = sandbox.test_telling(&one, &mut |test| at(&format!("{file}: {test}")));
            let row = |test: super::Test| Row { file: file.clone(), name: test.name, failure: test.failure };
            tests.extend(found?.into_iter().map(row));
        }
        for (file, cases) in &self.cases {
            at(file);
            let found = match cases.modules.is_empty() {
                true => cases.run(&self.base, &mut sandbox),
                false => Sandbox::new(&cases.modules).and_then(|mut own| cases.run(&self.base, &mut own)),
            };
            let outcomes = found.map_err(|error| SandboxError::Tests(format!("{file}: {error}")))?;
            let row = |case: crate::cases::Outcome| Row { file: file.clone(), name: case.name, failure: case.failure };
            tests.extend(outcomes.into_iter().map(row));
        }
        let own = |coverage: &Coverage| self.modules.contains_key(&coverage.file);
        Ok(Report { tests, coverage: sandbox.coverage().into_iter().filter(own).collect() })
    }
}
