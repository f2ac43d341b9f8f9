//! One recorded call, decided again.

use std::collections::BTreeSet;

use cotter_core::{
    audit::Record,
    decision::{Approval, Decision, Era, Kind, Reason},
    name::ToolName,
    principal::Principal,
    reason::DenyReason,
    snapshot::{Sealed, Snapshot},
};
use cotter_policies::{Ask, PinFacts, Policy, Verdict};
use cotter_proxy::state::Standing;

use super::claims;
use crate::failure::Failure;

/// What a server's manifests come to.
pub(super) struct Rules {
    sealed: Sealed,
    policy: Policy,
}

/// What became of a record.
pub(super) enum Again {
    /// It is not of a call that the policy decided.
    Other,
    /// It cannot be told what would be decided.
    Unknown(Unknown),
    /// The same is decided.
    Same,
    /// Something else is, in words.
    Differs(String),
}

/// What a record lacks.
pub(super) enum Unknown {
    /// The arguments, or what the server says of the tool.
    Arguments,
    /// The token's claims.
    Claims,
}

/// An answer as far as it is compared.
struct Answer<'a> {
    allow: bool,
    reasons: &'a [Reason],
    delegation: Option<&'a str>,
}

impl Rules {
    /// Prepares the rules of one server.
    pub(super) fn of(sealed: &Sealed) -> Result<Self, Failure> {
        let server = &sealed.snapshot().server;
        let policy =
            Policy::prepare(sealed.snapshot()).map_err(|error| Failure::cannot(format!("{server}: {error}")))?;
        Ok(Self { sealed: sealed.clone(), policy })
    }

    fn snapshot(&self) -> &Snapshot {
        self.sealed.snapshot()
    }

    /// Decides a record again.
    pub(super) fn again(&self, record: &Record) -> Again {
        let tool = record.tool.as_deref().and_then(|tool| tool.parse::<ToolName>().ok());
        let is_call = record.method.as_deref() == Some("tools/call");
        let (Some(principal), Some(tool), true) = (&record.principal, tool, is_call && by_policy(record)) else {
            return Again::Other;
        };
        if self.policy.reads_arguments() || self.policy.reads_annotations() {
            return Again::Unknown(Unknown::Arguments);
        }
        let verdict = self.decide(principal, &tool, record);
        if !claims::is_certain(self.snapshot(), record, principal, &verdict) {
            return Again::Unknown(Unknown::Claims);
        }
        difference(record, &verdict).map_or(Again::Same, Again::Differs)
    }

    /// As the sidecar does it: whoever needs a delegation and has none learns nothing else, of no tool.
    fn decide(&self, principal: &Principal, tool: &ToolName, record: &Record) -> Verdict {
        let (snapshot, now) = (self.snapshot(), record.time);
        if let Err(refusal) = Standing::of(principal, snapshot).check(snapshot, now) {
            let decision = Decision::deny(refusal.reason, None).into();
            return Verdict { decision, delegations: [].into(), visible: false };
        }
        self.policy.decide(&Ask {
            principal,
            authority: None,
            era: Era::Modern,
            method: "tools/call",
            kind: Kind::Call,
            tool,
            pin: PinFacts::MATCHED,
            annotations: None,
            arguments: None,
            now,
        })
    }
}

/// What differs, and why. Nobody can agree to a call yet, so that what needs a person is refused.
fn difference(record: &Record, verdict: &Verdict) -> Option<String> {
    let waits = verdict.is_allowed() && verdict.decision.obligations.approval == Approval::Always;
    let waiting = [Reason { code: DenyReason::ApprovalRequired, detail: None }];
    let reasons: &[Reason] = if waits { &waiting } else { &verdict.decision.reasons };
    let delegation = record.delegation.as_deref();
    let permits = |name: &&str| verdict.delegations.iter().any(|permitting| **permitting == **name);
    let kept = delegation.filter(permits).or(verdict.delegation().map(AsRef::as_ref));
    let then = Answer { allow: record.allow, reasons: &record.reasons, delegation };
    let now = Answer { allow: verdict.is_allowed() && !waits, reasons, delegation: kept };
    let is_same = then.allow == now.allow
        && codes(then.reasons) == codes(now.reasons)
        && (!then.allow || delegation.is_none() || delegation == kept);
    (!is_same).then(|| format!("{}, {}", then.said("then"), now.said("now")))
}

fn codes(reasons: &[Reason]) -> BTreeSet<DenyReason> {
    reasons.iter().map(|reason| reason.code).collect()
}

impl Answer<'_> {
    fn said(&self, when: &str) -> String {
        let under = self.delegation.map(|name| format!(" under {name}")).unwrap_or_default();
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        match (self.allow, reasons.is_empty()) {
            (true, _) => format!("allowed {when}{under}"),
            (false, true) => format!("refused {when}"),
            (false, false) => format!("refused {when} ({})", reasons.join(", ")),
        }
    }
}

/// Whether the policy decided: what the token, the pin, a limit or the server refused it never saw.
fn by_policy(record: &Record) -> bool {
    use DenyReason as D;
    let seen = |code: DenyReason| {
        let tokens = [
            D::MissingScope,
            D::InsufficientScope,
            D::NoDelegation,
            D::ToolNotDelegated,
            D::EffectNotDelegated,
            D::TenantNotDelegated,
        ];
        let rules = [
            D::ScopeNotDelegated,
            D::PolicyDenied,
            D::PolicyUndefined,
            D::PolicyError,
            D::PolicyTimeout,
            D::ArgumentsNotExact,
            D::ApprovalRequired,
            D::TenantNotAdmitted,
            D::Unlisted,
        ];
        tokens.contains(&code) || rules.contains(&code)
    };
    record.reasons.iter().all(|reason| seen(reason.code))
}
