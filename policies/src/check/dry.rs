//! The last stage: the rule set decides on one input of every kind, and on those of the library's own cases, before it decides on
//! anything real. What fails here, or takes too long, would refuse every such request.

use std::{collections::BTreeMap, time::Duration};

use cotter_core::reason::DenyReason;
use regorus::unstable::Module;

mod help;
mod inputs;

use inputs::{Sample, plain, special};

use super::{Checked, Finding};
use crate::{
    engine::{self, EvalError},
    library,
    modules::{DENY, REQUIRE_APPROVAL},
    syntax::{head, names},
};

/// Rules that are too slow and are still told one by one: each takes the whole budget, and the check has a second in all.
const MAX_SLOW: usize = 4;
/// What the plain inputs and the others together may take before the others are left out: a rule set that is so slow is near its end.
const ENOUGH: Duration = Duration::from_millis(400);

/// A rule that is asked for: its file, its path, and the line where it stands first.
struct Asked {
    file: String,
    rule: String,
    line: u32,
}

/// Decides on every kind of input: the sets of each module by themselves, so that one that has to be stopped is known by name, and
/// then all together. A rule that takes too long takes so on every input, so the first such ends it.
pub(crate) fn dry_run(checked: &Checked, modules: &BTreeMap<String, String>, at: &mut dyn FnMut(&str)) -> Vec<Finding> {
    let mut run = Run { checked, modules, findings: Vec::new(), slow: 0 };
    let together = Asked { file: super::TOGETHER.to_owned(), rule: library::DECISION.to_owned(), line: 1 };
    let before = engine::worked();
    for asked in checked.modules.iter().flat_map(sets) {
        at(&asked.file);
        run.ask(&asked, plain());
    }
    at(super::TOGETHER);
    if run.slow == 0 {
        run.ask(&together, plain());
        for sample in special() {
            if engine::worked().saturating_sub(before) < ENOUGH {
                run.ask(&together, std::slice::from_ref(sample));
            }
        }
    }
    run.findings.sort();
    run.findings
}

struct Run<'a> {
    checked: &'a Checked,
    modules: &'a BTreeMap<String, String>,
    findings: Vec<Finding>,
    slow: usize,
}

impl Run<'_> {
    fn ask(&mut self, asked: &Asked, samples: &[Sample]) {
        for sample in samples {
            if self.slow >= MAX_SLOW {
                return;
            }
            let Err(error) = self.checked.engines.eval(&asked.rule, &sample.value, 0, engine::BUDGET) else { continue };
            let found = finding(self.modules, asked, sample, &error);
            // The first input on which a place fails is the plainest.
            let place = |finding: &Finding| (finding.file.clone(), finding.line, finding.column);
            if self.findings.iter().all(|known| place(known) != place(&found)) {
                self.findings.push(found);
            }
            if error.code == DenyReason::PolicyTimeout {
                self.slow += 1;
                return;
            }
        }
    }
}

/// The sets of one module.
fn sets(module: &Module) -> Vec<Asked> {
    let file = module.package.span.source.get_path();
    let package = names(&module.package.refr).join(".");
    let set = |name: &str| {
        let rule = module.policy.iter().find(|rule| names(head(rule).0) == [name])?;
        Some(Asked { file: file.clone(), rule: format!("data.{package}.{name}"), line: rule.span().line })
    };
    [DENY, REQUIRE_APPROVAL].iter().filter_map(|name| set(name)).collect()
}

