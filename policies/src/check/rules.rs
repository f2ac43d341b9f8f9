//! The last stage: what the parsed modules say.

use std::collections::{BTreeMap, BTreeSet};

use regorus::unstable::{BUILTINS, Expr, Module, Ref, Rule, Span};

use super::{Finding, LeftOut, builtins, graph::Graph, is_cluster_wide};
use crate::{
    contract, library,
    modules::{DENY, REQUIRE_APPROVAL},
    names::{Scope, Target, Tree, rule_path},
    syntax::{HeadForm, Step, Visit, head, names, path, walk_rule},
};

/// Packages of the library that use the modules of the user, so that those cannot use them.
const ABOVE: [&str; 3] = ["authz", "modules", "obligations"];
const HELP_FILE: &str = "write `package cotter.user.<name>`, for example `package cotter.user.hours`";

/// Everything wrong with parsed modules, where others may be left out. Which rules use which is told of the modules that have nothing
/// else wrong with them.
pub(super) fn check(modules: &[Module], left_out: &LeftOut) -> Vec<Finding> {
    let tree = Tree::of(library::modules().iter().chain(modules));
    let mut graph = Graph::new(&tree);
    let mut findings = clashes(modules);
    for module in modules {
        let mut found = package(module).into_iter().chain(imports(module, &tree, left_out)).collect::<Vec<_>>();
        let mut own = Graph::new(&tree);
        read(module, (&tree, left_out), &mut own, &mut found);
        if found.is_empty() && findings.iter().all(|finding| finding.file != *file(module)) {
            graph.join(own);
        }
        findings.extend(found);
    }
    findings.extend(graph.check());
    findings
}

fn file(module: &Module) -> &String {
    module.package.span.source.get_path()
}

/// Reads the rules of one module: what is wrong with each, and what it uses.
fn read<'t>(
    module: &Module,
    (tree, left_out): (&'t Tree, &LeftOut),
    graph: &mut Graph<'t>,
    findings: &mut Vec<Finding>,
) {
    let scope = Scope::of(module);
    for rule in &module.policy {
        findings.extend(rule_head(rule));
        let at = tree.find(&rule_path(&scope.package, rule)).unwrap_or_default();
        graph.place(at, rule.span());
        let variables = BTreeMap::new();
        let mut reader = Reader { tree, left_out, scope: &scope, graph, at, findings, variables };
        walk_rule(rule, &mut reader);
        reader.unbound();
    }
}

fn package(module: &Module) -> Option<Finding> {
    let span = &module.package.span;
    let found = names(&module.package.refr);
    let whole = path(&module.package.refr).is_some_and(|(_, steps)| steps.len() + 1 == found.len());
    if found.len() > 2
        && found.starts_with(&["cotter".to_owned(), "user".to_owned()])
        && whole
        && found.iter().all(|name| identifier(name))
    {
        return None;
    }
    Some(Finding::span(
        span,
        format!("the package is {}, and modules live below cotter.user", found.join(".")),
        HELP_FILE,
    ))
}

/// A cluster-wide module's package is its own, with everything below and above it: what a server adds there could switch a rule off.
fn clashes(modules: &[Module]) -> Vec<Finding> {
    let placed = modules.iter().map(|module| (module.package.span.source.get_path().as_str(), module));
    let (wide, own): (Vec<_>, Vec<_>) = placed.partition(|(file, _)| is_cluster_wide(file));
    let clash = |module: &Module| {
        let package = names(&module.package.refr);
        let (file, taken) = wide.iter().find_map(|(file, wide)| {
            let taken = names(&wide.package.refr);
            (taken.starts_with(&package) || package.starts_with(&taken)).then_some((file, taken))
        })?;
        let message = format!("the package {} belongs to the cluster-wide module {file}", taken.join("."));
        Some(Finding::span(&module.package.span, message, "give this module a package of its own"))
    };
    own.iter().filter_map(|(_, module)| clash(module)).collect()
}

