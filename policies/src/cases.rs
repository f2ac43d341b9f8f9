//! Cases as data: an input, changed member by member, and the decision that it has to give. An allowed case carries its twin, the
//! smallest change that makes it a refusal.

use std::collections::{BTreeMap, BTreeSet};

mod change;

pub use change::{Unset, changed};
use cotter_core::{
    decision::{Approval, Decision},
    reason::DenyReason,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    document::{INPUT_VERSION, Input},
    sandbox::{Sandbox, SandboxError},
};

/// One file of cases.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    /// What they are about.
    pub about: String,
    /// Modules of the user, by name.
    #[serde(default)]
    pub modules: BTreeMap<String, String>,
    /// Changes to the base input for all of them, by JSON pointer; null removes a member.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it says, as a sentence.
    pub name: String,
    /// Changes to the input.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// The arguments of the call, exactly as a caller sends them, in place of `/args`: read, or refused, as a sidecar does it.
    #[serde(default)]
    pub arguments: Option<String>,
    /// The decision.
    pub expect: Expect,
    /// For an allowed case, what makes it a refusal: changes on top of its own.
    #[serde(default)]
    pub twin: Option<Box<Case>>,
    /// Set where the input is meant not to be one that Cotter would make.
    #[serde(default)]
    pub malformed: bool,
}

/// What a decision has to be. What is left out is not looked at, but for the reasons.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expect {
    /// Whether it is allowed.
    pub allow: bool,
    /// The reasons, each a code, a space and its detail; a code alone stands for any detail.
    #[serde(default)]
    pub reasons: BTreeSet<String>,
    /// The delegation that permits it.
    #[serde(default)]
    pub delegation: Option<String>,
    /// Whether a person has to agree.
    #[serde(default)]
    pub approval: Option<Approval>,
    /// Everything that has to hold on the way.
    #[serde(default)]
    pub obligations: Option<Value>,
    /// Scopes that would help.
    #[serde(default)]
    pub challenge_scopes: Option<Vec<String>>,
}

/// What came of one case.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Outcome {
    /// The case's name; a twin's follows its case's after a slash.
    pub name: String,
    /// Reasons that the decision had.
    pub codes: BTreeSet<DenyReason>,
    /// Why it failed; nothing where it passed.
    pub failure: Option<String>,
}

impl Cases {
    /// Runs every case and twin over a base input.
    ///
    /// # Errors
    /// Modules that do not pass the check, or an input that is no JSON value.
    pub fn run(&self, base: &Value, sandbox: &mut Sandbox) -> Result<Vec<Outcome>, SandboxError> {
        let mut outcomes = Vec::new();
        let base = changed(base, &self.set);
        for case in &self.cases {
            match base.as_ref().map_err(Clone::clone).and_then(|base| changed(base, &case.set)) {
                Ok(input) => case.run_with_twin(&input, sandbox, &mut outcomes)?,
                Err(unset) => outcomes.push(Outcome::failed(&case.name, unset.to_string())),
            }
        }
        Ok(outcomes)
    }
}

impl Case {
    fn run_with_twin(
        &self,
        input: &Value,
        sandbox: &mut Sandbox,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), SandboxError> {
        let arguments = self.arguments.as_deref();
        outcomes.push(self.run(&self.name, input, arguments, sandbox)?);
        let Some(twin) = &self.twin else {
            let is_alone = self.expect.allow;
            outcomes.extend(is_alone.then(|| Outcome::failed(&self.name, "an allowed case needs its refused twin")));
            return Ok(());
        };
        let name = format!("{} / {}", self.name, twin.name);
        let outcome = match (twin.is_no_twin(self), changed(input, &twin.set)) {
            (Some(why), _) => Outcome::failed(&name, why),
            (None, Err(unset)) => Outcome::failed(&name, unset.to_string()),
            (None, Ok(input)) => twin.run(&name, &input, twin.arguments.as_deref().or(arguments), sandbox)?,
        };
        outcomes.push(outcome);
        Ok(())
    }

    /// Why this one says nothing as the twin of that case.
    fn is_no_twin(&self, case: &Self) -> Option<&'static str> {
        if case.expect.allow && self.expect.allow {
            return Some(
                "the twin of an allowed case has to be refused: change it until it is, and expect `allow: false`",
            );
        }
        self.twin.is_some().then_some("a twin has no twin of its own: write another case")
    }

    fn run(
        &self,
        name: &str,
        input: &Value,
        arguments: Option<&str>,
        sandbox: &mut Sandbox,
    ) -> Result<Outcome, SandboxError> {
        let (decision, delegations) = match arguments.map(|arguments| sandbox.called(input, arguments)) {
            None => sandbox.decide(input)?,
            Some(Ok(input)) => sandbox.decide(&input)?,
            Some(Err(refused)) => (refused, Vec::new()),
        };
        let codes = decision.reasons.iter().map(|reason| reason.code).collect();
        let form = form(input).filter(|_| !self.malformed);
        let failure = match form {
            Some(error) => Some(format!("the input is not of the documented form: {error}")),
            None => self.expect.differs(&decision, delegations.first().map(String::as_str)),
        };
        Ok(Outcome { name: name.to_owned(), codes, failure })
    }
}

impl Outcome {
    fn failed(name: &str, failure: impl Into<String>) -> Self {
        Self { name: name.to_owned(), codes: BTreeSet::new(), failure: Some(failure.into()) }
    }
}

/// Why an input is none that Cotter makes.
fn form(input: &Value) -> Option<String> {
    match serde_json::from_value::<Input>(input.clone()) {
        Err(error) => Some(error.to_string()),
        Ok(read) if read.version != INPUT_VERSION => {
            Some(format!("its version is {}: write {INPUT_VERSION}, or leave it to the base", read.version))
        }
        Ok(_) => None,
    }
}

impl Expect {
    fn differs(&self, decision: &Decision, delegation: Option<&str>) -> Option<String> {
        let reasons: BTreeSet<String> = decision.reasons.iter().map(ToString::to_string).collect();
        let challenge: Vec<String> = decision.challenge_scopes.iter().map(ToString::to_string).collect();
        let told = |code: &str| reasons.iter().any(|reason| reason == code || reason.split(' ').next() == Some(code));
        let same = self.reasons.len() == reasons.len() && self.reasons.iter().all(|reason| told(reason));
        let checks = [
            (self.allow == decision.allow, format!("allow is {}", decision.allow)),
            (same, format!("the reasons are {reasons:?}")),
            (
                self.delegation.as_deref().is_none_or(|name| Some(name) == delegation),
                format!("the delegation is {delegation:?}"),
            ),
            (
                self.approval.is_none_or(|approval| approval == decision.obligations.approval),
                format!("the approval is {:?}", decision.obligations.approval),
            ),
            (
                self.obligations.is_none() || self.obligations == serde_json::to_value(&decision.obligations).ok(),
                format!("the obligations are {:?}", decision.obligations),
            ),
            (
                self.challenge_scopes.as_ref().is_none_or(|scopes| *scopes == challenge),
                format!("the challenge names {challenge:?}"),
            ),
        ];
        let wrong: Vec<String> = checks.into_iter().filter(|(right, _)| !right).map(|(_, text)| text).collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}