/// At the place that the engine names; where it names none, at the rule that was asked for.
fn finding(modules: &BTreeMap<String, String>, asked: &Asked, sample: &Sample, error: &EvalError) -> Finding {
    let mut parts = error.message.splitn(4, ':');
    let place = (
        parts.next(),
        parts.next().and_then(|line| line.parse().ok()),
        parts.next().and_then(|column| column.parse().ok()),
        parts.next(),
    );
    let (file, place, said) = match place {
        (Some(file), Some(line), Some(column), Some(said)) => (file, (line, column), said),
        _ => {
            let first = || modules.keys().next().map_or("", String::as_str);
            let is_known = modules.contains_key(&asked.file);
            let (file, line) = if is_known { (asked.file.as_str(), asked.line) } else { (first(), 1) };
            (file, (line, 1), error.message.as_str())
        }
    };
    let text = modules.get(file).map_or("", String::as_str);
    match error.code {
        DenyReason::PolicyTimeout => {
            let message = format!("deciding takes longer than {} ms (on {})", engine::BUDGET.as_millis(), sample.kind);
            let help = "make the rule cheaper: look things up by name instead of going through lists";
            Finding::at(file, text, place, message, help)
        }
        _ => {
            let line = text.lines().nth(place.0.saturating_sub(1) as usize).unwrap_or_default();
            let message = format!("deciding fails: {} (on {})", said.trim(), sample.kind);
            Finding::at(file, text, place, message, help::guard(line, said, &sample.input))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::{check::check, document::Input};

    fn run(text: &str) -> Vec<Finding> {
        let modules = BTreeMap::from([("m.rego".to_owned(), text.to_owned())]);
        dry_run(&check(&modules).unwrap(), &modules, &mut |_| {})
    }

    fn all() -> impl Iterator<Item = &'static Sample> {
        plain().iter().chain(special())
    }

    #[test]
    fn every_input_is_of_the_documented_form() {
        for sample in all() {
            let read = serde_json::from_value::<Input>(sample.input.clone());
            read.unwrap_or_else(|error| panic!("{}: {error}", sample.kind));
        }
    }

    #[test]
    fn the_inputs_have_everything_that_an_input_can_have() {
        for pointer in [
            "/principal/tenant",
            "/principal/scopes",
            "/principal/groups/0",
            "/principal/actor/subject",
            "/principal/actorChain/1/serviceAccount",
            "/principal/serviceAccount/name",
            "/server/labels/team",
            "/grants/grant/ancestors/0",
            "/tool/annotations/title",
            "/tool/annotations/readOnlyHint",
            "/tool/annotations/destructiveHint",
            "/tool/annotations/idempotentHint",
            "/tool/annotations/openWorldHint",
            "/tool/limits/timeoutMs",
            "/tool/limits/resultBytes",
            "/tool/idempotencyKey",
            "/tool/pin/class",
            "/args",
            "/argsDigest",
            "/approval/state",
            "/ledger/state",
        ] {
            let with = all().filter(|sample| sample.input.pointer(pointer).is_some()).count();
            assert!(with > 0 && with < all().count(), "{pointer}: {with} of {}", all().count());
        }
        for kind in ["list", "call"] {
            assert!(
                all().any(|sample| sample.input["operation"]["kind"] == kind
                    && sample.input["principal"]["actor"].is_object())
            );
        }
        let arguments: Vec<&Value> =
            all().filter_map(|sample| sample.input["args"].as_object()).flat_map(|args| args.values()).collect();
        for is in
            [Value::is_null, Value::is_boolean, Value::is_number, Value::is_string, Value::is_array, Value::is_object]
        {
            assert!(arguments.iter().any(|value| is(value)));
        }
        let cases = all().filter(|sample| sample.kind.contains("policies/cases/"));
        let files: BTreeSet<&str> = cases.filter_map(|sample| sample.kind.rsplit('/').next()).collect();
        assert!(files.len() + 1 >= library::CASES.len(), "each file but the one of what is malformed: {files:?}");
    }

    #[test]
    fn what_fails_for_some_callers_only_is_found_with_who_they_are() {
        let of = |condition: &str| run(&format!("package cotter.user.m\n\ndeny contains \"x\" if {condition}\n"));
        let found = of("startswith(input.principal.actor, \"bot\")");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].line, found[0].column), (3, 48));
        assert!(
            found[0].message.ends_with("by an agent that acts for somebody (input.principal.actor is an object))"),
            "{found:?}"
        );
        assert!(
            found[0].help.starts_with("input.principal.actor is an object there: name a member of it"),
            "{found:?}"
        );
        assert_eq!(of("startswith(input.principal.actor.subject, \"bot\")"), []);
        assert_eq!(of("{\n\tis_string(input.principal.actor)\n\tstartswith(input.principal.actor, \"bot\")\n}"), []);
        for (condition, kind) in [
            ("upper(input.principal.serviceAccount) == \"A\"", "by a service account"),
            ("abs(input.server.labels.team) == 1", "of a server with labels"),
            ("abs(input.tool.annotations.title) == 1", "of which the server says something"),
            ("upper(input.tool.limits) == \"A\"", "with limits and an idempotency key"),
            ("abs(input.args.text) == 1", "with an argument of each type"),
            ("abs(input.argsDigest) == 1", "of which something is known from before"),
            ("abs(input.args.case_id) == 1", "in policies/cases/"),
        ] {
            let found = of(condition);
            assert!(found.len() == 1 && found[0].message.contains(kind), "{condition}: {found:?}");
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
