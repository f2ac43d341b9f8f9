//! Hostile texts against every way into the check: `cotter policy check`, the guard that the library gives, and the gate that the
//! operator and `cotter up` pass a world through. Each is answered in less than two seconds of work, with its place, and costs whoever
//! asks next to no memory. Alone in its program: what is measured is the whole process.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write as _},
    path::PathBuf,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cotter_compiler::{LocalSettings, Mode, Unresolved, World, gate::Gate};
use cotter_policies::guard::Guard;

mod cost;
mod texts;

use cost::{Cost, measured, own};
use texts::{
    ATTACKS, Attack,
    Comes::{Either, Refused, Taught},
    module,
};

/// What an answer may take of a processor, in the program and in its child together. On the wall a busy machine takes longer.
const WORK: Duration = Duration::from_secs(2);
/// What asking may add to a process, in KiB.
const GROWTH: u64 = 50 * 1024;

/// One at a time: each measures this process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_cotter"))
}

/// The check writes one line `file:line:column: message` first.
fn place(said: &str, file: &str) -> bool {
    let Some(rest) = said.strip_prefix(file).and_then(|rest| rest.strip_prefix(':')) else { return false };
    let mut parts = rest.splitn(3, ':');
    let number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    number(parts.next()) && number(parts.next()) && parts.next().is_some()
}

fn judge(attack: &Attack, way: &str, said: Option<&str>, file: &str, cost: &Cost) {
    let name = attack.name;
    assert!(cost.work < WORK, "{name} by {way} took {:?}", cost.work);
    assert!(cost.peak < GROWTH, "{name} by {way} grew by {} KiB", cost.peak);
    match (attack.comes, said) {
        (Refused(words), Some(said)) => {
            assert!(place(said, file) && said.contains(words), "{name} by {way}: {said}");
        }
        (Taught { words, line, write }, Some(said)) => {
            assert!(place(said, file), "{name} by {way}: {said}");
            let mut told = said.lines();
            assert!(told.next().unwrap().contains(words), "{name} by {way}: {said}");
            if !line.is_empty() {
                assert!(
                    told.next().is_some_and(|shown| shown.trim_start().starts_with(line)),
                    "{name} by {way}: {said}"
                );
            }
            assert!(told.next().is_some_and(|help| help.trim_start().starts_with(write)), "{name} by {way}: {said}");
        }
        (Refused(_) | Taught { .. }, None) => panic!("{name} by {way} is not refused"),
        (Either, Some(said)) => assert!(place(said, file), "{name} by {way}: {said}"),
        (Either, None) => {}
    }
}

#[test]
fn the_program_answers_every_attack_in_little_time_and_memory() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("x.rego"), folder.path().join("out"));
    let check = |text: &[u8]| {
        BufWriter::new(File::create(&file).unwrap()).write_all(text).unwrap();
        let mut command = Command::new(program());
        measured(command.args(["policy", "check", "x.rego"]).current_dir(folder.path()), &out)
    };
    let (code, said, plain) = check(&module("deny contains \"x\" if input.args.a == 1"));
    assert_eq!(code, Some(0), "{said}");
    assert!(plain.work < WORK / 4, "a good module, with every input that it is tried on, took {:?}", plain.work);
    for attack in ATTACKS {
        let (code, said, mut cost) = check(&(attack.text)());
        cost.peak = cost.peak.saturating_sub(plain.peak);
        let refused = match code {
            Some(0) => None,
            Some(1) => Some(said.as_str()),
            other => panic!("{}: {other:?}: {said}", attack.name),
        };
        judge(attack, "the program", refused, "x.rego", &cost);
    }
}

