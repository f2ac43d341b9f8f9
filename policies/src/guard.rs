//! What reads and tries policy in a process of its own, which can be stopped: the parser takes time exponential in nesting, and a
//! recursion that the check did not foresee overflows the stack and takes its process with it. A policy text meets a long-lived process
//! only after it passed here; tests and trials of policy stay here altogether.
//!
//! The child is the same program, started with a word that its `main` knows ([`Guard::new`], [`serve`]).

mod child;
mod serve;

use std::{collections::BTreeMap, ffi::OsString, io, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
pub use serve::serve;

use crate::{
    check::{self, Finding, Findings, LeftOut, Texts},
    sandbox::{Evaluation, Report, Suite},
};

/// What one child may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of processor time.
    pub cpu_seconds: u64,
    /// Bytes of address space: the program itself, one stack and what a rule set needs.
    pub memory: u64,
    /// Time on the wall: longer than the processor time, for a machine that is busy with something else.
    pub patience: Duration,
}

impl Limits {
    /// For a check: the largest rule set that passes takes a few hundredths of a second.
    pub const CHECK: Self = Self { cpu_seconds: 1, memory: 1 << 30, patience: Duration::from_secs(15) };
    /// For one decision and its explanation.
    pub const EVAL: Self = Self { cpu_seconds: 5, ..Self::CHECK };
    /// For the tests and cases of a folder: each has its own budget, and there can be thousands.
    pub const TEST: Self = Self { cpu_seconds: 60, patience: Duration::from_secs(180), ..Self::CHECK };
}

/// A program to check with.
#[derive(Debug, Clone)]
pub struct Guard {
    program: PathBuf,
    word: OsString,
    limits: Option<Limits>,
}

/// Why a child gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The child cannot be started or spoken with.
    #[error("failed to start the policy checker {program}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The child was stopped, or ended by itself before it was done.
    #[error("failed to run the rules{}: {how}", at.as_ref().map_or(String::new(), |at| format!(" at {at}")))]
    Stopped {
        /// What it said last that it was doing.
        at: Option<String>,
        /// Which limit it hit.
        how: String,
    },
    /// The rules, the tests or the input cannot be used.
    #[error("{0}")]
    Unusable(String),
}

/// What a check finds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Review {
    /// What keeps the modules from being used.
    pub findings: Vec<Finding>,
    /// What they may mean otherwise than their author thinks; it keeps nothing from being used.
    pub warnings: Vec<Finding>,
}

/// What a child is asked.
#[derive(Serialize, Deserialize)]
pub(crate) struct Question {
    limits: Limits,
    job: Job,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Job {
    Check { modules: BTreeMap<String, String>, left_out: LeftOut },
    Test(Box<Suite>),
    Eval { modules: BTreeMap<String, String>, input: serde_json::Value, explain: bool },
}

/// What a child says, a line each: what it begins with, and at last what came of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line<T> {
    At(String),
    Done(T),
}

impl Guard {
    /// A guard that starts this very program with the word that makes it call [`serve`].
    ///
    /// # Errors
    /// The program's own path is not known.
    pub fn new(word: impl Into<OsString>) -> io::Result<Self> {
        Ok(Self::of(std::env::current_exe()?, word))
    }

    /// A guard that starts another program.
    #[must_use]
    pub fn of(program: PathBuf, word: impl Into<OsString>) -> Self {
        Self { program, word: word.into(), limits: None }
    }

    /// The same with other limits for whatever it is asked.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Checks the modules of one server. What is refused without a parser is refused here; the rest meets the child only.
    ///
    /// # Errors
    /// The checker cannot be started. Whatever the modules do is a finding.
    pub fn check(&self, modules: &BTreeMap<String, String>) -> Result<Result<(), Findings>, GuardError> {
        let findings = self.review(modules)?.findings;
        Ok(if findings.is_empty() { Ok(()) } else { Err(Findings(findings)) })
    }

