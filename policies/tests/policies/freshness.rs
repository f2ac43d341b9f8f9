//! Generated rule sets: what reads the call, the clock or its history is never remembered, however it is hidden; what reads none of
//! them is, and says the same as when it is asked anew; and what is remembered ends with token, delegation and snapshot.

use std::collections::BTreeMap;

use cotter_core::{decision::Era, name::ToolName, principal::Principal};
use cotter_policies::{Ask, ListAsk, Listed, PinFacts, Policy, Reads, Verdict, check::check};

use crate::{
    chance::{any_caller, any_world},
    dice::Dice,
    hiding::{Secret, hidden},
    plain::seconds,
    world::{ask, at, grant, snapshot, tool, user},
};

fn prepared(modules: &BTreeMap<String, String>) -> Policy {
    let mut world = snapshot();
    world.policies.clone_from(modules);
    world.grants = vec![grant("lent", "bot", &["case:write"], &[cotter_core::effect::Effect::Write], &["*"])];
    Policy::prepare(&world).unwrap_or_else(|error| panic!("{error}"))
}

/// The same call twice with other arguments at another time: everything that must not be remembered differs.
fn first<'a>(principal: &'a Principal, tool: &'a ToolName) -> Ask<'a> {
    Ask { arguments: Some("{\"amount\": 11}"), now: at("2026-11-30T11:11:11Z"), ..ask(principal, tool) }
}

fn second<'a>(principal: &'a Principal, tool: &'a ToolName) -> Ask<'a> {
    Ask { arguments: Some("{\"amount\": 20, \"to\": \"x\"}"), now: at("2026-11-30T12:00:00Z"), ..ask(principal, tool) }
}

fn seen(policy: &Policy, asked: &Ask<'_>) -> BTreeMap<ToolName, Verdict> {
    let listed = Listed { pin: asked.pin, annotations: asked.annotations };
    let tools = BTreeMap::from([(tool("policy_lookup"), PinFacts::UNPINNED.into()), (asked.tool.clone(), listed)]);
    let (principal, era, now) = (asked.principal, asked.era, asked.now);
    policy.visible(&ListAsk { principal, authority: None, era, method: "tools/list", tools: &tools, now })
}

#[test]
fn what_reads_call_clock_or_history_is_never_remembered_however_it_is_hidden() {
    let (mia, tag) = (user(&["case:write", "policy:read"]), tool("case_tag"));
    let (one, two) = (first(&mia, &tag), second(&mia, &tag));
    let (mut refused, mut kept, mut live) = (0, 0, 0);
    for seed in 0..700 {
        let modules = hidden(&mut Dice(seed), Secret::Fresh);
        let Ok(checked) = check(&modules) else {
            refused += 1;
            continue;
        };
        assert!(!Reads::of(&checked).call_is_stable(), "{modules:#?}");
        let (policy, fresh) = (prepared(&modules), prepared(&modules));
        assert!(!policy.is_cacheable());
        let before = policy.decide(&one);
        let after = policy.decide(&two);
        assert_eq!(after, fresh.decide(&two), "remembered: {modules:#?}");
        assert_eq!(policy.decide(&one), before, "{modules:#?}");
        let listed = seen(&policy, &one);
        assert_eq!(seen(&policy, &two), seen(&fresh, &two), "remembered in a list: {modules:#?}");
        kept += 1;
        live += usize::from(before != after || listed != seen(&fresh, &two));
    }
    println!("{kept} pass the check, {live} of them answer differently, {refused} are refused");
    assert!(kept > 350 && live > 200, "{kept} pass the check, {live} of them answer differently");
}