#[test]
fn the_guard_and_the_gate_answer_every_attack_in_little_time_and_memory() {
    let _alone = alone();
    let guard = Guard::of(program(), "check-policy-modules");
    let gate = Gate::new(guard.clone());
    for attack in ATTACKS {
        // What is not text never gets this far: whoever reads the bytes says so.
        let Ok(text) = String::from_utf8((attack.text)()) else { continue };
        let modules = BTreeMap::from([("rules/x.rego".to_owned(), text)]);
        let (findings, cost) = own(|| guard.check(&modules).unwrap().err());
        judge(attack, "the guard", findings.map(|found| found.to_string()).as_deref(), "rules/x.rego", &cost);

        let text = modules.into_values().next().unwrap();
        let mut world = world(BTreeMap::from([("x.rego".to_owned(), text)]));
        let ((), cost) = own(|| gate.pass(&mut world));
        let said = match &world.policies["rules"] {
            Ok(_) => None,
            Err(Unresolved::Malformed(said)) => Some(said.as_str()),
            Err(other) => panic!("{}: {other:?}", attack.name),
        };
        judge(attack, "the gate", said, "rules/x.rego", &cost);
    }
}

#[test]
fn what_is_too_large_for_the_gate_hides_nothing_of_the_others() {
    let _alone = alone();
    let gate = Gate::new(Guard::of(program(), "check-policy-modules"));
    let of = |name: &str, body: &str| (format!("{name}.rego"), format!("package cotter.user.{name}\n\n{body}\n"));
    let (big, good) =
        (of("big", &"# long\n".repeat(20_000)), of("good", "deny contains \"x\" if data.cotter.user.big.x"));
    let said = |data: &[(String, String)]| {
        let mut world = world(data.iter().cloned().collect());
        gate.pass(&mut world);
        match &world.policies["rules"] {
            Ok(_) => String::new(),
            Err(Unresolved::Malformed(said)) => said.clone(),
            Err(other) => panic!("{other:?}"),
        }
    };
    let told = said(&[big.clone(), good.clone(), of("self", "f(n) := f(n)")]);
    assert!(
        told.contains("rules/big.rego:9361:") && told.contains("rules/self.rego:3:1: the rule uses itself"),
        "{told}"
    );
    assert!(!told.contains("rules/good.rego"), "what it uses is there, and only too large: {told}");
    // The verdict that is remembered is that of these modules beside that one.
    assert!(said(&[good]).contains("rules/good.rego:3:22: there is no big in"));
    assert!(said(&[big]).contains("rules/big.rego:9361:"));
    assert_eq!(said(&[of("self", "deny contains \"x\" if input.tool.name == \"x\"")]), "");
}

fn world(data: BTreeMap<String, String>) -> World {
    let server = "{apiVersion: cotter.dev/v1alpha1, kind: McpServer, metadata: {name: support, namespace: default}, \
        spec: {upstream: {remote: {url: 'https://mcp.example.com/mcp'}}, audience: 'support://mcp', access: {tenants: [a]}, tools: []}}";
    World {
        mode: Mode::Local(LocalSettings {
            folder: "folder".to_owned(),
            port: 7801,
            state_dir: "/state".into(),
            dev_issuer: None,
            service_accounts: None,
            secrets: BTreeMap::new(),
            config_maps: BTreeMap::new(),
        }),
        server: serde_saphyr::from_str(server).unwrap(),
        pins: Vec::new(),
        delegations: Vec::new(),
        keys: BTreeMap::new(),
        policies: BTreeMap::from([("rules".to_owned(), Ok(data))]),
        cluster_policies: BTreeMap::new(),
        reports: Vec::new(),
        ready_pods: None,
        charged: BTreeMap::new(),
        others: BTreeMap::new(),
        now: "2026-11-30T12:00:00Z".parse().unwrap(),
    }
}

#[test]
fn what_has_no_end_is_not_read_to_its_end() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.rego")).unwrap();
    let mut command = Command::new(program());
    let command = command.args(["policy", "check", "zero.rego"]).current_dir(folder.path());
    let (code, said, cost) = measured(command, &folder.path().join("out"));
    assert_eq!(code, Some(1));
    assert!(place(&said, "zero.rego"), "{said}");
    assert!(cost.work < WORK && cost.peak < GROWTH, "{:?}, {} KiB", cost.work, cost.peak);
}
