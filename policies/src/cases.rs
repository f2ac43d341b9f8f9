//! Cases as data: an input, changed member by member, and the decision that it has to give. An allowed case carries its twin, the
//! smallest change that makes it a refusal.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    decision::{Approval, Decision},
    reason::DenyReason,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    document::Input,
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
        for case in &self.cases {
            let (input, arguments) = (changed(&changed(base, &self.set), &case.set), case.arguments.as_deref());
            outcomes.push(case.run(&case.name, &input, arguments, sandbox)?);
            match &case.twin {
                Some(twin) => {
                    let name = format!("{} / {}", case.name, twin.name);
                    let arguments = twin.arguments.as_deref().or(arguments);
                    outcomes.push(twin.run(&name, &changed(&input, &twin.set), arguments, sandbox)?);
                }
                None if case.expect.allow => {
                    outcomes.push(Outcome::failed(&case.name, "an allowed case needs its refused twin"))
                }
                None => {}
            }
        }
        Ok(outcomes)
    }
}

impl Case {
    fn run(
        &self,
        name: &str,
        input: &Value,
        arguments: Option<&str>,
        sandbox: &mut Sandbox,
    ) -> Result<Outcome, SandboxError> {
        let (decision, delegation) = match arguments.map(|arguments| sandbox.called(input, arguments)) {
            None => sandbox.decide(input)?,
            Some(Ok(input)) => sandbox.decide(&input)?,
            Some(Err(refused)) => (refused, None),
        };
        let codes = decision.reasons.iter().map(|reason| reason.code).collect();
        let form = serde_json::from_value::<Input>(input.clone()).err().filter(|_| !self.malformed);
        let failure = match form {
            Some(error) => Some(format!("the input is not of the documented form: {error}")),
            None => self.expect.differs(&decision, delegation.as_deref()),
        };
        Ok(Outcome { name: name.to_owned(), codes, failure })
    }
}

impl Outcome {
    fn failed(name: &str, failure: &str) -> Self {
        Self { name: name.to_owned(), codes: BTreeSet::new(), failure: Some(failure.to_owned()) }
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

/// A document with members set, by JSON pointer to an object member; null removes it.
#[must_use]
pub fn changed(document: &Value, changes: &BTreeMap<String, Value>) -> Value {
    let mut document = document.clone();
    for (pointer, value) in changes {
        let Some((parent, name)) = pointer.rsplit_once('/') else { continue };
        let name = name.replace("~1", "/").replace("~0", "~");
        let Some(Value::Object(members)) = document.pointer_mut(parent) else { continue };
        match value {
            Value::Null => drop(members.remove(&name)),
            value => drop(members.insert(name, value.clone())),
        }
    }
    document
}
