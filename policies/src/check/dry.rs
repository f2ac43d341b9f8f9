//! The last stage: the rule set decides on one input of every kind before it decides on anything real. What fails here, or takes too
//! long, would refuse every such request.

use std::collections::BTreeMap;

use cotter_core::{effect::Effect, reason::DenyReason};
use regorus::{Value, unstable::Module};
use serde_json::json;

use super::{Checked, Finding};
use crate::{
    document::INPUT_VERSION,
    engine::{self, EvalError},
    library,
    modules::{DENY, REQUIRE_APPROVAL},
    syntax::{head, names},
};

/// Decides on every kind of input: the sets of each module by themselves, so that one that has to be stopped is known by name, and
/// then all together. A rule that takes too long takes so on every input, so the first such ends it.
pub(crate) fn dry_run(checked: &Checked, modules: &BTreeMap<String, String>, at: &mut dyn FnMut(&str)) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rules =
        checked.modules.iter().flat_map(sets).chain([(super::TOGETHER.to_owned(), library::DECISION.to_owned(), 1)]);
    for (file, rule, line) in rules {
        at(&file);
        for (name, input) in inputs() {
            let Ok(value) = Value::from_json_str(&input.to_string()) else { continue };
            let Err(error) = checked.engines.eval(&rule, &value, 0, engine::BUDGET) else { continue };
            findings.push(finding(modules, (&file, line), &name, &error));
            if error.code == DenyReason::PolicyTimeout {
                return findings;
            }
        }
    }
    findings.sort();
    findings.dedup_by(|a, b| (&a.file, a.line, a.column) == (&b.file, b.line, b.column));
    findings
}

/// The sets of one module: its name, the rule, and the line where it stands first.
fn sets(module: &Module) -> Vec<(String, String, u32)> {
    let file = module.package.span.source.get_path();
    let package = names(&module.package.refr).join(".");
    let set = |name: &str| {
        let rule = module.policy.iter().find(|rule| names(head(rule).0) == [name])?;
        Some((file.clone(), format!("data.{package}.{name}"), rule.span().line))
    };
    [DENY, REQUIRE_APPROVAL].iter().filter_map(|name| set(name)).collect()
}

/// Each effect, listed and called, by somebody with scopes and by a delegate, with arguments of two kinds.
fn inputs() -> Vec<(String, serde_json::Value)> {
    let mut inputs = Vec::new();
    for effect in Effect::ALL {
        for (kind, args) in [
            ("list", None),
            ("call", Some(json!({}))),
            ("call", Some(json!({"id": "C-41", "count": 3, "tags": ["a"]}))),
        ] {
            for delegated in [false, true] {
                let who = if delegated { "a delegate" } else { "a caller with scopes" };
                let mut input = input(effect, kind, delegated);
                if let (Some(input), Some(args)) = (input.as_object_mut(), args.clone()) {
                    input.insert("args".to_owned(), args);
                }
                inputs.push((format!("{kind}, {effect}, by {who}"), input));
            }
        }
    }
    inputs
}

fn input(effect: Effect, kind: &str, delegated: bool) -> serde_json::Value {
    let grant = json!({"scopes": {"scope": true}, "effects": {effect.as_str(): true}, "tools": {"tool": true}, "tenants": {"tenant": true}, "ancestors": []});
    let grants = if delegated { json!({"grant": grant}) } else { json!({}) };
    let method = if kind == "list" { "tools/list" } else { "tools/call" };
    let mut principal = json!({"issuer": "https://issuer.example", "subject": "subject", "tenant": "tenant", "groups": ["group"], "actorChain": [], "delegated": delegated});
    if let (Some(principal), false) = (principal.as_object_mut(), delegated) {
        principal.insert("scopes".to_owned(), json!(["scope"]));
    }
    json!({
        "version": INPUT_VERSION, "era": "modern", "protocol": "mcp", "now": "2026-11-30T12:00:00Z",
        "server": {"namespace": "namespace", "name": "server", "audience": "server://mcp", "labels": {}, "tenants": {"tenant": true}},
        "principal": principal,
        "grants": grants,
        "operation": {"method": method, "kind": kind},
        "tool": {"name": "tool", "scope": "scope", "effect": effect, "approval": "Never", "pin": {"state": "Matched"}},
    })
}

/// At the place that the engine names; where it names none, at the rule that was asked for.
fn finding(modules: &BTreeMap<String, String>, asked: (&str, u32), name: &str, error: &EvalError) -> Finding {
    let mut parts = error.message.splitn(4, ':');
    let place = (
        parts.next(),
        parts.next().and_then(|line| line.parse().ok()),
        parts.next().and_then(|column| column.parse().ok()),
        parts.next(),
    );
    let what = |said: &str| match error.code {
        DenyReason::PolicyTimeout => format!("deciding takes longer than {} ms ({name})", engine::BUDGET.as_millis()),
        _ => format!("deciding fails: {} ({name})", said.trim()),
    };
    let help = match error.code {
        DenyReason::PolicyTimeout => "make the rule cheaper: look things up by name instead of going through lists",
        _ => "check the type first (is_string, is_number, …): a rule that fails refuses the request",
    };
    match place {
        (Some(file), Some(line), Some(column), Some(said)) => {
            let text = modules.get(file).map_or("", String::as_str);
            Finding::at(file, text, (line, column), what(said), help)
        }
        _ => {
            let first = || modules.keys().next().map_or("", String::as_str);
            let (file, line) = if modules.contains_key(asked.0) { asked } else { (first(), 1) };
            let text = modules.get(file).map_or("", String::as_str);
            Finding::at(file, text, (line, 1), what(&error.message), help)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check::check, document::Input};

    fn run(text: &str) -> Vec<Finding> {
        let modules = BTreeMap::from([("m.rego".to_owned(), text.to_owned())]);
        dry_run(&check(&modules).unwrap(), &modules, &mut |_| {})
    }

    #[test]
    fn every_input_is_of_the_documented_form() {
        for (name, input) in inputs() {
            serde_json::from_value::<Input>(input).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn a_rule_that_fails_on_ordinary_inputs_is_found_with_its_place() {
        let found =
            run("package cotter.user.m\n\ndeny contains \"no\" if {\n  count(input.tool.effect) > upper(1)\n}\n");
        assert_eq!((found.len(), found[0].line), (1, 4), "{found:?}");
        assert!(
            run("package cotter.user.m\n\ndeny contains \"no\" if {\n  count(input.tool.effect) > 99\n}\n").is_empty()
        );
    }

    #[test]
    fn a_rule_that_takes_too_long_is_found() {
        let slow = "package cotter.user.m\n\nd := [0,1,2,3,4,5,6,7,8,9]\n\ndeny contains \"no\" if {\n  x := [1 | some a in d; some b in d; some c in d; some e in d; some f in d; some g in d]\n  count(x) < 0\n}\n";
        let found = run(slow);
        let late = found.iter().find(|finding| finding.message.contains("longer than 20 ms")).unwrap();
        assert_eq!((late.file.as_str(), late.line), ("m.rego", 5), "the rule that takes so long: {found:?}");
        assert!(run(&slow.replace("; some e in d; some f in d; some g in d", "")).is_empty());
    }
}