fn identifier(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An import names one thing that there is, by a name of its own: what a name means has to be the same here and in the engine.
fn imports(module: &Module, tree: &Tree, left_out: &LeftOut) -> Vec<Finding> {
    let (mut findings, scope) = (Vec::new(), Scope::of(module));
    let mut aliases = BTreeSet::new();
    for import in &module.imports {
        let found = names(&import.refr);
        let steps: Vec<Step> = found.iter().skip(1).cloned().map(Step::Name).collect();
        let missing = match found.first().map(String::as_str) {
            Some("rego" | "future") => continue,
            Some("input") => contract::missing(&steps).map(|member| format!("the input has no member {member}")),
            _ => data(tree, left_out, &steps).err(),
        };
        let alias = import.r#as.as_ref().map(Span::text).or(found.last().map(String::as_str)).unwrap_or_default();
        let hides =
            ["input", "data"].contains(&alias) || scope.is_rule(tree, alias) || !aliases.insert(alias.to_owned());
        if let Some(message) = missing {
            findings.push(Finding::span(&import.span, message, contract::MEMBERS));
        } else if hides {
            let message = format!("the import hides another `{alias}`");
            findings.push(Finding::span(&import.span, message, "give it another name: `import … as …`"));
        }
    }
    findings
}

/// `deny` and `require_approval` are sets of reasons and nothing else: another form would be read as "nothing is refused".
fn rule_head(rule: &Rule) -> Option<Finding> {
    let (refr, form) = head(rule);
    let found = names(refr);
    let name = found.first().filter(|name| [DENY, REQUIRE_APPROVAL].contains(&name.as_str()))?;
    let plain = found.len() == 1 && path(refr).is_some_and(|(_, steps)| steps.is_empty());
    if form == HeadForm::Set && plain {
        return None;
    }
    let message = format!("`{name}` has to be a set of reasons");
    Some(Finding::span(rule.span(), message, format!("write `{name} contains \"why\" if {{ … }}`")))
}

/// What may be read of `data`: rules of the library below the decision, and of other modules; nothing where that may be in a module that
/// is left out.
fn data(tree: &Tree, left_out: &LeftOut, steps: &[Step]) -> Result<Option<usize>, String> {
    let text = |steps: &[Step]| {
        steps.iter().fold("data".to_owned(), |text, step| match step {
            Step::Name(name) => format!("{text}.{name}"),
            Step::Any => format!("{text}[…]"),
        })
    };
    let name = |at: usize| match steps.get(at) {
        Some(Step::Name(name)) => name.as_str(),
        Some(Step::Any) | None => "",
    };
    if name(0) != "cotter" || name(1).is_empty() || ABOVE.contains(&name(1)) {
        return Err(format!(
            "{} cannot be used here: a module sees data.cotter.user and the library below the decision",
            text(steps)
        ));
    }
    match tree.follow(steps) {
        (_, Some(_)) if left_out.may_have(steps) => Ok(None),
        (_, Some(lost)) => Err(format!("there is no {lost} in {}", text(steps))),
        (at, None) => Ok(Some(at)),
    }
}

/// Whether every verb of a format has a width of at most two ASCII digits: the engine makes text as wide as it is told, in one call,
/// and does not survive a digit that is not ASCII.
fn plain_format(format: &str) -> bool {
    format.split('%').skip(1).all(|verb| {
        let width = verb.chars().take_while(|c| c.is_numeric() || *c == '.');
        width.clone().count() <= 2 && width.into_iter().all(|c| c.is_ascii())
    })
}

struct Reader<'a, 't> {
    tree: &'t Tree,
    left_out: &'a LeftOut,
    scope: &'a Scope,
    graph: &'a mut Graph<'t>,
    at: usize,
    findings: &'a mut Vec<Finding>,
    /// The rule's own variables: where each stands while it was seen only once and nothing binds it.
    variables: BTreeMap<String, Option<Span>>,
}

impl Reader<'_, '_> {
    fn say(&mut self, span: &Span, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Finding::span(span, message, help));
    }

    /// A variable that stands in one place only, where nothing binds it: a misspelt rule, which would silently be undefined.
    fn unbound(&mut self) {
        let may_be_rules = self.left_out.share(&self.scope.package);
        for (name, span) in std::mem::take(&mut self.variables) {
            if let Some(span) = span.filter(|_| !may_be_rules) {
                self.say(&span, format!("nothing binds the variable {name}"), "name a rule or an import, or write `_`");
            }
        }
    }

    fn arity(&mut self, name: &str, given: usize, wanted: usize, span: &Span) {
        // One more than wanted: the last one is compared with the result.
        if given != wanted && given != wanted + 1 {
            let message = format!("{name} takes {wanted} arguments and gets {given}");
            self.say(span, message, "");
        }
    }

    fn builtin(&mut self, root: &str, steps: &[Step], given: usize, span: &Span) {
        let name = steps.iter().fold(root.to_owned(), |name, step| match step {
            Step::Name(step) => format!("{name}.{step}"),
            Step::Any => format!("{name}[…]"),
        });
        match builtins::arguments(&name) {
            Some(wanted) => self.arity(&name, given, wanted, span),
            None if BUILTINS.contains_key(name.as_str()) || name == "print" => {
                self.say(span, format!("the function {name} is not allowed in a policy"), builtins::instead(&name));
            }
            None if steps.is_empty() && self.left_out.share(&self.scope.package) => {}
            None => self.say(span, format!("there is no function {name}"), builtins::instead(&name)),
        }
    }
}

