//! A million generated questions: list and call agree, and both say what a reference says that was written here without Rego.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use cotter_core::{
    decision::{Approval, Kind},
    name::ToolName,
    principal::Principal,
};
use cotter_policies::{Ask, Authority, ListAsk, Listed, PinFacts, Policy, Verdict};
use jiff::Timestamp;

use crate::{
    chance::{any_caller, any_world, in_another_way, names},
    dice::Dice,
    plain::{Caller, Whom, World},
    reference::{Expected, Standing},
    world::tool,
};

/// Questions that have to be asked: one is a caller, one operation (a list, or a call) on one tool, and a world.
const WANTED: usize = 1_000_000;
/// So many callers share a world, whose rule set is prepared once for them.
const CALLERS: usize = 36;
const THREADS: usize = 2;

/// How often what came out.
type Tally = BTreeMap<&'static str, usize>;

fn count(tally: &mut Tally, what: &'static str, times: usize) {
    *tally.entry(what).or_default() += times;
}

/// One world with its rule set, prepared twice: one that remembers, and one that never had a list to remember.
struct Ground {
    world: World,
    warm: Policy,
    cold: Policy,
    tools: BTreeMap<ToolName, Listed<'static>>,
}

impl Ground {
    fn new(dice: &mut Dice) -> Self {
        let world = any_world(dice);
        let snapshot = world.snapshot();
        let prepare = || Policy::prepare(&snapshot).unwrap_or_else(|error| panic!("{error}: {world:?}"));
        let (warm, cold) = (prepare(), prepare());
        let declared = |name: &str| world.tools.iter().find(|tool| tool.name == name);
        let listed = |name: &str| declared(name).map_or(PinFacts::MATCHED.into(), crate::plain::Tool::listed);
        let tools = names().iter().map(|name| (tool(name), listed(name))).collect();
        Self { warm, cold, tools, world }
    }
}

/// A caller with what a sidecar would keep for it.
struct Asking<'a> {
    caller: &'a Caller,
    principal: &'a Principal,
    authority: Option<&'a Authority>,
    arguments: &'a str,
    now: Timestamp,
}

impl<'a> Asking<'a> {
    fn call(&self, tool: &'a ToolName, listed: Listed<'a>) -> Ask<'a> {
        Ask {
            principal: self.principal,
            authority: self.authority,
            era: self.caller.era(),
            method: "tools/call",
            kind: Kind::Call,
            tool,
            pin: listed.pin,
            annotations: listed.annotations,
            arguments: Some(self.arguments),
            now: self.now,
        }
    }

    fn calls(&self, policy: &Policy, ground: &'a Ground) -> BTreeMap<ToolName, Verdict> {
        ground.tools.iter().map(|(tool, listed)| (tool.clone(), policy.decide(&self.call(tool, *listed)))).collect()
    }

    fn list(&self, ground: &Ground) -> BTreeMap<ToolName, Verdict> {
        ground.warm.visible(&ListAsk {
            principal: self.principal,
            authority: self.authority,
            era: self.caller.era(),
            method: "tools/list",
            tools: &ground.tools,
            now: self.now,
        })
    }
}

/// What a verdict says, as far as the contract says it.
fn told(verdict: &Verdict) -> (BTreeSet<&'static str>, Option<String>, bool, bool) {
    let codes = verdict.decision.reasons.iter().map(|reason| reason.code.as_str()).collect();
    let asks = verdict.decision.obligations.approval == Approval::Always;
    (codes, verdict.delegation().map(ToString::to_string), asks, verdict.visible)
}

fn expected(expected: &Expected) -> (BTreeSet<&'static str>, Option<String>, bool, bool) {
    (expected.codes.clone(), expected.by.iter().min().cloned(), expected.asks, expected.visible)
}

/// By which way a caller came to be allowed.
fn route(world: &World, caller: &Caller, by: &[String]) -> &'static str {
    let Some(first) = by.iter().min() else {
        return if caller.tenant.is_none() { "token without a tenant" } else { "token" };
    };
    let lent = world.grants.iter().find(|lent| lent.name == *first).unwrap();
    match (&lent.delegator, &lent.delegate) {
        (None, Whom::Subject(..)) => "root to subject",
        (None, Whom::Claims(_)) => "root to claims",
        (None, Whom::Account(..)) => "root to account",
        (Some(Whom::Subject(..)), Whom::Subject(..)) => "subject to subject",
        (Some(Whom::Subject(..)), Whom::Account(..)) => "subject to account",
        (Some(Whom::Claims(_)), Whom::Subject(..)) => "claims to subject",
        (Some(Whom::Claims(_)), Whom::Account(..)) => "claims to account",
        (Some(Whom::Account(..)), _) => "account to anybody",
        (Some(_), Whom::Claims(_)) => "an actor by its claims",
    }
}

