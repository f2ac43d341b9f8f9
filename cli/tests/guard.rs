//! The child that checks policy is stopped by each of its limits, says which, and leaves nothing behind. Its stand-ins are tests of this
//! very program: the word that a guard starts a program with is, for a program of tests, the name of the test to run.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    collections::BTreeMap,
    env, fs,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cotter_policies::guard::{Guard, Limits};

/// One at a time: they look at what this process has open.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process was started to be the stand-in of that name.
fn is_stand_in(name: &str) -> bool {
    env::args().nth(1).as_deref() == Some(name)
}

#[test]
fn stand_in_that_never_ends() {
    let mut number = 0_u64;
    while is_stand_in("stand_in_that_never_ends") {
        number = number.wrapping_add(1);
    }
    assert_eq!(number, 0);
}

#[test]
fn stand_in_that_takes_memory() {
    if is_stand_in("stand_in_that_takes_memory") {
        println!("{}", vec![1_u8; 1 << 30].len());
    }
}

#[test]
fn stand_in_that_sleeps() {
    if is_stand_in("stand_in_that_sleeps") {
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn modules(names: &[&str]) -> BTreeMap<String, String> {
    names.iter().map(|name| (format!("{name}.rego"), format!("package cotter.user.{name}\n"))).collect()
}

const LIMITS: Limits = Limits { cpu_seconds: 1, memory: 512 << 20, patience: Duration::from_secs(120) };

/// What a stand-in under these limits comes to, for each module.
fn findings(stand_in: &str, limits: Limits) -> Vec<String> {
    let guard = Guard::of(env::current_exe().unwrap(), stand_in).with_limits(limits);
    let found = guard.check(&modules(&["a", "b"])).unwrap().unwrap_err();
    found
        .0
        .iter()
        .map(|finding| format!("{}:{}:{}: {}", finding.file, finding.line, finding.column, finding.message))
        .collect()
}

fn both(how: &str) -> Vec<String> {
    ["a", "b"].map(|name| format!("{name}.rego:1:1: the policy takes too much to read: {how}")).to_vec()
}

#[test]
fn processor_time_has_an_end() {
    let _alone = alone();
    assert_eq!(findings("stand_in_that_never_ends", LIMITS), both("it took more than 1 s of processor time"));
}

#[test]
fn memory_has_an_end() {
    let _alone = alone();
    let how = "it needed more than 512 MiB of memory, or a stack without end";
    // Taking memory takes processor time too, and more of it on a slow machine: it is no limit here.
    let narrow = Limits { cpu_seconds: 60, ..LIMITS };
    assert_eq!(findings("stand_in_that_takes_memory", narrow), both(how));
    // With room for it the same stand-in ends by itself, and is no checker.
    let roomy = Limits { memory: 4 << 30, ..narrow };
    assert_eq!(findings("stand_in_that_takes_memory", roomy), both("the check gave no answer"));
}

#[test]
fn patience_has_an_end() {
    let _alone = alone();
    let began = Instant::now();
    let impatient = Limits { patience: Duration::from_millis(300), ..LIMITS };
    assert_eq!(findings("stand_in_that_sleeps", impatient), both("it did not end within 300ms"));
    assert!(began.elapsed() < Duration::from_secs(30), "the child is killed, and not waited for");
}

#[test]
fn a_checker_that_cannot_be_started_is_no_finding() {
    let absent = Guard::of(PathBuf::from("/no/such/program"), "x").check(&modules(&["a"]));
    assert!(absent.unwrap_err().to_string().contains("/no/such/program"));
    let wrong = Guard::of(PathBuf::from("/bin/false"), "x").check(&modules(&["a"])).unwrap().unwrap_err();
    assert!(wrong.to_string().contains("it ended with exit status: 1"), "{wrong}");
}

fn cotter() -> Guard {
    Guard::of(PathBuf::from(env!("CARGO_BIN_EXE_cotter")), "check-policy-modules")
}

#[test]
fn the_module_at_fault_is_named_and_the_others_are_not() {
    let _alone = alone();
    let mut modules = modules(&["a", "c"]);
    let slow = "package cotter.user.b\n\nd := [0,1,2,3,4,5,6,7,8,9]\n\ndeny contains \"x\" if {\n\tx := [1 | some a in d; some b in d; some c in d; some e in d; some f in d; some g in d]\n\tcount(x) < 0\n}\n";
    modules.insert("b.rego".to_owned(), slow.to_owned());
    let found = cotter().check(&modules).unwrap().unwrap_err();
    assert_eq!(found.0.len(), 1, "{found}");
    assert_eq!((found.0[0].file.as_str(), found.0[0].line), ("b.rego", 5), "{found}");
    modules.insert("b.rego".to_owned(), slow.replace("; some e in d; some f in d; some g in d", ""));
    assert!(cotter().check(&modules).unwrap().is_ok());
}

/// What this process has: open files, threads, and children that are not waited for.
fn has() -> (usize, usize, String) {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let children: String = fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok())
        .collect();
    (count("/proc/self/fd"), count("/proc/self/task"), children)
}

#[test]
fn a_hundred_children_leave_nothing_behind() {
    let _alone = alone();
    let impatient = Limits { patience: Duration::from_millis(20), ..LIMITS };
    let sleeper = Guard::of(env::current_exe().unwrap(), "stand_in_that_sleeps").with_limits(impatient);
    let (modules, checker) = (modules(&["a"]), cotter());
    let before = has();
    for _ in 0..50 {
        assert!(sleeper.check(&modules).unwrap().is_err());
        assert!(checker.check(&modules).unwrap().is_ok());
    }
    assert_eq!(has().2, "", "no child is left");
    assert!(has().0 <= before.0, "open files: {} and then {}", before.0, has().0);
    assert!(has().1 <= before.1 + 1, "threads: {} and then {}", before.1, has().1);
}
