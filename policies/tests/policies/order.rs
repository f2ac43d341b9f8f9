//! The order in which things are written, sent or put together decides nothing: neither a snapshot's name, nor a decision, nor a reason.

use std::collections::BTreeMap;

use cotter_core::{
    decision::Kind,
    name::ToolName,
    snapshot::{Sealed, Snapshot},
};
use cotter_policies::{Ask, ListAsk, Listed, Policy, Verdict, check::check};
use serde_json::Value;

use crate::{
    chance::{any_caller, any_world},
    dice::Dice,
    grammar::any_modules,
    plain::{Caller, World},
    world::tool,
};

fn shuffle<T>(dice: &mut Dice, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, dice.roll(at + 1));
    }
}

/// The text of a value with the members of every object in another order.
fn another_text(dice: &mut Dice, value: &Value) -> String {
    let texts: Vec<String> = match value {
        Value::Object(members) => {
            let mut texts: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), another_text(dice, value)))
                .collect();
            shuffle(dice, &mut texts);
            texts
        }
        Value::Array(items) => items.iter().map(|item| another_text(dice, item)).collect(),
        plain => return plain.to_string(),
    };
    let joined = texts.join(",");
    if value.is_object() { format!("{{{joined}}}") } else { format!("[{joined}]") }
}

/// Another order for what is a set in the snapshot, and a list in its text.
fn reorder_sets(dice: &mut Dice, snapshot: &mut Value) {
    let mut reorder = |list: &mut Value| shuffle(dice, list.as_array_mut().unwrap());
    reorder(&mut snapshot["access"]["tenants"]);
    for grant in snapshot["grants"].as_array_mut().unwrap() {
        ["scopes", "effects", "tenants"].into_iter().for_each(|member| reorder(&mut grant[member]));
    }
}

/// The same world, put together in another order: delegations, their patterns and links, and what a module is called.
fn reassembled(dice: &mut Dice, snapshot: &Snapshot) -> Snapshot {
    let mut made = snapshot.clone();
    for grant in &mut made.grants {
        shuffle(dice, &mut grant.tools);
        grant.tools.iter_mut().for_each(|link| shuffle(dice, link));
    }
    shuffle(dice, &mut made.grants);
    let mut names: Vec<String> = made.policies.keys().cloned().collect();
    shuffle(dice, &mut names);
    made.policies = names.into_iter().zip(made.policies.into_values()).collect();
    made
}

/// Everything that the callers are told, tool by tool, list and call.
fn told(
    dice: &mut Dice,
    snapshot: &Snapshot,
    world: &World,
    callers: &[Caller],
) -> Vec<BTreeMap<String, (Verdict, Verdict)>> {
    let policy = Policy::prepare(snapshot).unwrap_or_else(|error| panic!("{error}"));
    let mut tools: Vec<(ToolName, Listed<'_>)> = world.tools.iter().map(|of| (tool(&of.name), of.listed())).collect();
    let mut order: Vec<usize> = (0..callers.len()).collect();
    shuffle(dice, &mut order);
    let mut all = vec![BTreeMap::new(); callers.len()];
    for at in order {
        shuffle(dice, &mut tools);
        let mut caller = callers[at].clone();
        shuffle(dice, &mut caller.claims);
        let (principal, arguments, era, now) = (caller.principal(), caller.arguments(), caller.era(), caller.now());
        let (principal, asked) = (&principal, tools.iter().cloned().collect());
        let list = ListAsk { principal, authority: None, era, method: "tools/list", tools: &asked, now };
        let early = (dice.roll(2) == 0).then(|| policy.visible(&list));
        let call = |(tool, listed): &(ToolName, Listed<'_>)| {
            let (method, kind, arguments) = ("tools/call", Kind::Call, Some(arguments.as_str()));
            let Listed { pin, annotations } = *listed;
            policy.decide(&Ask {
                principal,
                authority: None,
                era,
                method,
                kind,
                tool,
                pin,
                annotations,
                arguments,
                now,
            })
        };
        let calls: Vec<Verdict> = tools.iter().map(call).collect();
        let list = early.unwrap_or_else(|| policy.visible(&list));
        let pairs = tools.iter().zip(calls).map(|((name, _), called)| (name.to_string(), (list[name].clone(), called)));
        all[at] = pairs.collect();
    }
    all
}

/// Without what the engine says of an error: it names the file, and files were renamed.
fn without_places(mut told: Vec<BTreeMap<String, (Verdict, Verdict)>>) -> Vec<BTreeMap<String, (Verdict, Verdict)>> {
    use cotter_core::{decision::Decision, reason::DenyReason::PolicyError};
    for verdict in told.iter_mut().flat_map(BTreeMap::values_mut).flat_map(|(list, call)| [list, call]) {
        if verdict.decision.first_reason() == Some(PolicyError) {
            verdict.decision = Decision::deny(PolicyError, None).into();
        }
    }
    told
}

#[test]
fn order_decides_nothing() {
    let (mut allowed, mut refused, mut with_modules) = (0, 0, 0);
    for seed in 0..25 {
        let mut dice = Dice(40_000 + seed);
        let mut world = any_world(&mut dice);
        world.tools.truncate(12);
        let mut snapshot = world.snapshot();
        let modules = any_modules(&mut dice);
        if check(&modules).is_ok() && dice.roll(2) == 0 {
            // The names of packages stay; those of the files do not, and have to be others than those of the world's own.
            snapshot.policies = modules;
            with_modules += 1;
        }
        let callers: Vec<Caller> = (0..6).map(|_| any_caller(&mut dice, &world)).collect();
        let sealed = Sealed::seal(snapshot.clone()).unwrap();
        let first = without_places(told(&mut dice, &snapshot, &world, &callers));
        for _ in 0..2 {
            let mut value = serde_json::to_value(&snapshot).unwrap();
            reorder_sets(&mut dice, &mut value);
            let read: Snapshot = serde_json::from_str(&another_text(&mut dice, &value)).unwrap();
            assert_eq!(Sealed::seal(read.clone()).unwrap().bytes(), sealed.bytes(), "seed {seed}");
            let other = reassembled(&mut dice, &read);
            assert_eq!(without_places(told(&mut dice, &other, &world, &callers)), first, "seed {seed}: {world:#?}");
        }
        for (list, call) in first.iter().flat_map(BTreeMap::values) {
            allowed += usize::from(list.is_allowed()) + usize::from(call.is_allowed());
            refused += usize::from(!list.is_allowed()) + usize::from(!call.is_allowed());
        }
    }
    assert!(allowed > 100 && refused > 300 && with_modules > 4, "{allowed} {refused} {with_modules}");
}
