//! Modules and rules that change no decision, which nobody writes on purpose: a `denny` refuses nothing.

use std::collections::BTreeSet;

use regorus::unstable::{Module, Ref, Rule};

use super::{Finding, stages::uses};
use crate::{
    library,
    modules::{DENY, REQUIRE_APPROVAL},
    names::{Tree, rule_path},
    near::distance,
    syntax::{Step, head, names},
};

/// The sets that count, and how many letters a name may differ from them and still look like one. A short name looks like many words.
const SETS: [(&str, usize); 2] = [(DENY, 1), (REQUIRE_APPROVAL, 3)];

/// What does nothing, in all modules that are given.
pub(super) fn warnings(modules: &[Module]) -> Vec<Finding> {
    let tree = Tree::of(library::modules().iter().chain(modules));
    let used: Vec<BTreeSet<String>> = modules.iter().map(|module| used_by(&tree, module)).collect();
    let by_any = |rule: &str| used.iter().any(|used| is_used(used, rule));
    let mut warnings = Vec::new();
    for (at, module) in modules.iter().enumerate() {
        let by_others = |rule: &str| used.iter().enumerate().any(|(other, used)| other != at && is_used(used, rule));
        warnings.extend(module.policy.iter().filter_map(|rule| misspelt(module, rule, &by_any)));
        warnings.extend(idle(module, &by_others));
    }
    warnings
}

/// A rule with a name that looks like one of the sets, and that nothing uses.
fn misspelt(module: &Module, rule: &Rule, is_used: &impl Fn(&str) -> bool) -> Option<Finding> {
    let found = names(head(rule).0);
    let name = found.first()?;
    let (set, _) = SETS.iter().find(|(set, far)| name != set && distance(name, set) <= *far)?;
    if is_used(&data(module, rule)) {
        return None;
    }
    let message = format!("the rule {name} is nothing that is looked at, and its name is nearly {set}");
    let help = format!("write `{set} contains \"why\" if {{ … }}`, or give the rule a name that is further away");
    Some(Finding::span(rule.span(), message, help))
}

/// A module that neither contributes anything nor has anything that another one uses.
fn idle(module: &Module, is_used: &impl Fn(&str) -> bool) -> Option<Finding> {
    let contributes =
        |rule: &Ref<Rule>| names(head(rule).0).first().is_some_and(|name| SETS.iter().any(|(set, _)| name == set));
    if module.policy.iter().any(|rule| contributes(rule) || is_used(&data(module, rule))) {
        return None;
    }
    let message = format!(
        "the module changes no decision: it has neither {DENY} nor {REQUIRE_APPROVAL}, and no other module here uses it"
    );
    let help =
        format!("write `{DENY} contains \"why\" if {{ … }}` or `{REQUIRE_APPROVAL} contains \"why\" if {{ … }}`");
    Some(Finding::span(&module.package.span, message, help))
}

fn data(module: &Module, rule: &Rule) -> String {
    format!("data.{}", rule_path(&names(&module.package.refr), rule).join("."))
}

/// Whether one of these paths is a rule, lies in it, or has it below.
fn is_used(used: &BTreeSet<String>, rule: &str) -> bool {
    let is_below =
        |path: &str, of: &str| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    used.iter().any(|used| is_below(used, rule) || is_below(rule, used))
}

/// What a module refers to, as far as there is something.
fn used_by(tree: &Tree, module: &Module) -> BTreeSet<String> {
    let there = |path: Vec<Step>| tree.node(tree.follow(&path).0).map(|node| node.path.clone());
    uses(tree, module).into_iter().filter_map(there).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse;

    fn warned(texts: &[&str]) -> Vec<String> {
        let modules: Vec<Module> =
            texts.iter().enumerate().map(|(at, text)| parse(&format!("m{at}"), text).unwrap()).collect();
        warnings(&modules).iter().map(|found| format!("{}:{}: {}", found.file, found.line, found.message)).collect()
    }

    #[test]
    fn a_name_that_is_nearly_one_of_the_sets_is_warned_of() {
        for name in ["denny", "den", "dney", "Deny", "require_aproval", "requires_approval", "requireApproval"] {
            let text = format!(
                "package cotter.user.m\n\n{name} contains \"x\" if input.tool.name == \"a\"\n\ndeny contains \"y\"\n"
            );
            let found = warned(&[&text]);
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("m0:3: the rule {name} is nothing")),
                "{found:?}"
            );
        }
        for name in ["denied", "demo", "approval", "requirements", "deny_list"] {
            let text = format!("package cotter.user.m\n\n{name} contains \"x\"\n\ndeny contains \"y\"\n");
            assert_eq!(warned(&[&text]), Vec::<String>::new());
        }
        let used = "package cotter.user.m\n\ndenys contains \"x\"\n\ndeny contains x if some x in denys\n";
        assert_eq!(warned(&[used]), Vec::<String>::new(), "whoever uses it knows its name");
    }

    #[test]
    fn a_module_that_changes_nothing_is_warned_of() {
        let library = "package cotter.user.lib\n\nlate(x) := x > 18\n";
        let found = warned(&[library]);
        assert!(found.len() == 1 && found[0].starts_with("m0:1: the module changes no decision"), "{found:?}");
        let user = "package cotter.user.m\n\nimport data.cotter.user.lib\n\ndeny contains \"x\" if lib.late(input.args.hour)\n";
        assert_eq!(warned(&[library, user]), Vec::<String>::new());
        let whole = "package cotter.user.m\n\ndeny contains \"x\" if count(data.cotter.user.lib) == 3\n";
        assert_eq!(warned(&[library, whole]), Vec::<String>::new());
        let alone = "package cotter.user.m\n\nimport data.cotter.user.lib\n\ndeny contains \"x\" if input.args.hour\n";
        assert_eq!(warned(&[library, alone]).len(), 1, "an import is no use");
    }
}