impl Visit for Reader<'_, '_> {
    fn reference(&mut self, root: &str, steps: &[Step], arguments: Option<usize>, span: &Span) {
        match (self.scope.resolve(self.tree, root, steps), arguments) {
            (Target::Input(path), None) => {
                if let Some(member) = contract::missing(&path) {
                    self.say(span, format!("the input has no member {member}"), contract::MEMBERS);
                }
            }
            (Target::Input(_), Some(_)) => self.say(span, "the input is not a function", ""),
            (Target::Data(path), arguments) => match data(self.tree, self.left_out, &path) {
                Err(message) => self.say(
                    span,
                    message,
                    "see the packages of the library: scopes, tenants, effects, pins, delegation",
                ),
                Ok(None) => {}
                Ok(Some(used)) => {
                    self.graph.add(self.at, used);
                    let node = self.tree.node(used);
                    let wanted = node.and_then(|node| node.arguments);
                    match (arguments, wanted) {
                        (Some(given), Some(wanted)) => self.arity(root, given, wanted, span),
                        (Some(_), None) => self.say(span, format!("{root} is not a function"), ""),
                        (None, _) => {}
                    }
                }
            },
            (Target::Own, Some(given)) => self.builtin(root, steps, given, span),
            (Target::Own, None) => {
                let seen = self.variables.contains_key(root) || root == "_";
                self.variables.insert(root.to_owned(), (!seen).then(|| span.clone()));
            }
        }
    }

    fn index(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), None);
    }

    fn local(&mut self, name: &str, span: &Span) {
        self.variables.insert(name.to_owned(), None);
        if self.scope.hides(self.tree, name) {
            let message = format!("the variable {name} hides a rule or an import of the same name");
            self.say(span, message, "give it another name");
        }
    }

    fn text(&mut self, text: &str, span: &Span) {
        for (class, ascii) in
            [("\\d", "[0-9]"), ("\\w", "[0-9A-Za-z_]"), ("\\s", "[ \\t\\n]"), ("\\b", "an explicit boundary")]
        {
            if text.contains(class) || text.contains(&class.to_uppercase()) {
                let message = format!("{class} means other characters here (all of Unicode) than in OPA (ASCII)");
                self.say(span, message, format!("write {ascii}, or its complement"));
            }
        }
    }

    fn call(&mut self, function: &Expr, arguments: &[Ref<Expr>]) {
        let Some(format) = arguments.first().filter(|_| names(function) == ["sprintf"]) else { return };
        let constant = match format.as_ref() {
            Expr::String { value, .. } | Expr::RawString { value, .. } => value.as_string().ok(),
            _ => None,
        };
        if !constant.is_some_and(|format| plain_format(format)) {
            let message = "the format of sprintf has to be a constant, with widths of at most two digits";
            self.say(format.span(), message, "write the format in place, for example \"%d of %s\"");
        }
    }

    fn product(&mut self, _span: &Span) {
        self.graph.product(self.at);
    }

    fn with(&mut self, span: &Span) {
        self.say(span, "`with` is for tests", "write a function and give it the value as an argument");
    }
}
