//! What a decision costs: cold and remembered, one tool and a list, with few and with many tools and delegations.
//!
//! `cargo run --release -p cotter-policies --example measure`

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    hint::black_box,
    time::Instant,
};

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
use cotter_policies::{Ask, ListAsk, Listed, PinFacts, Policy};
use jiff::Timestamp;

const NOW: &str = "2026-11-30T12:00:00Z";
const LATER: &str = "2026-11-30T13:00:00Z";
const ISSUER: &str = "https://login.example.com";
/// Reads an argument, so that calls are never remembered.
const READS_ARGUMENTS: &str = "package cotter.user.m\n\ndeny contains \"large\" if input.args.amount > 1000\n";
/// Reads the clock, so that lists are never remembered either.
const READS_CLOCK: &str = "package cotter.user.m\n\ndeny contains \"never\" if input.now == \"never\"\n";

fn tools(count: usize) -> Result<BTreeMap<ToolName, ToolRule>, Box<dyn Error>> {
    let rule = ToolRule {
        scope: "case:write".parse()?,
        effect: Effect::Write,
        idempotency_key: None,
        approval: Approval::Never,
        timeout_ms: None,
        result_bytes: None,
        rate: None,
    };
    (0..count).map(|n| Ok((format!("tool_{n}").parse()?, rule.clone()))).collect()
}

fn grants(count: usize) -> Result<Vec<Grant>, Box<dyn Error>> {
    let grant = |n: usize| {
        Ok(Grant {
            name: format!("grant-{n}"),
            delegator: None,
            delegate: Party::Subject { issuer: ISSUER.parse()?, subject: format!("bot-{n}").parse()? },
            scopes: BTreeSet::from(["case:write".parse()?]),
            effects: BTreeSet::from([Effect::Write]),
            tools: vec![vec!["tool_*".parse()?]],
            tenants: BTreeSet::from(["tenant-7".parse()?]),
            not_before: None,
            expires_at: LATER.parse()?,
            inactive: None,
            ancestors: Vec::new(),
            budgets: Vec::new(),
        })
    };
    (0..count).map(grant).collect()
}

fn snapshot(count: usize, module: Option<&str>) -> Result<Snapshot, Box<dyn Error>> {
    let rate = Rate { tokens: 1, per_ms: 1, burst: 1 };
    Ok(Snapshot {
        version: VERSION.to_owned(),
        server: ServerRef { namespace: "support".parse()?, name: "support".parse()? },
        labels: BTreeMap::new(),
        generation: 1,
        upstream: Upstream::Child { command: Vec::new(), env: BTreeMap::new(), sessions: Sessions::Shared },
        protocol: Protocol { revisions: BTreeSet::new() },
        access: Access {
            audience: "support://mcp".parse()?,
            public_url: None,
            hosts: BTreeSet::new(),
            origins: BTreeSet::new(),
            issuers: Vec::new(),
            tenants: BTreeSet::from(["tenant-7".to_owned()]),
            insufficient_scope: InsufficientScope::Hide,
            advertised_scopes: Vec::new(),
        },
        tools: tools(count)?,
        pinning: Enforcement::Quarantine,
        pin: None,
        grants: grants(count)?,
        policies: module.into_iter().map(|text| ("m".to_owned(), text.to_owned())).collect(),
        limits: Limits {
            request_bytes: 1,
            result_bytes: 1,
            timeout_ms: 1,
            concurrent: 1,
            rate_per_principal: rate,
            sessions: 1,
        },
        verify: Verify { interval_ms: 1, grace_ms: 1 },
        stale: Stale { after_ms: 1, action: StaleAction::Report },
    })
}

fn principal(subject: &str, scopes: Option<&[&str]>) -> Result<Principal, Box<dyn Error>> {
    let scopes = scopes.map(|scopes| scopes.iter().map(|scope| scope.parse()).collect::<Result<_, _>>()).transpose()?;
    Ok(Principal {
        issuer: ISSUER.parse()?,
        subject: subject.parse()?,
        tenant: Some("tenant-7".parse()?),
        scopes,
        groups: BTreeSet::new(),
        service_account: None,
        actor: None,
        actor_chain: Vec::new(),
        claims: BTreeMap::new(),
        expires_at: LATER.parse()?,
    })
}

