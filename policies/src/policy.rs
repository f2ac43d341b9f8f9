//! A snapshot's rule set, prepared once, and the decision on it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cotter_core::{decision::Kind, name::ToolName, principal::Principal, reason::DenyReason, snapshot::Snapshot};
use jiff::Timestamp;
use quick_cache::sync::Cache;
use regorus::Value;

use crate::{
    answer::{self, Answer},
    ask::{Ask, ListAsk, Verdict},
    authority::Authority,
    check::{self, Findings},
    document::AnnotationsDocument,
    engine::{BUDGET, Engines, EvalError, worked},
    facts::{Facts, ToolFact},
    input::Question,
    library,
    reads::Reads,
};

/// Decisions kept. An entry is a few hundred bytes, so this is about a megabyte at most.
const REMEMBERED: usize = 4096;
/// Tools of a list in one evaluation, and what that may take: a long list is asked in several.
const LIST_CHUNK: usize = 256;
const LIST_BUDGET: Duration = Duration::from_millis(200);
/// What a list may take in all, of this thread's time. What is left open then is refused.
const WHOLE_LIST: Duration = Duration::from_secs(2);

/// Why a snapshot's rule set cannot be used. The one before it stays in force.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A module of the user did not pass the check.
    #[error("failed to check the policy modules:\n{0}")]
    Refused(Findings),
    /// A fact is not a JSON value.
    #[error("failed to read the snapshot's facts: {0}")]
    Facts(#[source] serde_json::Error),
    /// Two delegations of one name.
    #[error("failed to read the snapshot's delegations: two of them are called {0:?}")]
    DuplicateGrant(String),
    /// More tools than can be counted.
    #[error("failed to read the snapshot's tools: there are too many")]
    TooManyTools,
}

/// What a cached decision depends on. The rest of the input is the same for every decision of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    authority: u128,
    tool: u32,
    call: bool,
    modern: bool,
    pin: crate::PinFacts,
    /// Two definitions of one tool differ for a rule set that reads what they say.
    said: Option<AnnotationsDocument>,
}

/// A snapshot's rule set: the library, the modules of the user and the facts, parsed and keyed once.
///
/// Shared by all threads. A decision takes an engine of its own, so no two decisions wait for each other.
pub struct Policy {
    id: u64,
    facts: Facts,
    modules: BTreeMap<String, String>,
    engines: Arc<Engines>,
    reads: Reads,
    remembered: Cache<Key, Answer>,
}

impl Policy {
    /// Prepares a snapshot's rule set. Its modules are checked and parsed here and never again.
    ///
    /// # Errors
    /// See [`PolicyError`]; nothing of a rule set that does not pass is used.
    pub fn prepare(snapshot: &Snapshot) -> Result<Self, PolicyError> {
        Self::after(None, snapshot)
    }

