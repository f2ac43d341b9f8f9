//! What a check costs: processor time of one thread, the median of several runs. `cargo run --release -p cotter-arguments --example arguments`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program that prints")]

use std::{hint::black_box, time::Duration};

use cotter_arguments::Checker;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// How long this thread has been running on a core.
fn worked() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn micros(rounds: u32, mut work: impl FnMut()) -> f64 {
    let mut runs: Vec<f64> = (0..7)
        .map(|_| {
            let began = worked();
            (0..rounds).for_each(|_| work());
            (worked() - began).as_secs_f64() * 1e6 / f64::from(rounds)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs.get(3).copied().unwrap_or_default()
}

fn main() {
    let tag = json!({"type": "object", "properties": {
        "case_id": {"type": "string", "pattern": "^case-[0-9]+$"}, "tag": {"enum": ["manual_review", "eligible"]},
        "idempotency_key": {"type": "string", "maxLength": 64}}, "required": ["case_id", "tag", "idempotency_key"], "additionalProperties": false});
    let small = r#"{"case_id":"case-1042","tag":"eligible","idempotency_key":"7d1f0c52-6f3e-4c1c-9b7e"}"#;
    let text = json!({"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"]});
    let kilobyte = json!({"path": "/srv/notes.md", "content": "word ".repeat(200)}).to_string();
    let numbers = json!({"type": "object", "properties": {"values": {"type": "array", "items": {"type": "number"}}}});
    let megabyte = json!({"values": vec![1.25; 200_000]}).to_string();
    for (what, schema, arguments, rounds) in [
        ("small", &tag, small, 100_000),
        ("one KiB of text", &text, &kilobyte, 100_000),
        ("one MB of numbers", &numbers, &megabyte, 10),
    ] {
        let checker = Checker::new(schema);
        let compile = micros(100, || drop(black_box(Checker::new(black_box(schema)))));
        let parse = micros(rounds, || drop(black_box(serde_json::from_str::<Value>(black_box(arguments)))));
        let check = micros(rounds, || checker.check(Some(black_box(arguments))).unwrap());
        println!("{what}: compile {compile:.1} µs, check {check:.2} µs, of which reading {parse:.2} µs");
    }
    for (what, pattern, text) in [
        ("a pattern that the automaton remembers", "^[a-z]+$", "a"),
        ("one that it does not", "[ab]*a[ab]{100}[^ab]", "ab"),
    ] {
        let checker = Checker::new(&json!({"properties": {"x": {"pattern": pattern}}}));
        let arguments = json!({"x": text.repeat(50_000)}).to_string();
        println!(
            "{what}: {:.1} ms for {} KB ({:?})",
            micros(3, || drop(black_box(checker.check(Some(&arguments))))) / 1e3,
            arguments.len() / 1000,
            checker.coverage()
        );
    }
}
