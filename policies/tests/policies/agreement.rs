//! Generated worlds: list and call agree, nothing is allowed that a reference written here without Rego refuses, and modules only narrow.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    decision::{Era, Kind},
    effect::Effect,
    grant::{Grant, Inactive, Party},
    name::ToolName,
    principal::{Actor, Principal, ServiceAccount},
    reason::DenyReason,
    snapshot::Snapshot,
};
use cotter_policies::{Ask, ListAsk, PinFacts, Policy};
use jiff::{SignedDuration, Timestamp};

use crate::{
    dice::Dice,
    world::{grant, noon, rule, snapshot, tool, user},
};

const SCOPES: &[&str] = &["case:read", "case:write", "mail:send"];
const TOOLS: &[&str] = &["case_list", "case_tag", "mail_send", "mail_drop"];
const TENANTS: &[&str] = &["tenant-7", "tenant-8"];
const NAMES: &[&str] = &["mia", "bot", "system:serviceaccount:desk:bot"];

fn texts(set: BTreeSet<&str>) -> Vec<&str> {
    set.into_iter().collect()
}

fn party(dice: &mut Dice) -> Party {
    match dice.roll(3) {
        0 => Party::ServiceAccount(ServiceAccount { namespace: "desk".parse().unwrap(), name: "bot".to_owned() }),
        1 => Party::Claims(BTreeMap::from([("team".to_owned(), serde_json::json!("desk"))])),
        _ => Party::Subject {
            issuer: "https://login.example.com".parse().unwrap(),
            subject: dice.pick(NAMES).parse().unwrap(),
        },
    }
}

fn any_grant(dice: &mut Dice, number: usize) -> Grant {
    let (scopes, effects) = (texts(dice.some(SCOPES)), dice.some(&Effect::ALL));
    let globs: [&[&str]; 4] = [&["*"], &["case_*"], &["*_send", "case_tag"], &["nothing"]];
    let mut made =
        grant(&format!("g{number}"), "mia", &scopes, &effects.into_iter().collect::<Vec<_>>(), dice.pick(&globs));
    if dice.roll(3) == 0 {
        made.tools.push(vec![dice.pick(&["*", "case_*"]).parse().unwrap()]);
    }
    made.delegate = party(dice);
    made.delegator = (dice.roll(4) == 0).then(|| party(dice));
    made.tenants = dice.some(TENANTS).iter().map(|tenant| tenant.parse().unwrap()).collect();
    made.not_before =
        (dice.roll(3) == 0).then(|| noon() + SignedDuration::from_secs(if dice.roll(2) == 0 { -60 } else { 60 }));
    made.expires_at = noon() + SignedDuration::from_secs(if dice.roll(4) == 0 { -1 } else { 3600 });
    made.inactive = (dice.roll(6) == 0).then_some(Inactive::Suspended);
    made
}

fn any_world(dice: &mut Dice) -> Snapshot {
    let mut world = snapshot();
    world.tools = TOOLS.iter().map(|name| (tool(name), rule(dice.pick(SCOPES), dice.pick(&Effect::ALL)))).collect();
    world.access.tenants = match dice.roll(4) {
        0 => BTreeSet::from(["*".to_owned()]),
        _ => dice.some(TENANTS).iter().map(|tenant| (*tenant).to_owned()).collect(),
    };
    world.grants = (0..dice.roll(4)).map(|number| any_grant(dice, number)).collect();
    world
}

fn any_principal(dice: &mut Dice) -> Principal {
    let mut principal = user(&texts(dice.some(SCOPES)));
    principal.subject = dice.pick(NAMES).parse().unwrap();
    if principal.subject.as_str().starts_with("system:") {
        principal.service_account = Some(ServiceAccount { namespace: "desk".parse().unwrap(), name: "bot".to_owned() });
    }
    if dice.roll(3) == 0 {
        principal.scopes = None;
    }
    principal.tenant = [None, Some("tenant-7"), Some("tenant-7"), Some("tenant-8")][dice.roll(4)]
        .map(|tenant| tenant.parse().unwrap());
    if dice.roll(5) == 0 {
        principal.actor = Some(Actor {
            issuer: principal.issuer.clone(),
            subject: dice.pick(NAMES).parse().unwrap(),
            service_account: None,
        });
    }
    if dice.roll(2) == 0 {
        principal.claims.insert("team".to_owned(), serde_json::json!(["desk", "other"]));
    }
    principal
}

