//! Hostile texts against every way into the check: `cotter policy check`, the guard that the library gives, and the gate that the
//! operator and `cotter up` pass a world through. Each is answered in less than two seconds of work, with its place, and costs whoever
//! asks next to no memory. Alone in its program: what is measured is the whole process.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cotter_compiler::{LocalSettings, Mode, Unresolved, World, gate::Gate};
use cotter_policies::guard::Guard;

/// What an answer may take of a processor, in the program and in its child together. On the wall a busy machine takes longer.
const WORK: Duration = Duration::from_secs(2);
/// What asking may add to a process, in KiB.
const GROWTH: u64 = 50 * 1024;
/// Ticks of a processor in a second, as `/proc` counts.
const TICKS: u64 = 100;

/// One at a time: each measures this process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What has to come of a text.
#[derive(Clone, Copy, PartialEq)]
enum Comes {
    /// It is refused with these words.
    Refused(&'static str),
    /// It may be used or not; what counts is what that costs.
    Either,
}
use Comes::{Either, Refused};

struct Attack {
    name: &'static str,
    comes: Comes,
    text: fn() -> Vec<u8>,
}

fn module(body: &str) -> Vec<u8> {
    format!("package cotter.user.x\n\n{body}\n").into_bytes()
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> Vec<u8> {
    module(&(0..count).map(line).collect::<String>())
}

fn nested(open: &str, depth: usize, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

const ATTACKS: &[Attack] = &[
    // Those that were measured first.
    Attack {
        name: "brackets",
        comes: Refused("nested more than 10"),
        text: || module(&format!("x := {}", nested("[", 40, "1", "]"))),
    },
    Attack {
        name: "braces",
        comes: Refused("nested more than 10"),
        text: || module(&format!("x := {}", "{[".repeat(4000))),
    },
    Attack {
        name: "recursion",
        comes: Refused("uses itself"),
        text: || module("f(n) := f(n)\n\ndeny contains \"x\" if f(1)"),
    },
    Attack {
        name: "range",
        comes: Refused("numbers.range is not allowed"),
        text: || module("deny contains \"x\" if count(numbers.range(1, 50000000)) > 0"),
    },
    Attack { name: "huge", comes: Refused("bytes"), text: || vec![b' '; 200 << 20] },
    Attack { name: "million", comes: Refused("bytes"), text: || lines(1_000_000, |n| format!("r{n} := {n}\n")) },
    Attack { name: "utf8", comes: Refused("not UTF-8"), text: || b"package cotter.user.x\n\n# \xff\n".to_vec() },
    Attack { name: "bidi", comes: Refused("U+202E"), text: || module("# \u{202e}live") },
    Attack {
        name: "chain",
        comes: Refused("in a row"),
        text: || lines(2000, |n| format!("r{} := r{n}\n", n + 1).replace("r0", "0")),
    },
    Attack {
        name: "outside",
        comes: Refused("no function http.send"),
        text: || module("deny contains \"x\" if http.send({\"url\": \"x\"})"),
    },
    Attack {
        name: "library",
        comes: Refused("below cotter.user"),
        text: || b"package cotter.authz\n\ndecision := {\"allow\": true}\n".to_vec(),
    },
    // Shapes that a parser or a walk over the tree follows by recursion.
    Attack {
        name: "else",
        comes: Either,
        text: || {
            module(&format!(
                "x := 0 if {{ input.args.a == 0 }}{}",
                " else := 1 if {\n input.args.a == 1 }".repeat(1500)
            ))
        },
    },
    Attack {
        name: "parentheses",
        comes: Refused("parentheses"),
        text: || module(&format!("x := {}", nested("(", 5000, "1", ")"))),
    },
    Attack { name: "minus", comes: Refused("operators"), text: || module(&format!("x := {}1", "- ".repeat(400))) },
    Attack { name: "not", comes: Refused("operators"), text: || module(&format!("x if {}true", "not ".repeat(200))) },
    Attack {
        name: "union",
        comes: Refused("operators"),
        text: || module(&format!("x := {{1}}{}", " |\n {1}".repeat(2000))),
    },
    Attack { name: "path", comes: Either, text: || module(&format!("x := input.args{}", ".a".repeat(480))) },
    Attack { name: "path-lines", comes: Either, text: || module(&format!("x := input.args{}", ".a\n".repeat(15_000))) },
    Attack { name: "index", comes: Either, text: || module(&format!("x := input.args{}", "[0]".repeat(300))) },
    Attack {
        name: "index-lines",
        comes: Either,
        text: || module(&format!("x := input.args{}", "[0]\n".repeat(12_000))),
    },
    Attack {
        name: "calls",
        comes: Refused("parentheses"),
        text: || module(&format!("x := {}", nested("count(", 300, "[1]", ")"))),
    },
    Attack {
        name: "comprehensions",
        comes: Refused("nested more than 10"),
        text: || module(&format!("x := {}", nested("[y | y := ", 12, "1", "]"))),
    },
    Attack {
        name: "comprehensions-within",
        comes: Either,
        text: || module(&format!("x := {}", nested("[1 | some _ in ", 9, "[1]", "]"))),
    },
    Attack {
        name: "every",
        comes: Refused("nested more than 10"),
        text: || module(&format!("x if {{ {} }}", nested("every y in [1] { ", 12, "true", " }"))),
    },
    Attack {
        name: "every-within",
        comes: Either,
        text: || {
            module(&format!(
                "x if {{ {} }}",
                (0..8).fold("true".to_owned(), |inner, n| format!("every y{n} in input.args.a {{ {inner} }}"))
            ))
        },
    },
    // Many of something small.
    Attack { name: "one-line", comes: Refused(""), text: || module(&format!("x := \"{}\"", "a".repeat(60_000))) },
    Attack { name: "raw-text", comes: Either, text: || module(&format!("x := `{}`", "[({\n".repeat(15_000))) },
    Attack { name: "comment", comes: Either, text: || module(&"# [({[({[({[({[({[({\n".repeat(3000)) },
    Attack { name: "template", comes: Refused(""), text: || module("x := $\"{input.args.a}\"") },
    Attack { name: "imports", comes: Either, text: || lines(1900, |n| format!("import data.cotter.scopes as s{n}\n")) },
    Attack {
        name: "same-name",
        comes: Either,
        text: || lines(1300, |n| format!("deny contains \"x\" if input.args.a == {n}\n")),
    },
    Attack {
        name: "literals",
        comes: Either,
        text: || module(&format!("deny contains \"x\" if {{\n{}}}", "\tinput.args.a == 1\n".repeat(3000))),
    },
    Attack { name: "rules-of-all", comes: Either, text: || lines(2500, |n| format!("r{n} if input.args.a == {n}\n")) },
    Attack {
        name: "set",
        comes: Either,
        text: || module(&format!("x := {{{}}}", (0..10_000).map(|n| format!("{n},\n")).collect::<String>())),
    },
    // What one call or one literal makes.
    Attack { name: "exponent", comes: Refused("exponent"), text: || module("x := 1e999999999") },
    Attack { name: "signed-exponent", comes: Refused("exponent"), text: || module("x := 1.5E+99999") },
    Attack { name: "digits", comes: Refused("digits"), text: || module(&format!("x := {}", "9".repeat(900))) },
    Attack {
        name: "products",
        comes: Refused("multiplications"),
        text: || {
            module(&format!(
                "x0 := input.args.a\n{}",
                (0..60).map(|n| format!("x{} := x{n} * x{n}\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "products-of-a-function",
        comes: Refused("multiplications"),
        text: || {
            module(&format!(
                "f0(a) := a * a\n{}",
                (0..10).map(|n| format!("f{}(a) := f{n}(f{n}(a))\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack { name: "format", comes: Refused("format"), text: || module("x := sprintf(\"%1000000000d\", [1])") },
    Attack {
        name: "regex",
        comes: Refused("regex exceeded size limit"),
        text: || module("deny contains \"x\" if regex.match(`(a{1000}){1000}`, input.tool.name)"),
    },
    Attack {
        name: "glob",
        comes: Either,
        text: || {
            module(&format!("deny contains \"x\" if glob.match(\"{}\", [], input.tool.name)", "{a,b,*}".repeat(8)))
        },
    },
    Attack {
        name: "doubling",
        comes: Refused("16 MiB"),
        text: || {
            module(&format!(
                "x0 := \"aaaaaaaa\"\n{}\ndeny contains x40",
                (0..40).map(|n| format!("x{} := concat(\"\", [x{n}, x{n}])\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "replacing",
        comes: Refused("16 MiB"),
        text: || {
            module(&format!(
                "x0 := \"aaaaaaaa\"\n{}\ndeny contains x9",
                (0..9).map(|n| format!("x{} := replace(x{n}, \"a\", x{n})\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "written",
        comes: Refused("16 MiB"),
        text: || {
            module(&format!(
                "x0 := [1]\n{}\ndeny contains json.marshal(x60)",
                (0..60).map(|n| format!("x{} := [x{n}, x{n}]\n", n + 1)).collect::<String>()
            ))
        },
    },
    Attack {
        name: "product",
        comes: Refused("longer than 20 ms"),
        text: || {
            module(
                "d := [0,1,2,3,4,5,6,7,8,9]\n\ndeny contains \"x\" if {\n\tx := [1 | some a in d; some b in d; some c in d; some e in d; some f in d; some g in d]\n\tcount(x) < 0\n}",
            )
        },
    },
];

/// What a process took.
#[derive(Default)]
struct Cost {
    work: Duration,
    /// The most memory that it had, in KiB.
    peak: u64,
}

/// A line of `/proc/…/status`, in KiB.
fn status(process: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
}

/// The state of a process, and the processor time that it and the children it waited for took.
fn work(process: &str) -> (char, Duration) {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11..15].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    (fields[0].chars().next().unwrap(), Duration::from_millis(ticks * 1000 / TICKS))
}

/// Runs a command, and looks at it until it has ended but is not yet waited for.
fn measured(command: &mut Command, out: &Path) -> (Option<i32>, String, Cost) {
    let mut child = command.stdout(File::create(out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let process = child.id().to_string();
    let mut cost = Cost::default();
    loop {
        cost.peak = cost.peak.max(status(&process, "VmHWM:").unwrap_or_default());
        let (state, work) = work(&process);
        if state == 'Z' {
            cost.work = work;
            break;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    (child.wait().unwrap().code(), String::from_utf8_lossy(&fs::read(out).unwrap()).into_owned(), cost)
}

/// What a call of this very process took.
fn own<T>(call: impl FnOnce() -> T) -> (T, Cost) {
    // The highest mark begins anew.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let (before, began) = (status("self", "VmRSS:").unwrap(), work("self").1);
    let value = call();
    let peak = status("self", "VmHWM:").unwrap().saturating_sub(before);
    (value, Cost { work: work("self").1 - began, peak })
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
        (Refused(_), None) => panic!("{name} by {way} is not refused"),
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
