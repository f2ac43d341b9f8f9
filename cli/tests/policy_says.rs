//! What `cotter policy` says to a person: of every file, of what changes nothing, and in the documented form.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

fn cotter(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cotter")).args(args).current_dir(folder).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn init_writes_all_or_nothing() {
    let folder = folder();
    let files = || {
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    fs::write(folder.path().join("starter.yaml"), "mine").unwrap();
    let said = cotter(folder.path(), &["policy", "init", "."]);
    assert_eq!((said.status.code(), out(&said)), (Some(2), String::new()));
    assert!(err(&said).contains("./starter.yaml exists already, and nothing was written"), "{}", err(&said));
    assert_eq!(files(), ["starter.yaml"]);
    assert_eq!(fs::read_to_string(folder.path().join("starter.yaml")).unwrap(), "mine");
    fs::remove_file(folder.path().join("starter.yaml")).unwrap();
    assert_eq!(cotter(folder.path(), &["policy", "init", "."]).status.code(), Some(0));
    assert_eq!(files(), ["starter.rego", "starter.yaml", "starter_test.rego"]);
    assert_eq!(cotter(folder.path(), &["policy", "init", "."]).status.code(), Some(2), "nothing is overwritten");
}

#[test]
fn every_module_is_in_the_coverage_and_cases_have_two_endings() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("m.rego", "package cotter.user.m\n\ndeny contains \"x\" if {\n\tinput.tool.effect == \"Read\"\n}\n");
    let said = cotter(folder.path(), &["policy", "test", "."]);
    assert_eq!(said.status.code(), Some(2), "without a case");
    assert_eq!(out(&said), "./m.rego: 0 of 2 lines reached, not 3, 4\n0 passed, 0 failed\n");
    write("lib.rego", "package cotter.user.lib\n\nf(x) := x + 1\n");
    let case =
        "about: x\ncases: [{name: a, set: {/tool/effect: Read}, expect: {allow: false, reasons: [PolicyDenied x]}}]";
    write("cases.yml", case);
    let said = cotter(folder.path(), &["policy", "test", "."]);
    let wanted = "./lib.rego: 0 of 1 lines reached, not 3\n./m.rego: 2 of 2 lines reached\n1 passed, 0 failed\n";
    assert_eq!((said.status.code(), out(&said).as_str()), (Some(0), wanted), "{}", err(&said));
    let named = cotter(folder.path(), &["policy", "test", "m.rego", "cases.yml"]);
    assert!(out(&named).ends_with("1 passed, 0 failed\n"), "{}", out(&named));
}

#[test]
fn a_case_that_proves_nothing_fails_with_its_file_and_name() {
    let folder = folder();
    cotter(folder.path(), &["policy", "init", "."]);
    let twin = "about: x\ncases: [{name: a, expect: {allow: true}, twin: {name: b, expect: {allow: true}}}]";
    fs::write(folder.path().join("more.yaml"), twin).unwrap();
    let said = cotter(folder.path(), &["policy", "test", "."]);
    assert_eq!(said.status.code(), Some(1), "{}", out(&said));
    let wanted = "FAILED  ./more.yaml: a / b\n        the twin of an allowed case has to be refused";
    assert!(out(&said).contains(wanted), "{}", out(&said));
    let set = "about: x\ncases: [{name: a, set: {/principle/groups: []}, expect: {allow: false}}]";
    fs::write(folder.path().join("more.yaml"), set).unwrap();
    let said = cotter(folder.path(), &["policy", "test", "."]);
    assert_eq!(said.status.code(), Some(1));
    let wanted = "FAILED  ./more.yaml: a\n        failed to set /principle/groups: there is no /principle; the nearest that there is: /principal";
    assert!(out(&said).contains(wanted), "{}", out(&said));
}

#[test]
fn a_misspelt_set_and_a_module_that_changes_nothing_are_warned_of() {
    let folder = folder();
    let check = |text: &str, more: &[&str]| {
        fs::write(folder.path().join("m.rego"), text).unwrap();
        cotter(folder.path(), &[&["policy", "check", "m.rego"], more].concat())
    };
    for (name, set) in [("denny", "deny"), ("require_aproval", "require_approval")] {
        let text = format!("package cotter.user.m\n\n{name} contains \"x\" if input.tool.effect == \"Read\"\n");
        let said = check(&text, &[]);
        assert_eq!(said.status.code(), Some(0));
        let rule = format!(
            "m.rego:3:1: warning: the rule {name} is nothing that is looked at, and its name is nearly {set}\n"
        );
        assert!(out(&said).contains(&rule), "{}", out(&said));
        assert!(out(&said).starts_with("m.rego:1:1: warning: the module changes no decision"), "{}", out(&said));
        assert!(out(&said).ends_with("\n1 module may be used\n"), "{}", out(&said));
        let json: Value = serde_json::from_slice(&check(&text, &["-o", "json"]).stdout).unwrap();
        assert_eq!((json["warnings"].as_array().unwrap().len(), json["findings"].as_array().unwrap().len()), (2, 0));
        assert_eq!(out(&check(&text.replace(name, set), &[])), "1 module may be used\n");
    }
}

