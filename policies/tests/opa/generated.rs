//! A hundred thousand generated inputs, in both engines.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use cotter_policies::{Sandbox, document::Input};
use serde_json::Value;

use crate::{
    answers::{allows, same},
    bodies::{any_modules, every_body, shipped},
    dice::Dice,
    inputs::any_input,
    program::Files,
};

/// Inputs of one run of the program.
const BATCH: usize = 2_500;
const BATCHES: usize = 42;
const _: () = assert!(BATCH * BATCHES >= 100_000);
/// The engines take turns in a batch, so two batches keep two cores busy.
const THREADS: usize = 2;

/// What the answers were.
#[derive(Default)]
struct Seen {
    all: AtomicUsize,
    allowed: AtomicUsize,
    delegated: AtomicUsize,
    approved: AtomicUsize,
    refused_by_modules: AtomicUsize,
}

impl Seen {
    fn count(&self, answer: &Option<Value>) {
        let text = answer.as_ref().map_or_else(String::new, Value::to_string);
        let count = |counter: &AtomicUsize, is: bool| counter.fetch_add(usize::from(is), Relaxed);
        count(&self.all, true);
        count(&self.allowed, allows(answer));
        count(&self.delegated, allows(answer) && !text.contains("\"delegations\":[]"));
        count(&self.approved, text.contains("\"approval\":\"Always\""));
        count(&self.refused_by_modules, text.contains("PolicyDenied"));
    }
}

/// Rule sets in turn: what ships, and generated ones in every second batch.
fn rule_set(batch: usize, dice: &mut Dice) -> (String, BTreeMap<String, String>) {
    if batch % 2 == 1 {
        return (format!("batch {batch}, generated modules"), any_modules(dice));
    }
    let mut sets = shipped();
    let (name, modules) = sets.swap_remove(batch / 2 % sets.len());
    (format!("batch {batch}, {name}"), modules)
}

fn run(batch: usize, seen: &Seen) {
    let mut dice = Dice(u64::try_from(batch).unwrap());
    let (name, modules) = rule_set(batch, &mut dice);
    let many = batch % 5 == 4;
    let inputs: Vec<Value> = (0..BATCH).map(|_| any_input(&mut dice, many)).collect();
    for input in &inputs {
        serde_json::from_value::<Input>(input.clone()).unwrap_or_else(|error| panic!("{error}: {input}"));
    }
    let mut sandbox = Sandbox::new(&modules).unwrap_or_else(|error| panic!("{name}: {error}"));
    let answers = same(&name, &mut sandbox, &Files::new(&modules), &inputs);
    assert_eq!(answers.len(), BATCH, "{name}: no rule fails on an input of the documented form");
    for answer in &answers {
        seen.count(answer);
    }
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn a_hundred_thousand_generated_inputs_have_the_same_decision() {
    let (seen, next) = (Seen::default(), AtomicUsize::new(0));
    let work = || {
        while let Some(batch) = Some(next.fetch_add(1, Relaxed)).filter(|batch| *batch < BATCHES) {
            run(batch, &seen);
        }
    };
    thread::scope(|scope| drop((0..THREADS).map(|_| scope.spawn(work)).collect::<Vec<_>>()));
    let [all, allowed, delegated, approved, refused] =
        [&seen.all, &seen.allowed, &seen.delegated, &seen.approved, &seen.refused_by_modules].map(|n| n.load(Relaxed));
    assert_eq!(all, BATCH * BATCHES);
    let reached = [allowed, delegated, approved, refused];
    assert!(reached.iter().all(|n| *n > all / 100), "they reach every side: {reached:?} of {all}");
}

#[test]
#[ignore = "needs opa: COTTER_TEST_OPA"]
fn every_generated_rule_has_the_same_meaning_by_itself() {
    for (name, text) in every_body() {
        let (mut dice, modules) = (Dice(7), BTreeMap::from([(name.clone(), text)]));
        let inputs: Vec<Value> = (0..200).map(|_| any_input(&mut dice, false)).collect();
        let answers = same(&name, &mut Sandbox::new(&modules).unwrap(), &Files::new(&modules), &inputs);
        let spoke = |answer: &Option<Value>| {
            let text = answer.as_ref().map_or_else(String::new, Value::to_string);
            text.contains("PolicyDenied") || text.contains("Always")
        };
        assert!(answers.len() == inputs.len() && answers.iter().any(spoke), "{name} never speaks");
    }
}
