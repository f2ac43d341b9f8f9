//! Checking a hostile text costs the process that asks for it nothing. Alone in its program: what is measured is the whole process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use cotter_policies::guard::Guard;

/// What checking may add to the process that asks for it, in KiB.
const GROWTH: u64 = 50 * 1024;

/// The largest that this process has been, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn whoever_asks_for_a_check_does_not_grow_with_it() {
    let guard = Guard::of(PathBuf::from(env!("CARGO_BIN_EXE_cotter")), "check-policy-modules");
    let before = peak();
    let chain: String = (0..2000).map(|n| format!("r{} := r{n}\n", n + 1)).collect();
    let texts = [
        format!("package cotter.user.x\n\nx := {}1{}\n", "[".repeat(40), "]".repeat(40)),
        format!("package cotter.user.x\n\nr0 := 1\n{chain}"),
        "package cotter.user.x\n\nf(n) := f(n)\n\ndeny contains \"x\" if f(1)\n".to_owned(),
        "package cotter.user.x\n\ndeny contains \"x\" if count(numbers.range(1, 50000000)) > 0\n".to_owned(),
    ];
    for text in texts {
        let modules = BTreeMap::from([("x.rego".to_owned(), text)]);
        assert!(guard.check(&modules).unwrap().is_err());
    }
    let grown = peak() - before;
    assert!(grown < GROWTH, "{grown} KiB");
}
