//! What one evaluation may make: rules that pass the check and begin to grow only on an input that the check never saw. Alone in its
//! program: what is measured is the whole process.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeMap, fs, time::Duration};

use cotter_core::reason::DenyReason;
use cotter_policies::{Sandbox, check::check};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// What one evaluation may add to the process, in KiB: what functions may make, and what the interpreter makes in 20 ms.
const GROWTH: u64 = 96 * 1024;
/// What one evaluation may take: its budget, tried again, and one call that is in the middle of it.
const WORK: Duration = Duration::from_secs(2);

fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn worked() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap()
}

/// Rules that each do something to the one before, from the arguments on; the last is asked only where the arguments say so.
fn chain(first: &str, step: &str, length: usize, last: &str) -> String {
    let mut text = format!("package cotter.user.m\n\nx0 := {first}\n\n");
    for n in 0..length {
        text.push_str(&format!("x{} := {}\n\n", n + 1, step.replace("$x", &format!("x{n}"))));
    }
    text + &format!(
        "deny contains \"grown\" if {{\n\tinput.args.go\n\t{}\n}}\n",
        last.replace("$x", &format!("x{length}"))
    )
}

/// Functions that would work long on what is not large.
fn long_work() -> Vec<(&'static str, String)> {
    let text = "input.args.text";
    vec![
        ("trim", chain(text, "$x", 1, "trim($x, sprintf(\"b%s\", [$x])) == \"\"")),
        ("indexof_n", chain(text, "$x", 1, "count(indexof_n($x, substring($x, 0, 30000))) > 0")),
        ("delimiters", chain(text, "$x", 1, "glob.match(\"x\", [\"a\" | some _ in input.args.list], $x)")),
        (
            "prefixes",
            chain(
                text,
                "$x",
                1,
                "strings.any_prefix_match([sprintf(\"a%d\", [a]) | some a in input.args.list], [sprintf(\"b%d\", [a]) | some a in input.args.list])",
            ),
        ),
    ]
}

fn attacks() -> Vec<(&'static str, String)> {
    let text = "input.args.text";
    vec![
        ("concat", chain(text, "concat(\"\", [$x, $x])", 60, "count($x) > 0")),
        ("a wide concat", chain(text, "concat(\"\", [$x | some _ in input.args.list])", 8, "count($x) > 0")),
        ("replace", chain(text, "replace($x, \"a\", $x)", 9, "count($x) > 0")),
        ("regex.replace", chain(text, "regex.replace($x, \"a\", $x)", 9, "count($x) > 0")),
        ("sprintf", chain(text, "sprintf(\"%s%s\", [$x, $x])", 60, "count($x) > 0")),
        ("json.marshal", chain(text, "json.marshal([$x, $x])", 60, "count($x) > 0")),
        ("a value that is shared", chain("[input.args.text]", "[$x, $x]", 90, "count(json.marshal($x)) > 0")),
        (
            "an object that is shared",
            chain("input.args", "{\"a\": $x, \"b\": $x}", 90, "object.union($x, {\"c\": $x})"),
        ),
        ("array.concat", chain("input.args.list", "array.concat($x, $x)", 60, "count($x) > 0")),
        ("base64", chain(text, "base64.encode($x)", 90, "count($x) > 0")),
        ("split", chain(text, "concat(\"\", [$x, $x])", 5, "count(split($x, \"\")) > 0")),
        ("numbers", chain("input.args.number", "to_number(sprintf(\"%d%d\", [$x, $x]))", 60, "$x > 0")),
        ("an exponent", chain(text, "$x", 1, "to_number(input.args.exponent) > 1")),
        ("an exponent in a text", chain(text, "$x", 1, "json.unmarshal(input.args.exponents)")),
        ("copies", chain(text, "upper($x)", 90, "[upper(x90) | some a in input.args.list; some b in input.args.list]")),
        (
            "a list",
            chain(
                text,
                "$x",
                1,
                "[[a, b, c] | some a in input.args.list; some b in input.args.list; some c in input.args.list]",
            ),
        ),
        (
            "formats",
            chain(
                text,
                "$x",
                1,
                "[sprintf(\"%s%d\", [x1, a + b]) | some a in input.args.list; some b in input.args.list]",
            ),
        ),
    ]
}

fn input(go: bool) -> Value {
    let mut input: Value = serde_saphyr::from_str(include_str!("../cases/base.yaml")).unwrap();
    input["args"] = json!({
        "go": go, "text": "a".repeat(64 << 10), "list": (0..4000).collect::<Vec<u32>>(), "number": 9_007_199_254_740_991_u64,
        "exponent": "1e999999999", "exponents": "[1e999999999]",
    });
    input
}

#[test]
fn a_rule_that_grows_on_an_input_of_its_own_refuses_and_costs_little() {
    let (plain, go) = (input(false), input(true));
    for (name, text) in attacks().into_iter().chain(long_work()) {
        let modules = BTreeMap::from([("m.rego".to_owned(), text)]);
        assert!(check(&modules).is_ok(), "{name}: nothing in the text gives it away: {:?}", check(&modules).err());
        let mut sandbox = Sandbox::new(&modules).unwrap();
        assert!(
            sandbox.decide(&plain).unwrap().0.allow,
            "{name}: an input that does not ask for it is decided as ever"
        );
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before, began) = (status("VmRSS:"), worked());
        let (decision, _) = sandbox.decide(&go).unwrap();
        let (grown, work) = (status("VmHWM:").saturating_sub(before), worked() - began);
        println!("{name}: {grown} KiB, {work:?}, {:?}", decision.reasons);
        assert!(!decision.allow, "{name}: {decision:?}");
        let code = decision.reasons.first().unwrap().code;
        assert!(matches!(code, DenyReason::PolicyError | DenyReason::PolicyTimeout), "{name}: {decision:?}");
        assert!(grown < GROWTH, "{name} grew by {grown} KiB");
        assert!(work < WORK, "{name} took {work:?}");
    }
}
