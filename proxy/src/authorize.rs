//! The permit: proof that the decision allowed one call. Sending a call demands one, so forgetting a check does not compile.
//!
//! List and call ask the same policy on the same verified catalogue, and what is refused whatever the arguments are does not
//! exist for its caller, in the list and in the call alike.

use std::{collections::BTreeMap, sync::Arc};

use cotter_core::{
    catalogue::{Entry, Lookup},
    decision::{Approval, Decision, Era, Kind, Obligations},
    fingerprint::Fingerprint,
    name::ToolName,
    reason::DenyReason,
    snapshot::InsufficientScope,
    tool::ToolObject,
};
use cotter_policies::{Ask, ListAsk, Listed, PinFacts, Verdict};
use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{
    respond::{Refusal, With},
    state::{Caller, Enforced},
};

/// What was allowed. Only the decision in this module makes one; it is good for one call.
#[derive(Debug)]
pub struct Permit {
    tool: ToolName,
    fingerprint: Option<Fingerprint>,
    definition: Arc<ToolObject>,
    delegations: Arc<[Arc<str>]>,
    obligations: Obligations,
}

impl Permit {
    /// The tool that may be called.
    #[must_use]
    pub const fn tool(&self) -> &ToolName {
        &self.tool
    }
    /// The verified definition that was decided on.
    #[must_use]
    pub const fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_ref()
    }
    /// Whether another definition of the tool says what the one said that was decided on: the same annotations.
    #[must_use]
    pub fn was_decided_on(&self, other: &Entry) -> bool {
        annotations(&self.definition) == annotations(&other.served)
    }
    /// The delegations that permit it, each by itself, sorted.
    #[must_use]
    pub fn delegations(&self) -> &[Arc<str>] {
        &self.delegations
    }
    /// What has to hold on the way.
    #[must_use]
    pub const fn obligations(&self) -> &Obligations {
        &self.obligations
    }
}

/// Who asks, of which rules, and when.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The rules.
    pub enforced: &'a Enforced,
    /// The caller.
    pub caller: &'a Caller,
    /// The line of the protocol.
    pub era: Era,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Question<'a> {
    /// Whether this tool may be called with these arguments.
    ///
    /// # Errors
    /// Every reason from `NotReady` to `ApprovalRequired`; those that do not depend on the arguments read as an unknown tool.
    pub fn call(&self, tool: &str, arguments: Option<&str>) -> Result<(Permit, &'a Entry), Refusal> {
        let catalogue = self.enforced.catalogue()?;
        self.caller.standing.check(self.enforced.snapshot(), self.now)?;
        let entry = match catalogue.lookup(tool) {
            Lookup::Callable(entry) => entry,
            Lookup::Refused(reason) => return Err(Refusal::new(reason)),
        };
        let ask = Ask {
            principal: &self.caller.principal,
            authority: self.caller.authority.as_ref(),
            era: self.era,
            method: "tools/call",
            kind: Kind::Call,
            tool: &entry.name,
            pin: facts(entry),
            annotations: annotations(&entry.served),
            arguments,
            now: self.now,
        };
        let remembered = self.enforced.policy.recall(&ask);
        let verdict = remembered.unwrap_or_else(|| self.evaluate(|policy| policy.decide(&ask)));
        if !verdict.is_allowed() {
            return Err(self.refused(&verdict));
        }
        if verdict.decision.obligations.approval == Approval::Always {
            return Err(Refusal::new(DenyReason::ApprovalRequired));
        }
        let permit = Permit {
            tool: entry.name.clone(),
            fingerprint: entry.fingerprint,
            definition: Arc::clone(&entry.served),
            delegations: verdict.delegations,
            obligations: verdict.decision.obligations.clone(),
        };
        Ok((permit, entry))
    }

    /// The tools that the caller may see, sorted by name.
    ///
    /// # Errors
    /// `NotReady`, `NoDelegation`.
    pub fn list(&self) -> Result<Vec<&'a Entry>, Refusal> {
        let catalogue = self.enforced.catalogue()?;
        self.caller.standing.check(self.enforced.snapshot(), self.now)?;
        let listed = |entry: &'a Entry| Listed { pin: facts(entry), annotations: annotations(&entry.served) };
        let tools: BTreeMap<ToolName, Listed<'_>> =
            catalogue.callable().map(|entry| (entry.name.clone(), listed(entry))).collect();
        let ask = ListAsk {
            principal: &self.caller.principal,
            authority: self.caller.authority.as_ref(),
            era: self.era,
            method: "tools/list",
            tools: &tools,
            now: self.now,
        };
        let verdicts = self.evaluate(|policy| policy.visible(&ask));
        let seen = |entry: &&Entry| verdicts.get(&entry.name).is_some_and(Verdict::is_allowed);
        Ok(catalogue.callable().filter(seen).collect())
    }

    /// Rules that somebody else wrote can take their whole budget, or longer: then other tasks leave this thread first.
    fn evaluate<T>(&self, question: impl FnOnce(&cotter_policies::Policy) -> T) -> T {
        let policy = &self.enforced.policy;
        let threads = Handle::try_current().map(|handle| handle.runtime_flavor());
        if policy.has_modules() && matches!(threads, Ok(RuntimeFlavor::MultiThread)) {
            return tokio::task::block_in_place(|| question(policy));
        }
        question(policy)
    }

    fn refused(&self, verdict: &Verdict) -> Refusal {
        let decision: &Decision = &verdict.decision;
        let reason = decision.first_reason().unwrap_or(DenyReason::PolicyUndefined);
        let refusal = Refusal { reason, reasons: decision.reasons.clone(), with: With::Nothing };
        let only_scope = !decision.reasons.is_empty()
            && decision.reasons.iter().all(|reason| reason.code == DenyReason::MissingScope);
        let challenge = self.enforced.snapshot().access.insufficient_scope == InsufficientScope::Challenge;
        if only_scope && challenge && !decision.challenge_scopes.is_empty() {
            let refusal = Refusal { reason: DenyReason::InsufficientScope, ..refusal };
            return refusal.with(With::Scopes(decision.challenge_scopes.clone()));
        }
        // Nobody without an active delegation learns more than that, and everybody learns it of every tool.
        if verdict.visible || reason == DenyReason::NoDelegation { refusal } else { refusal.hidden() }
    }
}

fn facts(entry: &Entry) -> PinFacts {
    PinFacts { state: entry.state.as_str(), class: entry.drift.as_ref().map(|drift| drift.class.as_str()) }
}

/// What the server says of a tool.
fn annotations(definition: &ToolObject) -> Option<&Value> {
    definition.value.get("annotations")
}
