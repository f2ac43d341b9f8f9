//! A rule set by itself, away from any server: for cases, Rego tests, `eval` and `replay`. The rules and their reading are the ones that
//! a sidecar uses; only the input comes from a document instead of a request.

mod called;
mod coverage;
mod explain;
mod probe;
mod rules;
mod suite;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cotter_core::decision::Decision;
pub use coverage::Coverage;
pub use explain::{Evaluation, Explanation, Layer};
use regorus::{Engine, Value};
pub use rules::{RuleReport, Stop};
use serde::Serialize;
pub use suite::{Report, Row, Suite};

use crate::{
    answer::{self, Answer},
    check::{self, Findings, sources},
    engine, library,
    modules::glue,
    names::rule_path,
    reads::Reads,
    syntax::{self, HeadForm, head, names},
};

/// What a Rego test may take: tests build inputs and run many evaluations in one.
const TEST_BUDGET: Duration = Duration::from_secs(2);

/// A rule set: the library and modules of the user.
#[derive(Debug)]
pub struct Sandbox {
    engine: Engine,
    reads: Reads,
    /// The lines of every file of the rule set, tests left out.
    lines: BTreeMap<String, BTreeSet<u32>>,
}

/// One Rego test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Test {
    /// The rule, with its package.
    pub name: String,
    /// Why it did not pass; nothing where it did.
    pub failure: Option<String>,
}

/// Why a sandbox cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A module did not pass the check.
    #[error("failed to check the policy modules:\n{0}")]
    Refused(Findings),
    /// A test file is not Rego.
    #[error("failed to read the tests: {0}")]
    Tests(String),
    /// The input is not a JSON value that the engine takes.
    #[error("failed to read the input: {0}")]
    Input(String),
    /// A rule failed on an input.
    #[error("failed to evaluate the rules: {0}")]
    Failed(String),
}

impl Sandbox {
    /// The library with these modules, which pass the check first.
    ///
    /// # Errors
    /// Everything that is wrong with the modules.
    pub fn new(modules: &BTreeMap<String, String>) -> Result<Self, SandboxError> {
        let mut engine = Engine::new();
        engine.set_strict_builtin_errors(true);
        engine.set_enable_coverage(true);
        engine::bound(&mut engine).map_err(SandboxError::Failed)?;
        let checked = check::check(modules).map_err(SandboxError::Refused)?;
        let mut lines = BTreeMap::new();
        for (name, text) in sources(modules, &glue(&checked.modules)) {
            let added = engine.add_policy(name.to_owned(), text.to_owned());
            added.map_err(|error| SandboxError::Tests(error.to_string()))?;
            let module = syntax::parse(name, text).map_err(SandboxError::Tests)?;
            lines.insert(name.to_owned(), coverage::lines(&module));
        }
        Ok(Self { engine, reads: Reads::of(&checked), lines })
    }

    /// Every file of the rule set, each a name and a text: the library, what joins the modules to it, and the modules, which pass the
    /// check first. Any engine for the language decides by them.
    ///
    /// # Errors
    /// Everything that is wrong with the modules.
    pub fn files(modules: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, SandboxError> {
        let checked = check::check(modules).map_err(SandboxError::Refused)?;
        let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        Ok(sources(modules, &glue(&checked.modules)).into_iter().map(owned).collect())
    }

    /// The decision for an input document, and the delegations that permit it, each by itself, sorted.
    ///
    /// # Errors
    /// An input that is not a JSON value the engine takes. Whatever the rules do is a decision.
    pub fn decide(&mut self, input: &serde_json::Value) -> Result<(Decision, Vec<String>), SandboxError> {
        let input = Value::from_json_str(&input.to_string()).map_err(|error| SandboxError::Input(error.to_string()))?;
        let answer = match engine::eval(&mut self.engine, library::DECISION, &input, engine::BUDGET) {
            Ok(value) => answer::read(&value),
            Err(error) => Answer::refused(error.code, Some(error.message)),
        };
        Ok(((*answer.decision).clone(), answer.delegations.iter().map(ToString::to_string).collect()))
    }

    /// What a rule of the library says to an input, word by word; nothing where it is undefined. [`Sandbox::decide`] reads such an answer
    /// and refuses where it is not the documented one.
    ///
    /// # Errors
    /// An input that is not a JSON value the engine takes, and a rule that fails.
    pub fn answer(&mut self, rule: &str, input: &serde_json::Value) -> Result<Option<serde_json::Value>, SandboxError> {
        let input = Value::from_json_str(&input.to_string()).map_err(|error| SandboxError::Input(error.to_string()))?;
        let found = engine::eval(&mut self.engine, rule, &input, TEST_BUDGET);
        match found.map_err(|error| SandboxError::Failed(error.message))? {
            Value::Undefined => Ok(None),
            said => serde_json::to_value(&said).map(Some).map_err(|error| SandboxError::Failed(error.to_string())),
        }
    }

    /// The same decision on many tools in one evaluation: the input has `tools` instead of `tool`.
    ///
    /// # Errors
    /// As for [`Sandbox::decide`].
    pub fn decide_all(&mut self, input: &serde_json::Value) -> Result<BTreeMap<String, Decision>, SandboxError> {
        let input = Value::from_json_str(&input.to_string()).map_err(|error| SandboxError::Input(error.to_string()))?;
        let found = engine::eval(&mut self.engine, library::DECISIONS, &input, TEST_BUDGET);
        let found = found.map_err(|error| SandboxError::Input(error.message))?;
        let Ok(found) = found.as_object() else { return Ok(BTreeMap::new()) };
        let decision = |(name, value): (&Value, &Value)| {
            let decision = (*answer::read(value).decision).clone();
            Some((name.as_string().ok()?.to_string(), decision))
        };
        Ok(found.iter().filter_map(decision).collect())
    }

    /// Adds files of Rego tests and runs every rule in them whose name begins with `test_`. A test passes when it is true.
    ///
    /// # Errors
    /// A file that is not Rego.
    pub fn test(&mut self, files: &BTreeMap<String, String>) -> Result<Vec<Test>, SandboxError> {
        self.test_telling(files, &mut |_| {})
    }

    fn test_telling(
        &mut self,
        files: &BTreeMap<String, String>,
        at: &mut dyn FnMut(&str),
    ) -> Result<Vec<Test>, SandboxError> {
        let mut rules = Vec::new();
        for (file, text) in files {
            let module = syntax::parse(file, text).map_err(SandboxError::Tests)?;
            let package = names(&module.package.refr);
            let tests = module
                .policy
                .iter()
                .filter(|rule| head(rule).1 == HeadForm::Value)
                .map(|rule| rule_path(&package, rule));
            rules.extend(
                tests
                    .filter(|path| path.last().is_some_and(|name| name.starts_with("test_")))
                    .map(|path| path.join(".")),
            );
            let added = self.engine.add_policy(file.clone(), text.clone());
            added.map_err(|error| SandboxError::Tests(error.to_string()))?;
        }
        rules.sort();
        rules.dedup();
        let mut run = |rule: String| {
            at(&rule);
            self.run(rule)
        };
        Ok(rules.into_iter().map(&mut run).collect())
    }

    fn run(&mut self, rule: String) -> Test {
        let outcome = engine::eval(&mut self.engine, &format!("data.{rule}"), &Value::new_object(), TEST_BUDGET);
        let failure = match outcome {
            Ok(Value::Bool(true)) => None,
            Ok(Value::Undefined) => Some("undefined".to_owned()),
            Ok(other) => Some(format!("it is {other} and not true")),
            Err(error) => Some(error.message),
        };
        Test { name: rule, failure }
    }
}