/// Prints the least, the median and the 99th percentile of a question, in microseconds of the clock on the wall: on a busy machine the
/// least is the one that tells what the work costs.
fn measure(what: &str, rounds: usize, mut question: impl FnMut(usize)) {
    (0..rounds / 10).for_each(&mut question);
    let mut times: Vec<f64> = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let started = Instant::now();
        question(round);
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get(rounds * part / 100).copied().unwrap_or_default();
    println!("{what:<50} {:>10.2} {:>10.2} {:>10.2}", at(0), at(50), at(99));
}

fn ask<'a>(principal: &'a Principal, tool: &'a ToolName, now: Timestamp) -> Ask<'a> {
    let arguments = Some("{\"amount\": 10}");
    let (era, kind, pin) = (Era::Modern, Kind::Call, PinFacts::MATCHED);
    let annotations = None;
    Ask { principal, authority: None, era, method: "tools/call", kind, tool, pin, annotations, arguments, now }
}

fn calls(count: usize, policies: (&Policy, &Policy), tool: &ToolName, now: Timestamp) -> Result<(), Box<dyn Error>> {
    let (library, reading) = policies;
    let (user, bot) = (principal("mia", Some(&["case:write"]))?, principal("bot-1", None)?);
    for (who, principal) in [("token", &user), ("delegation", &bot)] {
        let authority = library.authority(principal, now)?;
        let held = Ask { authority: Some(&authority), ..ask(principal, tool, now) };
        measure(&format!("{count}: call, remembered, {who}"), 100_000, |_| drop(black_box(library.decide(&held))));
        let authority = reading.authority(principal, now)?;
        let read = Ask { authority: Some(&authority), ..ask(principal, tool, now) };
        measure(&format!("{count}: call, arguments read, {who}"), 3_000, |_| drop(black_box(reading.decide(&read))));
        measure(&format!("{count}: authority, {who}"), 2_000, |_| drop(black_box(library.authority(principal, now))));
    }
    let strangers = strangers(2_200, "call")?;
    let mut next = strangers.iter();
    measure(&format!("{count}: call, cold, with its authority"), 2_000, |_| {
        if let Some(stranger) = next.next() {
            drop(black_box(library.decide(&ask(stranger, tool, now))));
        }
    });
    Ok(())
}

/// Principals that nothing is remembered about.
fn strangers(count: usize, what: &str) -> Result<Vec<Principal>, Box<dyn Error>> {
    (0..count).map(|n| principal(&format!("{what}-{n}"), Some(&["case:write"]))).collect()
}

fn lists(count: usize, library: &Policy, names: &[ToolName], now: Timestamp) -> Result<(), Box<dyn Error>> {
    let listed: BTreeMap<ToolName, Listed<'_>> =
        names.iter().take(200).map(|name| (name.clone(), PinFacts::MATCHED.into())).collect();
    let list =
        |principal| ListAsk { principal, authority: None, era: Era::Modern, method: "tools/list", tools: &listed, now };
    let strangers = strangers(60, "list")?;
    let mut next = strangers.iter();
    measure(&format!("{count}: list of {}, cold", listed.len()), 50, |_| {
        if let Some(stranger) = next.next() {
            drop(black_box(library.visible(&list(stranger))));
        }
    });
    let user = principal("mia", Some(&["case:write"]))?;
    let authority = library.authority(&user, now)?;
    let known = ListAsk { authority: Some(&authority), ..list(&user) };
    measure(&format!("{count}: list of {}, remembered", listed.len()), 500, |_| {
        drop(black_box(library.visible(&known)))
    });
    let clock = Policy::prepare(&snapshot(count, Some(READS_CLOCK))?)?;
    measure(&format!("{count}: list of {}, clock read", listed.len()), 50, |_| {
        drop(black_box(clock.visible(&list(&user))))
    });
    Ok(())
}

fn world(count: usize) -> Result<(), Box<dyn Error>> {
    let now = NOW.parse::<Timestamp>()?;
    let names: Vec<ToolName> = tools(count)?.into_keys().collect();
    let library = Policy::prepare(&snapshot(count, None)?)?;
    let reading = Policy::prepare(&snapshot(count, Some(READS_ARGUMENTS))?)?;
    let Some(tool) = names.first() else { return Ok(()) };
    calls(count, (&library, &reading), tool, now)?;
    lists(count, &library, &names, now)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:<50} {:>10} {:>10} {:>10}", "tools and grants: what (microseconds)", "least", "p50", "p99");
    [10, 1_000, 10_000].into_iter().try_for_each(world)
}