    /// The same, with what keeps nothing from being used.
    ///
    /// # Errors
    /// As for [`Guard::check`].
    pub fn review(&self, modules: &BTreeMap<String, String>) -> Result<Review, GuardError> {
        self.review_beside(modules, LeftOut::default())
    }

    /// The same, where modules that are used together with these could not even be read as text.
    ///
    /// # Errors
    /// As for [`Guard::check`].
    pub fn review_beside(&self, modules: &BTreeMap<String, String>, unread: LeftOut) -> Result<Review, GuardError> {
        let Texts { findings, good, left_out } = check::texts(modules, unread);
        if good.is_empty() {
            return Ok(Review { findings, warnings: Vec::new() });
        }
        let job = Job::Check { modules: good.clone(), left_out };
        let mut review = match self.ask(Limits::CHECK, job) {
            Err(GuardError::Stopped { at, how }) => stopped(&good, at.as_deref(), &how),
            answer => answer?,
        };
        review.findings.extend(findings);
        review.findings.sort();
        review.findings.dedup();
        Ok(review)
    }

    /// Runs tests and cases.
    ///
    /// # Errors
    /// Modules that do not pass the check, tests that cannot be run, and whatever ends the child.
    pub fn test(&self, suite: Suite) -> Result<Report, GuardError> {
        for files in [&suite.modules, &suite.tests] {
            check::before_parsing(files).map_err(|findings| GuardError::Unusable(findings.to_string()))?;
        }
        self.ask::<Result<Report, String>>(Limits::TEST, Job::Test(Box::new(suite)))?.map_err(GuardError::Unusable)
    }

    /// Decides on one input.
    ///
    /// # Errors
    /// Modules that do not pass the check, an input that is not a JSON value the engine takes, and whatever ends the child.
    pub fn eval(
        &self,
        modules: &BTreeMap<String, String>,
        input: &serde_json::Value,
        explain: bool,
    ) -> Result<Evaluation, GuardError> {
        check::before_parsing(modules).map_err(|findings| GuardError::Unusable(findings.to_string()))?;
        let job = Job::Eval { modules: modules.clone(), input: input.clone(), explain };
        self.ask::<Result<Evaluation, String>>(Limits::EVAL, job)?.map_err(GuardError::Unusable)
    }

    fn ask<T: for<'de> Deserialize<'de>>(&self, limits: Limits, job: Job) -> Result<T, GuardError> {
        let failed = |source: io::Error| GuardError::Start { program: self.program.clone(), source };
        let limits = self.limits.unwrap_or(limits);
        let question = serde_json::to_vec(&Question { limits, job }).map_err(|error| failed(error.into()))?;
        let ended = child::run(&self.program, &self.word, question, limits).map_err(failed)?;
        let (mut at, mut done) = (None, None);
        for line in ended.answer.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::At(place)) => at = Some(place),
                Ok(Line::Done(answer)) => done = Some(answer),
                Err(_) => {}
            }
        }
        match (ended.stopped, done) {
            (None, Some(answer)) => Ok(answer),
            (None, None) => Err(GuardError::Stopped { at, how: "the check gave no answer".to_owned() }),
            (Some(how), _) => Err(GuardError::Stopped { at, how }),
        }
    }
}

/// The module that the child was busy with, or all of them where it was busy with them together.
fn stopped(modules: &BTreeMap<String, String>, at: Option<&str>, how: &str) -> Review {
    let help = "split large rules, and take apart what is nested deeply";
    let message = format!("the policy takes too much to read: {how}");
    let culprits =
        modules.iter().filter(|(name, _)| at.is_none_or(|at| at == name.as_str() || !modules.contains_key(at)));
    let finding = |(name, text): (&String, &String)| Finding::at(name, text, (1, 1), message.clone(), help);
    Review { findings: culprits.map(finding).collect(), warnings: Vec::new() }
}