#[test]
fn each_file_has_its_findings_as_far_as_it_gets() {
    let folder = folder();
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), format!("package cotter.user.{}\n\n{text}\n", &name[..1])).unwrap()
    };
    write("a.rego", "f(n) := f(n)\n\ndeny contains \"x\" if f(1)");
    write("b.rego", "deny contains \"x\" if {");
    write("c.rego", "deny contains \"x\" if input.tool.name == \"\u{202e}\"");
    write("d.rego", "deny contains \"x\" if startswith(input.principal.actor, \"a\")");
    write("e.rego", "deny contains \"x\" if input.tool.nmae == \"a\"");
    write("g.rego", "g(n) := g(n)\n\ndeny contains \"x\" if g(1)");
    // What uses a file that is refused is neither evaluated nor said to use what is not there.
    write("u.rego", "import data.cotter.user.c\n\ndeny contains \"x\" if c.helps(upper(input.principal.actor))");
    write("v.rego", "deny contains \"x\" if data.cotter.user.nowhere.at_all");
    fs::write(folder.path().join("w.rego"), b"package cotter.user.w\n\n# \xff\n").unwrap();
    let said = cotter(folder.path(), &["policy", "check", "."]);
    assert_eq!(said.status.code(), Some(1));
    let told = out(&said);
    let first: Vec<&str> = told.lines().filter(|line| line.starts_with("./")).collect();
    let wanted = [
        "./a.rego:3:1: the rule uses itself",
        "./b.rego:",
        "./c.rego:3:42: the invisible character U+202E",
        "./d.rego:3:48: deciding fails: `startswith` expects string argument",
        "./e.rego:3:22: the input has no member input.tool.nmae",
        "./g.rego:3:1: the rule uses itself",
        "./v.rego:3:22: there is no nowhere in",
        "./w.rego:3:3: this byte is not UTF-8",
    ];
    assert_eq!(first.len(), wanted.len(), "{told}");
    for (line, wanted) in first.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{line} and not {wanted}");
    }
}

fn schema() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(include_str!("../../policies/schema/decision.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn eval_prints_exactly_the_documented_decision() {
    let folder = folder();
    let base: Value = serde_saphyr::from_str(include_str!("../../policies/cases/base.yaml")).unwrap();
    let eval = |input: &Value, more: &[&str]| -> Value {
        fs::write(folder.path().join("in.json"), input.to_string()).unwrap();
        let said = cotter(folder.path(), &[&["policy", "eval", "--input", "in.json"], more].concat());
        serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{}", err(&said)))
    };
    let grant = json!({"scopes": {"case:write": true}, "effects": {"Write": true}, "tools": {"case_tag": true}, "tenants": {"tenant-7": true}});
    let mut delegated = base.clone();
    delegated["principal"]["delegated"] = json!(true);
    delegated["grants"] = json!({"b": grant, "a": grant});
    let mut limited = base.clone();
    limited["tool"]["limits"] = json!({"timeoutMs": 1, "resultBytes": 2});
    let mut refused = base.clone();
    refused["principal"]["scopes"] = json!([]);
    let schema = schema();
    for input in [&base, &delegated, &limited, &refused] {
        let told = eval(input, &[]);
        assert!(schema.is_valid(&told), "{told:#}");
        // With its explanation it has three members more, and is the same decision.
        let mut explained = eval(input, &["--explain"]);
        let members = explained.as_object_mut().unwrap();
        for name in ["layers", "rules", "evaluated"] {
            assert!(members.remove(name).is_some(), "{name}");
        }
        assert_eq!(explained, told);
    }
    assert_eq!(eval(&delegated, &[])["delegations"], json!(["a", "b"]));
    assert_eq!(eval(&base, &[])["delegations"], json!([]));
    assert_eq!(eval(&refused, &[])["challengeScopes"], json!(["case:write"]));
    let mut more = eval(&base, &[]);
    more["delegation"] = json!("a");
    assert!(!schema.is_valid(&more), "the schema says what is not in it");
}

#[test]
fn eval_takes_no_input_of_another_form() {
    let folder = folder();
    let base: Value = serde_saphyr::from_str(include_str!("../../policies/cases/base.yaml")).unwrap();
    let eval = |change: &dyn Fn(&mut Value)| {
        let mut input = base.clone();
        change(&mut input);
        fs::write(folder.path().join("in.json"), input.to_string()).unwrap();
        let said = cotter(folder.path(), &["policy", "eval", "--input", "in.json"]);
        (said.status.code(), err(&said))
    };
    assert_eq!(eval(&|_| {}).0, Some(0));
    let write = "write \"version\": \"cotter.input/v1\"";
    for (change, words) in [
        (
            Box::new(|input: &mut Value| input["version"] = json!("cotter.input/v9")) as Box<dyn Fn(&mut Value)>,
            format!(
                "in.json is none: /version is \"cotter.input/v9\", and this program reads cotter.input/v1: {write}"
            ),
        ),
        (
            Box::new(|input: &mut Value| drop(input.as_object_mut().unwrap().remove("version"))),
            format!("it has no /version: {write}"),
        ),
        (
            Box::new(|input: &mut Value| input["arg"] = json!({})),
            "there is no member /arg in cotter.input/v1: write /args".to_owned(),
        ),
        (
            Box::new(|input: &mut Value| input["principal"]["tennant"] = json!("a")),
            "there is no member /principal/tennant in cotter.input/v1: write /principal/tenant".to_owned(),
        ),
    ] {
        let (code, said) = eval(&*change);
        assert!(code == Some(2) && said.contains(&words), "{said}");
    }
}
