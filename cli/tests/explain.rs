//! `cotter policy eval --explain`: which rules fired, and the first expression of each of the others that did not hold.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{fs, process::Command};

use serde_json::{Value, json};

const MODULE: &str = r#"package cotter.user.m

import data.cotter.effects

default level := "low"

level := "high" if input.args.amount > 1000 else := "middle" if {
	input.args.amount > 100
} else := "some" if input.args.amount > 10

deny contains "no effect" if {
	not effects.reversible(input.tool)
}

deny contains "not in the group" if {
	input.tool.effect == "Write"
	not "desk" in input.principal.groups
}

deny contains msg if {
	some tag in input.args.tags
	startswith(tag, "x-")
	msg := sprintf("the tag %s", [tag])
}

deny contains "all short" if {
	every tag in input.args.tags {
		count(tag) < 4
	}
}

deny contains "no member" if some tag in input.args.nothing

deny contains input.args.missing if input.args.amount == 50

deny contains "later" if {
	limit < input.args.amount
	limit = bound(input.args.amount)
}

deny contains "fails" if to_number(input.args.text) > 1

bound(amount) := amount + 1 if amount > 10

unused(x) := x

require_approval contains "big" if input.args.amount > 10
"#;

fn explain(change: impl Fn(&mut Value)) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut input: Value = serde_saphyr::from_str(include_str!("../../policies/cases/base.yaml")).unwrap();
    input["args"] = json!({"amount": 50, "tags": ["abc", "longer"], "text": "2"});
    change(&mut input);
    fs::write(folder.path().join("in.json"), input.to_string()).unwrap();
    fs::write(folder.path().join("m.rego"), MODULE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cotter"));
    command.args(["policy", "eval", "--input", "in.json", "--policy", "m.rego", "--explain"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// What is said of the body that begins at a line: whether it fired, where it stopped and why, and the note.
fn said(told: &Value, line: usize) -> (Value, String, String) {
    let rules = told["rules"].as_array().unwrap();
    let own: Vec<&Value> = rules.iter().filter(|rule| rule["file"] == "m.rego" && rule["line"] == line).collect();
    assert!(!own.is_empty(), "line {line}: {rules:#?}");
    let stop = &own[0]["stopped"];
    let stop = match stop {
        Value::Null => String::new(),
        stop => format!(
            "{}:{} {}: {}",
            stop["line"],
            stop["column"],
            stop["text"].as_str().unwrap(),
            stop["because"].as_str().unwrap()
        ),
    };
    (own[0]["fired"].clone(), stop, own[0]["note"].as_str().unwrap_or_default().to_owned())
}

fn line(starts: &str) -> usize {
    MODULE.lines().position(|line| line.starts_with(starts)).unwrap() + 1
}

fn stopped(stop: &str) -> (Value, String, String) {
    (json!(false), stop.to_owned(), String::new())
}

fn fired() -> (Value, String, String) {
    (json!(true), String::new(), String::new())
}

#[test]
fn each_rule_that_did_not_fire_has_its_first_expression_that_does_not_hold() {
    let told = explain(|_| {});
    let at = |text: &str| said(&told, line(text));
    assert_eq!(
        at("deny contains \"no effect\""),
        stopped("12:2 not effects.reversible(input.tool): what it negates is true")
    );
    assert_eq!(
        at("deny contains \"not in the group\""),
        stopped("17:2 not \"desk\" in input.principal.groups: what it negates is true")
    );
    assert_eq!(at("deny contains msg"), stopped("22:2 startswith(tag, \"x-\"): it is false"));
    let every = at("deny contains \"all short\"");
    assert_eq!(every.1, "27:2 every tag in input.args.tags { count(tag) < 4 }: it is not true of every member");
    assert_eq!(
        at("deny contains \"no member\""),
        stopped("32:30 some tag in input.args.nothing: it has no such member")
    );
    assert_eq!(at("deny contains input.args.missing"), stopped("34:15 input.args.missing: the value is undefined"));
    let later = at("deny contains \"later\"");
    assert_eq!(
        (later.0, later.1.as_str(), later.2.as_str()),
        (json!(false), "", "which part does not hold cannot be told")
    );
    assert_eq!(at("require_approval"), fired());
    assert_eq!(at("deny contains \"fails\""), fired());
}

#[test]
fn a_negated_rule_of_the_library_says_that_what_it_negates_is_true() {
    let of = |told: &Value| {
        let rules = told["rules"].as_array().unwrap().iter();
        let mut found = rules.filter(|rule| rule["file"] == "cotter/tenants.rego" && rule["line"] == 14);
        found.next().unwrap().clone()
    };
    let held = of(&explain(|_| {}));
    assert_eq!((&held["fired"], &held["note"]), (&json!(false), &Value::Null), "{held}");
    let stop = json!({"line": 14, "column": 68, "text": "not admitted", "because": "what it negates is true"});
    assert_eq!(held["stopped"], stop);
    let fired = of(&explain(|input| input["principal"]["tenant"] = json!("tenant-8")));
    assert_eq!((&fired["fired"], &fired["stopped"]), (&json!(true), &Value::Null), "{fired}");
}

#[test]
fn each_fires_where_it_holds() {
    let told = explain(|input| {
        input["tool"]["effect"] = json!("External");
        input["args"] = json!({"tags": ["x-y", "b"], "nothing": [1], "missing": "reason", "amount": 50, "text": "0"});
        input["principal"]["groups"] = json!([]);
    });
    for text in [
        "deny contains \"no effect\"",
        "deny contains msg",
        "deny contains \"all short\"",
        "deny contains \"no member\"",
    ] {
        assert_eq!(said(&told, line(text)), fired(), "{text}");
    }
    assert_eq!(said(&told, line("deny contains input.args.missing")), fired());
    assert_eq!(
        said(&told, line("deny contains \"fails\"")),
        stopped("41:26 to_number(input.args.text) > 1: it is false")
    );
    let group = said(&told, line("deny contains \"not in the group\""));
    assert_eq!(group, stopped("16:2 input.tool.effect == \"Write\": it is false"));
}

#[test]
fn branches_defaults_and_functions_say_what_they_are() {
    let told = explain(|_| {});
    assert_eq!(said(&told, 7), stopped("7:20 input.args.amount > 1000: it is false"));
    let rules = told["rules"].as_array().unwrap();
    let of = |line: usize| rules.iter().filter(|rule| rule["file"] == "m.rego" && rule["line"] == line).count();
    assert_eq!(
        (of(7), of(9)),
        (2, 1),
        "the rule and its first else on one line, the second else on another: {rules:#?}"
    );
    let middle = rules.iter().find(|rule| rule["file"] == "m.rego" && rule["line"] == 9).unwrap();
    assert_eq!(middle["fired"], true);
    let default = said(&told, line("default level"));
    assert_eq!((default.0, default.2.as_str()), (json!(false), "another definition holds"));
    let bound = said(&told, line("bound(amount)"));
    assert_eq!((bound.0, bound.2.as_str()), (Value::Null, "a function: called by cotter.user.m.deny"));
    assert_eq!(said(&told, line("unused(x)")).2, "a function that nothing calls");

    let low = explain(|input| input["args"]["amount"] = json!(1));
    let default = said(&low, line("default level"));
    assert_eq!((default.0, default.2.as_str()), (json!(true), "no other definition holds"));
    let missing = explain(|input| drop(input["args"].as_object_mut().unwrap().remove("amount")));
    let stop = said(&missing, line("require_approval"));
    assert_eq!(stop.1, "47:36 input.args.amount > 10: it is undefined");
}

#[test]
fn a_rule_that_fails_says_how() {
    let told = explain(|input| input["args"]["text"] = json!("two"));
    let stop = said(&told, line("deny contains \"fails\"")).1;
    assert_eq!(stop, "41:26 to_number(input.args.text) > 1: fails: could not parse string as number");
    assert_eq!(told["allow"], false);
}
