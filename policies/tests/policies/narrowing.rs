//! Modules by chance: whatever they say, nothing is allowed that was not allowed without them, and nothing but their own packages is
//! theirs to write.

use std::collections::BTreeMap;

use cotter_core::{
    decision::{Approval, Kind},
    name::ToolName,
    principal::Principal,
    reason::DenyReason,
};
use cotter_policies::{Ask, ListAsk, Listed, Policy, Verdict, check::check};

use crate::{
    chance::{any_caller, any_world},
    dice::Dice,
    grammar::any_modules,
    plain::Caller,
    world::tool,
};

/// What became of the questions.
#[derive(Debug, Default)]
struct Tally {
    sets: usize,
    passed: usize,
    narrowed: usize,
    kept: usize,
    lost: usize,
    approvals: usize,
    failed: usize,
}

fn list(
    policy: &Policy,
    caller: &Caller,
    who: &Principal,
    tools: &BTreeMap<ToolName, Listed<'_>>,
) -> BTreeMap<ToolName, Verdict> {
    let (era, now) = (caller.era(), caller.now());
    policy.visible(&ListAsk { principal: who, authority: None, era, method: "tools/list", tools, now })
}

/// What modules may do to a verdict: leave it, refuse, or have a person agree.
fn narrows(before: &Verdict, after: &Verdict) -> bool {
    let asks = |verdict: &Verdict| verdict.decision.obligations.approval == Approval::Always;
    match after.is_allowed() {
        false => true,
        true => before.is_allowed() && before.delegations == after.delegations && (asks(after) || !asks(before)),
    }
}

fn compare(
    without: &Policy,
    with: &Policy,
    caller: &Caller,
    tools: &BTreeMap<ToolName, Listed<'_>>,
    tally: &mut Tally,
) -> bool {
    let (principal, arguments) = (caller.principal(), caller.arguments());
    let (before, after) = (list(without, caller, &principal, tools), list(with, caller, &principal, tools));
    let mut lost = false;
    for (name, listed) in tools {
        let ask = Ask {
            principal: &principal,
            authority: None,
            era: caller.era(),
            method: "tools/call",
            kind: Kind::Call,
            tool: name,
            pin: listed.pin,
            annotations: listed.annotations,
            arguments: Some(&arguments),
            now: caller.now(),
        };
        let (bare, called) = (without.decide(&ask), with.decide(&ask));
        assert!(narrows(&before[name], &after[name]), "{name} is listed with modules only: {caller:#?}");
        assert!(narrows(&bare, &called), "{name} can be called with modules only: {called:?} {bare:?} {caller:#?}");
        assert!(after[name].is_allowed() || !called.is_allowed(), "{name} is not listed and can be called");
        assert!(called.visible == after[name].is_allowed(), "{name}: {called:?} {:?}", after[name]);
        let is = |reason| called.decision.first_reason() == Some(reason);
        tally.failed += usize::from(is(DenyReason::PolicyError) || is(DenyReason::PolicyTimeout));
        tally.kept += usize::from(called.is_allowed());
        tally.approvals += usize::from(called.is_allowed() && called.decision.obligations != bare.decision.obligations);
        lost |= bare.is_allowed() && !called.is_allowed();
        tally.lost += usize::from(bare.is_allowed() && !called.is_allowed());
    }
    lost
}

#[test]
fn generated_modules_only_narrow() {
    let mut tally = Tally::default();
    for seed in 0..150 {
        let mut dice = Dice(30_000 + seed);
        let modules = any_modules(&mut dice);
        tally.sets += 1;
        if check(&modules).is_err() {
            continue;
        }
        tally.passed += 1;
        let mut world = any_world(&mut dice);
        world.rules.clear();
        world.tools.truncate(12);
        world.tenants = vec!["*"];
        let tools = world.tools.iter().map(|of| (tool(&of.name), of.listed())).collect();
        let mut snapshot = world.snapshot();
        let without = Policy::prepare(&snapshot).unwrap();
        snapshot.policies.clone_from(&modules);
        let with = Policy::prepare(&snapshot).unwrap_or_else(|error| panic!("{error}"));
        let mut narrowed = false;
        for _ in 0..5 {
            let caller = any_caller(&mut dice, &world);
            narrowed |= compare(&without, &with, &caller, &tools, &mut tally);
        }
        tally.narrowed += usize::from(narrowed);
    }
    println!("{tally:?}");
    let Tally { sets, passed, narrowed, kept, lost, approvals, failed } = tally;
    assert!(passed * 2 > sets && narrowed * 5 > passed, "{tally:?}");
    assert!(kept > 200 && lost > 200 && approvals > 20 && failed < (kept + lost) * 4, "{tally:?}");
}

/// Packages that are not the user's, in every spelling that a package has.
const FOREIGN: &[&str] = &[
    "cotter",
    "cotter.authz",
    "cotter.modules",
    "cotter.scopes",
    "cotter.delegation",
    "cotter.user",
    "cotter.users.m",
    "cotter.user2.m",
    "cotter[\"authz\"]",
    "cotter[\"user\"]",
    "cotter.user[\"m.n\"]",
    "cotter.user[\"\"]",
    "cotter.user[\"a b\"]",
    "data.cotter.user.m",
    "data.cotter.authz",
    "user.m",
    "system.authz",
    "m",
    "Cotter.user.m",
    "cotter.USER.m",
    "cotter.user[`../authz`]",
];
/// Rules that would matter there.
const RULES: &[&str] = &[
    "allow := true",
    "decision := {\"allow\": true}",
    "denied(_) := set()",
    "default decision := {\"allow\": true}",
    "held(_) := true",
    "permitting(_) := {\"g0\"}",
    "admitted if true",
    "deny contains \"x\" if false",
];
/// Heads that reach out of their package, or would if they meant what they read like.
const HEADS: &[&str] = &[
    "data.cotter.authz.decision := {\"allow\": true}",
    "data.cotter.modules.denied(_) := set()",
    "input.principal.delegated := false",
    "input := {}",
    "data := {}",
    "deny := set()",
    "deny.x := 1",
    "default deny := set()",
    "require_approval(x) := x",
    "import data.cotter.authz\n\nx := authz.decision",
    "import data.cotter.modules\n\nx := modules.denied(input.tool)",
    "import data.cotter\n\nx := cotter",
    "x := data",
    "x := data.cotter",
    "x := data[\"cotter\"][\"authz\"]",
    "x := data.cotter[y] if some y in [\"authz\"]",
    "x := 1 if data.cotter.scopes.held(input.tool) with data.cotter.scopes.held as true",
];

fn one(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("m".to_owned(), text.to_owned())])
}

#[test]
fn no_module_writes_into_another_package() {
    for package in FOREIGN {
        for rule in RULES {
            let text = format!("package {package}\n\n{rule}\n");
            assert!(check(&one(&text)).is_err(), "{text}");
        }
    }
    for rule in RULES.iter().chain(&["deny contains \"x\" if true"]) {
        for package in ["cotter.user.m", "cotter.user.authz", "cotter.user.deep.modules", "cotter[\"user\"].m"] {
            let text = format!("package {package}\n\n{rule}\n");
            check(&one(&text)).unwrap_or_else(|findings| panic!("{text}{findings}"));
        }
    }
    for head in HEADS {
        let text = format!("package cotter.user.m\n\n{head}\n");
        assert!(check(&one(&text)).is_err(), "{text}");
    }
}
