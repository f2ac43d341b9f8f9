//! A small server: one tool of each effect, one user, and whatever a test adds.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    decision::{Approval, Era, Kind},
    effect::Effect,
    grant::{Grant, Party},
    name::{ServerRef, ToolName},
    principal::Principal,
    snapshot::{
        Access, Enforcement, InsufficientScope, Limits, Protocol, Rate, Sessions, Snapshot, Stale, StaleAction,
        ToolRule, Upstream, VERSION, Verify,
    },
};
use cotter_policies::{Ask, PinFacts, Policy, Verdict};
use jiff::Timestamp;

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn noon() -> Timestamp {
    at("2026-11-30T12:00:00Z")
}

pub(crate) fn tool(text: &str) -> ToolName {
    text.parse().unwrap()
}

pub(crate) fn rule(scope: &str, effect: Effect) -> ToolRule {
    ToolRule {
        scope: scope.parse().unwrap(),
        effect,
        idempotency_key: None,
        approval: Approval::Never,
        timeout_ms: None,
        result_bytes: None,
        rate: None,
    }
}

pub(crate) fn snapshot() -> Snapshot {
    let tools = [
        ("policy_lookup", rule("policy:read", Effect::Read)),
        ("case_tag", rule("case:write", Effect::Write)),
        ("case_purge", rule("case:admin", Effect::Destructive)),
        ("mail_send", rule("mail:send", Effect::External)),
    ];
    let second = Rate { tokens: 20, per_ms: 1000, burst: 40 };
    Snapshot {
        version: VERSION.to_owned(),
        server: ServerRef { namespace: "support".parse().unwrap(), name: "support".parse().unwrap() },
        labels: BTreeMap::from([("team".to_owned(), "desk".to_owned())]),
        generation: 1,
        upstream: Upstream::Child {
            command: vec!["server".to_owned()],
            env: BTreeMap::new(),
            sessions: Sessions::Shared,
        },
        protocol: Protocol { revisions: BTreeSet::new() },
        access: Access {
            audience: "support://mcp".parse().unwrap(),
            public_url: None,
            hosts: BTreeSet::new(),
            origins: BTreeSet::new(),
            issuers: Vec::new(),
            tenants: BTreeSet::from(["tenant-7".to_owned()]),
            insufficient_scope: InsufficientScope::Hide,
            advertised_scopes: Vec::new(),
        },
        tools: tools.into_iter().map(|(name, rule)| (tool(name), rule)).collect(),
        pinning: Enforcement::Quarantine,
        pin: None,
        grants: Vec::new(),
        policies: BTreeMap::new(),
        limits: Limits {
            request_bytes: 1,
            result_bytes: 1,
            timeout_ms: 1,
            concurrent: 1,
            rate_per_principal: second,
            sessions: 1,
        },
        verify: Verify { interval_ms: 1, grace_ms: 1 },
        stale: Stale { after_ms: 1, action: StaleAction::Report },
    }
}

pub(crate) fn user(scopes: &[&str]) -> Principal {
    Principal {
        issuer: "https://login.example.com".parse().unwrap(),
        subject: "mia".parse().unwrap(),
        tenant: Some("tenant-7".parse().unwrap()),
        scopes: Some(scopes.iter().map(|scope| scope.parse().unwrap()).collect()),
        groups: BTreeSet::new(),
        service_account: None,
        actor: None,
        actor_chain: Vec::new(),
        claims: BTreeMap::new(),
        expires_at: at("2026-11-30T13:00:00Z"),
    }
}

/// A principal without a scope claim, which acts under delegations only.
pub(crate) fn agent(name: &str) -> Principal {
    Principal { subject: name.parse().unwrap(), scopes: None, ..user(&[]) }
}

/// A grant to [`agent`].
pub(crate) fn grant(name: &str, agent: &str, scopes: &[&str], effects: &[Effect], tools: &[&str]) -> Grant {
    Grant {
        name: name.to_owned(),
        delegator: None,
        delegate: Party::Subject {
            issuer: "https://login.example.com".parse().unwrap(),
            subject: agent.parse().unwrap(),
        },
        scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect(),
        effects: effects.iter().copied().collect(),
        tools: vec![tools.iter().map(|glob| glob.parse().unwrap()).collect()],
        tenants: BTreeSet::from(["tenant-7".parse().unwrap()]),
        not_before: None,
        expires_at: at("2026-12-31T00:00:00Z"),
        inactive: None,
        ancestors: Vec::new(),
        budgets: Vec::new(),
    }
}

pub(crate) fn ask<'a>(principal: &'a Principal, tool: &'a ToolName) -> Ask<'a> {
    Ask {
        principal,
        authority: None,
        era: Era::Modern,
        method: "tools/call",
        kind: Kind::Call,
        tool,
        pin: PinFacts::MATCHED,
        annotations: None,
        arguments: Some("{}"),
        now: noon(),
    }
}

pub(crate) fn call(policy: &Policy, principal: &Principal, name: &str) -> Verdict {
    policy.decide(&ask(principal, &tool(name)))
}

/// The reasons of a verdict, as text.
pub(crate) fn reasons(verdict: &Verdict) -> Vec<String> {
    let text = |reason: &cotter_core::decision::Reason| match &reason.detail {
        Some(detail) => format!("{} {detail}", reason.code),
        None => reason.code.to_string(),
    };
    verdict.decision.reasons.iter().map(text).collect()
}

/// How long this thread has been running on a core: what a text costs, however busy the machine is.
pub(crate) fn worked() -> std::time::Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}