#[test]
fn what_reads_none_of_them_is_remembered_and_says_the_same_as_anew() {
    let people = [user(&["case:write", "policy:read"]), user(&["mail:send"]), crate::world::agent("bot")];
    let tools = ["case_tag", "mail_send", "policy_lookup"].map(tool);
    let pins = [PinFacts::MATCHED, PinFacts { state: "Drifted", class: Some("Text") }];
    let said = [serde_json::json!({"readOnlyHint": true}), serde_json::json!({"destructiveHint": true})];
    let (mut kept, mut live) = (0, 0);
    for seed in 0..160 {
        let mut modules = hidden(&mut Dice(9_000 + seed), Secret::Stable);
        let Ok(checked) = check(&modules) else { continue };
        assert!(Reads::of(&checked).call_is_stable() && Reads::of(&checked).list_is_stable(), "{modules:#?}");
        let policy = prepared(&modules);
        assert!(policy.is_cacheable());
        // The same with a rule beside it that takes everything: nothing of it is remembered, and nothing left out of the input.
        modules.insert("all".to_owned(), "package cotter.user.all\n\nunused if input == {}\n".to_owned());
        let anew = prepared(&modules);
        assert!(!anew.is_cacheable());
        let mut answers = Vec::new();
        // One after the other differs from the first: its pin, its era, what the server says of the tool.
        for (pin, legacy, says) in [(0, false, 0), (1, false, 0), (0, true, 0), (0, false, 1)] {
            for (principal, tool) in people.iter().flat_map(|who| tools.iter().map(move |tool| (who, tool))) {
                let era = if legacy { Era::Legacy } else { Era::Modern };
                let asked = Ask { pin: pins[pin], era, annotations: Some(&said[says]), ..first(principal, tool) };
                let told = [policy.decide(&asked), policy.decide(&Ask { now: at("2026-11-30T12:30:00Z"), ..asked })];
                let right = anew.decide(&asked);
                assert!(told.iter().all(|told| *told == right), "{told:?} {right:?}: {modules:#?}");
                assert_eq!(seen(&policy, &asked), seen(&anew, &asked), "{modules:#?}");
                answers.push(right.decision.reasons.clone());
            }
        }
        answers.sort();
        answers.dedup();
        kept += 1;
        live += usize::from(answers.len() > 2);
    }
    println!("{kept} pass the check, {live} of them tell questions apart");
    assert!(kept > 140 && live > 100, "{kept} pass the check, {live} of them tell questions apart");
}

#[test]
fn what_is_remembered_ends_with_token_delegation_and_snapshot() {
    let (mut ended, mut differed) = (0, 0);
    for seed in 0..150 {
        let mut dice = Dice(20_000 + seed);
        let mut world = any_world(&mut dice);
        world.rules.clear();
        let (kept, anew) = (Policy::prepare(&world.snapshot()).unwrap(), Policy::prepare(&world.snapshot()).unwrap());
        for caller in (0..8).map(|_| any_caller(&mut dice, &world)).collect::<Vec<_>>() {
            let mut principal = caller.principal();
            principal.expires_at = seconds([-60, 0, 30, 3600][dice.roll(4)]);
            let name = tool(&world.tools[dice.roll(world.tools.len())].name);
            let authority = kept.authority(&principal, seconds(-61)).unwrap();
            let mut told = Vec::new();
            // Forth, and back again: a clock that is set back brings nothing back.
            for time in [-61, -60, -1, 0, 1, 29, 30, 60, 61, 3599, 3600, 0, -61] {
                let asked = Ask { authority: Some(&authority), now: seconds(time), ..ask(&principal, &name) };
                let answer = kept.decide(&asked);
                assert_eq!(answer, anew.decide(&Ask { authority: None, ..asked }), "{time}: {caller:#?} {world:#?}");
                assert!(!kept.accepts(&authority, principal.expires_at.max(seconds(time))), "the token ended");
                let of_another = anew.accepts(&authority, seconds(time));
                assert!(!of_another, "another snapshot's policy takes nothing over");
                ended += usize::from(!kept.accepts(&authority, seconds(time)));
                told.push(answer.is_allowed());
            }
            differed += usize::from(told.contains(&true) && told.contains(&false));
        }
    }
    assert!(ended > 1_000 && differed > 20, "{ended} ended, {differed} differed");
}