    /// Prepares the rule set of a snapshot that follows another one. The same modules are not checked again, and stay the same rules: what
    /// does not end in them has not ended with the snapshot.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn after(before: Option<&Self>, snapshot: &Snapshot) -> Result<Self, PolicyError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let facts = Facts::new(snapshot)?;
        let modules = snapshot.policies.clone();
        let (engines, reads) = match before.filter(|before| before.modules == modules) {
            Some(before) => (Arc::clone(&before.engines), before.reads),
            None => {
                let checked = check::check(&modules).map_err(PolicyError::Refused)?;
                let reads = Reads::of(&checked);
                (Arc::new(checked.engines), reads)
            }
        };
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, facts, modules, engines, reads, remembered: Cache::new(REMEMBERED) })
    }

    /// Who a principal is to this policy at a time: made once for a token, kept with it, and passed to every question.
    ///
    /// # Errors
    /// A fact that is not a JSON value (never, for a principal made from a token).
    pub fn authority(&self, principal: &Principal, now: Timestamp) -> Result<Authority, PolicyError> {
        Authority::new(self.id, &self.facts, principal, now)
    }

    /// Whether an authority was made by this policy and still says the truth.
    #[must_use]
    pub fn accepts(&self, authority: &Authority, now: Timestamp) -> bool {
        authority.policy == self.id && authority.is_valid(now)
    }

    /// Whether decisions on calls are remembered: nothing in the rule set reads the arguments, the time, an approval or a ledger.
    #[must_use]
    pub const fn is_cacheable(&self) -> bool {
        self.reads.call_is_stable()
    }

    /// Whether there are rules that somebody else wrote: then nobody knows how long an evaluation takes.
    #[must_use]
    pub fn has_modules(&self) -> bool {
        !self.modules.is_empty()
    }

    /// Whether anything in the rule set reads the arguments of a call: without them the decision cannot be made again.
    #[must_use]
    pub const fn reads_arguments(&self) -> bool {
        self.reads.arguments() || self.reads.arguments_digest()
    }

    /// Whether anything in the rule set reads what the server says of a tool: without it the decision cannot be made again.
    #[must_use]
    pub const fn reads_annotations(&self) -> bool {
        self.reads.said_of_tool()
    }

    /// Decides on one tool. Total: whatever goes wrong is a refusal with its own reason.
    ///
    /// A call is first decided as a list would, without arguments: what a principal does not see it cannot call.
    #[must_use]
    pub fn decide(&self, ask: &Ask<'_>) -> Verdict {
        let Some(tool) = self.facts.tools.get(ask.tool) else {
            return verdict(Answer::refused(DenyReason::Unlisted, None), false);
        };
        let made;
        let authority = match ask.authority.filter(|authority| self.accepts(authority, ask.now)) {
            Some(authority) => authority,
            None => match self.authority(ask.principal, ask.now) {
                Ok(authority) => {
                    made = authority;
                    &made
                }
                Err(error) => return verdict(Answer::refused(DenyReason::PolicyError, Some(error.to_string())), false),
            },
        };
        let answer = |question: &Question<'_>| Ok::<_, Infallible>(self.answer(question, tool));
        let Ok(verdict) = self.settle(&Question::new(ask, authority), answer);
        verdict
    }

    /// What [`Policy::decide`] says, where no rule has to be evaluated for it.
    #[must_use]
    pub fn recall(&self, ask: &Ask<'_>) -> Option<Verdict> {
        let tool = self.facts.tools.get(ask.tool)?;
        let authority = ask.authority.filter(|authority| self.accepts(authority, ask.now))?;
        let answer = |question: &Question<'_>| self.remembered(question, tool).ok_or(());
        self.settle(&Question::new(ask, authority), answer).ok()
    }

    /// A list has one answer. So has a call where the rules do not tell them apart; else a call is asked about as a list first.
    fn settle<E>(
        &self,
        question: &Question<'_>,
        answer: impl Fn(&Question<'_>) -> Result<Answer, E>,
    ) -> Result<Verdict, E> {
        if question.kind == Kind::List || !self.reads.tells_calls_from_lists() {
            return answer(question).map(seen);
        }
        let listed = answer(&question.as_list())?;
        match listed.decision.allow {
            true => answer(question).map(|answer| verdict(answer, true)),
            false => Ok(verdict(listed, false)),
        }
    }

    /// The input that this question's evaluation gets, to explain a decision by ([`crate::Sandbox::explain`]); nothing for a tool that
    /// is not declared.
    ///
    /// # Errors
    /// Arguments or facts that are not JSON.
    pub fn input(&self, ask: &Ask<'_>) -> Result<Option<serde_json::Value>, PolicyError> {
        let Some(tool) = self.facts.tools.get(ask.tool) else { return Ok(None) };
        let authority = self.authority(ask.principal, ask.now)?;
        let question = Question::new(ask, &authority);
        // Everything is shown, also what these rules do not read.
        let everything = Reads { whole: true, ..self.reads };
        let document = question.document(&self.facts.server, tool, &everything);
        let document = document.map_err(|error| PolicyError::Facts(serde::ser::Error::custom(error.message)))?;
        serde_json::to_value(&document).map(Some).map_err(PolicyError::Facts)
    }

    /// Decides on many tools at once: which of them may the principal see? The rules are those of [`Policy::decide`].
    #[must_use]
    pub fn visible(&self, ask: &ListAsk<'_>) -> BTreeMap<ToolName, Verdict> {
        let made = ask.authority.filter(|authority| self.accepts(authority, ask.now)).cloned();
        let authority = match made.map_or_else(|| self.authority(ask.principal, ask.now), Ok) {
            Ok(authority) => authority,
            Err(error) => {
                let answer = Answer::refused(DenyReason::PolicyError, Some(error.to_string()));
                return ask.tools.keys().map(|tool| (tool.clone(), verdict(answer.clone(), false))).collect();
            }
        };
        let mut verdicts = BTreeMap::new();
        let mut open = Vec::new();
        for (name, listed) in ask.tools {
            let Some(tool) = self.facts.tools.get(name) else {
                verdicts.insert(name.clone(), verdict(Answer::refused(DenyReason::Unlisted, None), false));
                continue;
            };
            let question = Question::of_list(ask, &authority, name, *listed);
            match self.remembered(&question, tool) {
                Some(answer) => drop(verdicts.insert(name.clone(), seen(answer))),
                None => open.push((question, tool)),
            }
        }
        let end = worked() + WHOLE_LIST;
        for chunk in open.chunks(LIST_CHUNK) {
            verdicts.extend(self.list(chunk, end));
        }
        verdicts
    }

    /// One evaluation over many tools. Where it fails as a whole, each tool is asked about by itself, so that one tool's trouble is its
    /// own.
    fn list(&self, questions: &[(Question<'_>, &ToolFact)], end: Duration) -> Vec<(ToolName, Verdict)> {
        let Some((first, _)) = questions.first() else { return Vec::new() };
        if self.reads.whole || worked() > end {
            // A module that takes the input whole would see the other tools.
            return self.one_by_one(questions, end);
        }
        let tools = questions
            .iter()
            .map(|(question, tool)| (Value::from(question.tool.as_str()), question.tool_document(tool, &self.reads)));
        let input = first.list_document(&self.facts.server, Value::from(tools.collect::<BTreeMap<_, _>>()));
        let found = self.engines.eval(library::DECISIONS, &input, 0, LIST_BUDGET).ok();
        let Some(found) = found.as_ref().and_then(|found| found.as_object().ok()) else {
            return self.one_by_one(questions, end);
        };
        let answer = |question: &Question<'_>, tool: &ToolFact| {
            let answer = answer::read(found.get(&Value::from(question.tool.as_str())).unwrap_or(&Value::Undefined));
            self.remember(question, tool, &answer);
            answer
        };
        questions.iter().map(|(question, tool)| (question.tool.clone(), seen(answer(question, tool)))).collect()
    }

    fn one_by_one(&self, questions: &[(Question<'_>, &ToolFact)], end: Duration) -> Vec<(ToolName, Verdict)> {
        let late = || {
            let message = format!("the list took longer than {} s", WHOLE_LIST.as_secs());
            Answer::refused(DenyReason::PolicyTimeout, Some(message))
        };
        let answer = |question, tool| if worked() > end { late() } else { self.answer(question, tool) };
        questions.iter().map(|(question, tool)| (question.tool.clone(), seen(answer(question, tool)))).collect()
    }

    fn answer(&self, question: &Question<'_>, tool: &ToolFact) -> Answer {
        if let Some(answer) = self.remembered(question, tool) {
            return answer;
        }
        let input = match question.document(&self.facts.server, tool, &self.reads) {
            Ok(input) => input,
            Err(EvalError { code, message }) => return Answer::refused(code, Some(message)),
        };
        match self.engines.eval(library::DECISION, &input, question.size(), BUDGET) {
            Ok(value) => {
                let answer = answer::read(&value);
                self.remember(question, tool, &answer);
                answer
            }
            Err(EvalError { code, message }) => Answer::refused(code, Some(message)),
        }
    }

    fn remembered(&self, question: &Question<'_>, tool: &ToolFact) -> Option<Answer> {
        self.remembered.get(&self.key(question, tool)?)
    }

    fn remember(&self, question: &Question<'_>, tool: &ToolFact, answer: &Answer) {
        if let Some(key) = self.key(question, tool) {
            self.remembered.insert(key, answer.clone());
        }
    }

    /// What the answer depends on; nothing where it depends on more than a key can hold.
    fn key(&self, question: &Question<'_>, tool: &ToolFact) -> Option<Key> {
        let stable = match question.kind {
            Kind::Call => self.reads.call_is_stable(),
            Kind::List => self.reads.list_is_stable(),
        };
        let told_apart = self.reads.tells_calls_from_lists();
        if !stable || (told_apart && !question.has_usual_method()) {
            return None;
        }
        Some(Key {
            authority: question.authority.key,
            tool: tool.index,
            call: told_apart && question.kind == Kind::Call,
            modern: question.is_modern(),
            pin: question.pin,
            said: question.said(&self.reads),
        })
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy").field("id", &self.id).field("reads", &self.reads).finish_non_exhaustive()
    }
}

fn verdict(answer: Answer, visible: bool) -> Verdict {
    Verdict { decision: answer.decision, delegations: answer.delegations, visible }
}

fn seen(answer: Answer) -> Verdict {
    let visible = answer.decision.allow;
    verdict(answer, visible)
}