/// The rules of the resources' contract once more, in plain Rust.
fn reference(world: &Snapshot, principal: &Principal, name: &ToolName, now: Timestamp) -> bool {
    let wanted = &world.tools[name];
    let star = world.access.tenants.contains("*");
    let admitted =
        star || principal.tenant.as_ref().is_some_and(|tenant| world.access.tenants.contains(tenant.as_str()));
    let stated = |scopes: &BTreeSet<_>| scopes.contains(&wanted.scope);
    let named = world.grants.iter().any(|grant| grant.names(principal));
    if principal.actor.is_none() && principal.scopes.is_some() && !named {
        return admitted && principal.scopes.as_ref().is_some_and(stated);
    }
    let permits = |grant: &Grant| {
        grant.matches(principal)
            && grant.is_active(now)
            && grant.scopes.contains(&wanted.scope)
            && grant.effects.contains(&wanted.effect)
            && grant.covers(name.as_str())
            && principal.tenant.as_ref().is_some_and(|tenant| grant.tenants.contains(tenant))
    };
    admitted && principal.scopes.as_ref().is_none_or(stated) && world.grants.iter().any(permits)
}

fn question<'a>(principal: &'a Principal, name: &'a ToolName, kind: Kind) -> Ask<'a> {
    let method = if kind == Kind::List { "tools/list" } else { "tools/call" };
    Ask {
        principal,
        authority: None,
        era: Era::Modern,
        method,
        kind,
        tool: name,
        pin: PinFacts::MATCHED,
        annotations: None,
        arguments: None,
        now: noon(),
    }
}

fn listed(policy: &Policy, principal: &Principal) -> BTreeMap<ToolName, bool> {
    let tools = TOOLS.iter().map(|name| (tool(name), PinFacts::MATCHED.into())).collect();
    let asked =
        ListAsk { principal, authority: None, era: Era::Modern, method: "tools/list", tools: &tools, now: noon() };
    policy.visible(&asked).into_iter().map(|(name, verdict)| (name, verdict.is_allowed())).collect()
}

#[test]
fn the_rules_agree_with_a_reference_and_list_with_call() {
    let (mut allowed, mut delegated, mut absent) = (0, 0, 0);
    for seed in 0..80 {
        let mut dice = Dice(seed);
        let world = any_world(&mut dice);
        let policy = Policy::prepare(&world).unwrap();
        for _ in 0..8 {
            let principal = any_principal(&mut dice);
            let list = listed(&policy, &principal);
            for name in world.tools.keys() {
                let verdict = policy.decide(&question(&principal, name, Kind::Call));
                let expected = reference(&world, &principal, name, noon());
                assert_eq!(verdict.is_allowed(), expected, "seed {seed}: {principal:?} {name} {verdict:?}");
                assert_eq!((list[name], verdict.visible), (expected, expected), "seed {seed}: {principal:?} {name}");
                assert_eq!(verdict.decision.reasons.is_empty(), expected);
                let grant = verdict
                    .delegation
                    .as_deref()
                    .map(|name| world.grants.iter().find(|grant| grant.name == name).unwrap());
                assert!(grant.is_none_or(|grant| expected && grant.matches(&principal) && grant.covers(name.as_str())));
                allowed += usize::from(expected);
                delegated += usize::from(grant.is_some());
                absent +=
                    usize::from(verdict.decision.reasons.iter().any(|reason| reason.code == DenyReason::NoDelegation));
            }
        }
    }
    assert!(
        allowed > 200 && delegated > 40 && absent > 200,
        "the worlds reach every side: {allowed} {delegated} {absent}"
    );
}

const BODIES: &[&str] = &[
    "deny contains \"a\" if input.tool.effect == \"External\"",
    "deny contains \"b\" if not input.principal.tenant",
    "deny contains \"c\" if input.args.x",
    "deny contains \"d\" if to_number(input.principal.subject) > 1",
    "deny contains \"e\" if input.operation.kind == \"list\"",
    "require_approval contains \"f\" if input.tool.scope == \"case:write\"",
    "require_approval contains {\"allow\": true, \"code\": \"PolicyDenied\"} if true",
    "allow := true",
    "default decision := {\"allow\": true}",
    "deny contains \"g\" if some grant in input.grants",
];

#[test]
fn modules_only_narrow() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..60 {
        let mut dice = Dice(1000 + seed);
        let mut world = any_world(&mut dice);
        let without = Policy::prepare(&world).unwrap();
        for number in 0..=dice.roll(3) {
            let body = texts(dice.few(BODIES, 8)).join("\n\n");
            world.policies.insert(format!("m{number}"), format!("package cotter.user.m{number}\n\n{body}\n"));
        }
        let with = Policy::prepare(&world).unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..4 {
            let principal = any_principal(&mut dice);
            let (before, after) = (listed(&without, &principal), listed(&with, &principal));
            for name in world.tools.keys() {
                let called = with.decide(&question(&principal, name, Kind::Call)).is_allowed();
                assert!(
                    before[name] || (!after[name] && !called),
                    "seed {seed}: {name} was opened by {:?}",
                    world.policies
                );
                assert!(after[name] || !called, "seed {seed}: {name} is not listed and can be called");
                kept += usize::from(before[name] && called);
                lost += usize::from(before[name] && !called);
            }
        }
    }
    assert!(kept > 20 && lost > 20, "the modules do and do not refuse: {kept} {lost}");
}