fn ask_all(ground: &Ground, caller: &Caller, dice: &mut Dice, tally: &mut Tally) {
    let (principal, arguments, now) = (caller.principal(), caller.arguments(), caller.now());
    let made = (dice.roll(16) != 0).then(|| ground.warm.authority(&principal, now).unwrap());
    let asking = Asking { caller, principal: &principal, authority: made.as_ref(), arguments: &arguments, now };
    // What is asked first is evaluated, and what is asked then may be remembered.
    let (calls, list) = match dice.roll(6) {
        0 => (Some(asking.calls(&ground.warm, ground)), asking.list(ground)),
        _ => (None, asking.list(ground)),
    };
    let calls = calls.unwrap_or_else(|| asking.calls(&ground.warm, ground));
    let recall = |tool: &ToolName, listed| ground.warm.recall(&asking.call(tool, listed));
    for (tool, listed) in &ground.tools {
        let recalled = recall(tool, *listed);
        assert!(recalled.as_ref().is_none_or(|recalled| *recalled == calls[tool]), "{tool}: {recalled:?}");
        count(tally, "recalled", usize::from(recalled.is_some()));
    }
    let standing = Standing::new(&ground.world, caller);
    for (name, called) in &calls {
        for (verdict, call) in [(&list[name], false), (called, true)] {
            let right = standing.expects(name.as_str(), call);
            assert_eq!(
                verdict.is_allowed(),
                right.allowed(),
                "{name} {call}: {verdict:?} for {caller:#?} in {ground:#?}"
            );
            assert_eq!(told(verdict), expected(&right), "{name} {call}: {caller:#?} in {ground:#?}");
            count(tally, "questions", 1);
            right.codes.iter().for_each(|code| count(tally, code, 1));
            count(tally, "agreed to by a person", usize::from(right.asks));
            if right.allowed() {
                count(tally, route(&ground.world, caller, &right.by), 1);
            }
        }
        assert!(list[name].is_allowed() || !called.is_allowed(), "{name} is not listed and can be called");
        count(tally, "listed and refused", usize::from(list[name].is_allowed() && !called.is_allowed()));
    }
    if dice.roll(16) == 0 {
        let unremembered = Asking { authority: None, ..asking };
        for (tool, anew) in unremembered.calls(&ground.cold, ground) {
            assert_eq!(anew, calls[&tool], "{tool} asked anew: {caller:#?} in {ground:#?}");
        }
        for (tool, listed) in &ground.tools {
            let (kind, method, arguments) = (Kind::List, "tools/list", None);
            let alone = ground.cold.decide(&Ask { kind, method, arguments, ..unremembered.call(tool, *listed) });
            assert_eq!(alone, list[tool], "{tool} by itself: {caller:#?} in {ground:#?}");
        }
        count(tally, "asked anew", calls.len());
    }
}

impl std::fmt::Debug for Ground {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.world.fmt(f)
    }
}

fn one_world(seed: u64) -> Tally {
    let (mut dice, mut tally) = (Dice(seed), Tally::new());
    let ground = Ground::new(&mut dice);
    let mut known = BTreeSet::new();
    for _ in 0..CALLERS {
        let caller = any_caller(&mut dice, &ground.world);
        // Often the same in another way: what was remembered of the one is not the answer to the other.
        let again = (dice.roll(3) == 0).then(|| in_another_way(&mut dice, &caller));
        for caller in [caller].into_iter().chain(again) {
            // The same caller again is not another question.
            if known.insert(format!("{caller:?}")) {
                ask_all(&ground, &caller, &mut dice, &mut tally);
            }
        }
    }
    count(&mut tally, if ground.warm.is_cacheable() { "remembering worlds" } else { "worlds that look each time" }, 1);
    tally
}

#[test]
fn a_million_questions_have_the_answer_that_the_contract_gives_them() {
    let (next, all) = (AtomicU64::new(0), Mutex::new(Tally::new()));
    let asked = |tally: &Tally| tally.get("questions").copied().unwrap_or_default();
    let work = || {
        while asked(&all.lock().unwrap()) < WANTED {
            let tally = one_world(next.fetch_add(1, Relaxed));
            let mut all = all.lock().unwrap();
            tally.into_iter().for_each(|(what, times)| count(&mut all, what, times));
        }
    };
    thread::scope(|scope| (0..THREADS).map(|_| scope.spawn(work)).for_each(drop));
    let tally = all.into_inner().unwrap();
    println!("{tally:#?}");
    assert!(asked(&tally) >= WANTED, "{tally:#?}");
    assert_eq!(tally.get("an actor by its claims"), None, "claims are the subject's, and no actor is known by them");
    for (what, least) in FLOORS {
        assert!(tally.get(*what).copied().unwrap_or_default() >= *least, "{what} is too rare: {tally:#?}");
    }
}

/// Every side that the worlds have to reach, and how often at least.
const FLOORS: &[(&str, usize)] = &[
    ("asked anew", 20_000),
    ("remembering worlds", 100),
    ("worlds that look each time", 10),
    ("recalled", 100_000),
    ("Unlisted", 10_000),
    ("TenantNotAdmitted", 10_000),
    ("NoDelegation", 10_000),
    ("MissingScope", 10_000),
    ("ScopeNotDelegated", 1_000),
    ("EffectNotDelegated", 1_000),
    ("TenantNotDelegated", 1_000),
    ("ToolNotDelegated", 1_000),
    ("PolicyDenied", 1_000),
    ("listed and refused", 300),
    ("agreed to by a person", 2_000),
    ("token", 10_000),
    ("token without a tenant", 1_000),
    ("root to subject", 300),
    ("root to claims", 300),
    ("root to account", 300),
    ("subject to subject", 50),
    ("subject to account", 50),
    ("claims to subject", 20),
    ("claims to account", 40),
    ("account to anybody", 100),
];
