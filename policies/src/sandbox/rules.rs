//! Which rules fired on an input, and where each of the others stopped.

use std::collections::{BTreeMap, BTreeSet};

use regorus::{
    Value,
    unstable::{Expr, Module, Ref, Rule, RuleHead, Span},
};
use serde::{Deserialize, Serialize};

use super::{
    Sandbox, SandboxError,
    probe::{Body, Outcome, Written},
};
use crate::{
    library,
    names::{Scope, Target, Tree, rule_path},
    syntax::{self, HeadForm, Step, Visit, head, walk_rule},
};

/// One body of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReport {
    /// The file.
    pub file: String,
    /// The line of the rule, or of its `else`.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The rule, up to its body.
    pub rule: String,
    /// Whether its body holds; nothing for a function, which is asked with other values each time.
    pub fired: Option<bool>,
    /// The first part of it that does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stop>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A part of a body that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Its line.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
    /// Its text.
    pub text: String,
    /// How it does not hold.
    pub because: String,
}

impl Sandbox {
    /// Every rule of the library that is no function, and every rule of the modules.
    ///
    /// # Errors
    /// As for [`Sandbox::decide`].
    pub fn rules(
        &self,
        modules: &BTreeMap<String, String>,
        input: &serde_json::Value,
    ) -> Result<Vec<RuleReport>, SandboxError> {
        let input = Value::from_json_str(&input.to_string()).map_err(|error| SandboxError::Input(error.to_string()))?;
        let own = modules.iter().map(|(name, text)| syntax::parse(name, text).map_err(SandboxError::Tests));
        let own = own.collect::<Result<Vec<Module>, SandboxError>>()?;
        let shown =
            library::modules().iter().filter(|module| module.package.span.source.get_path() != library::NO_MODULES);
        let all: Vec<&Module> = shown.chain(&own).collect();
        let tree = Tree::of(all.iter().copied());
        let asker = Asker { sandbox: self, tree: &tree, callers: callers(&all, &tree), input: &input };
        let mut reports = Vec::new();
        for module in &all {
            let is_own = modules.contains_key(module.package.span.source.get_path());
            let found = asker.module(module);
            reports.extend(found.into_iter().filter(|report| is_own || report.fired.is_some()));
        }
        Ok(reports)
    }
}

struct Asker<'a> {
    sandbox: &'a Sandbox,
    tree: &'a Tree,
    callers: BTreeMap<usize, BTreeSet<String>>,
    input: &'a Value,
}

impl Asker<'_> {
    fn module(&self, module: &Module) -> Vec<RuleReport> {
        let package = Scope::of(module).package;
        let mut reports = Vec::new();
        for rule in &module.policy {
            let node = self.tree.find(&rule_path(&package, rule)).unwrap_or_default();
            match (head(rule).1, rule.as_ref()) {
                (HeadForm::Function, _) => reports.push(self.function(rule, node)),
                (_, Rule::Default { .. }) => {}
                (_, Rule::Spec { .. }) => reports.extend(self.bodies(module, rule)),
            }
        }
        let fired: BTreeSet<Vec<String>> = module
            .policy
            .iter()
            .filter(|rule| reports.iter().any(|report| report.fired == Some(true) && stands_in(report, rule)))
            .map(|rule| rule_path(&package, rule))
            .collect();
        for rule in module.policy.iter().filter(|rule| head(rule).1 == HeadForm::Default) {
            let is_used = !fired.contains(&rule_path(&package, rule));
            let note = if is_used { "no other definition holds" } else { "another definition holds" };
            let text = first_line(rule.span());
            reports.push(report(rule.span(), text, Some(is_used), Some(note.to_owned())));
        }
        reports.sort_by_key(|report| (report.line, report.column));
        reports
    }

    fn function(&self, rule: &Rule, node: usize) -> RuleReport {
        let callers: Vec<&str> = self.callers.get(&node).into_iter().flatten().map(String::as_str).collect();
        let note = match callers.is_empty() {
            true => "a function that nothing calls".to_owned(),
            false => format!("a function: called by {}", callers.join(", ")),
        };
        report(rule.span(), shown_head(rule), None, Some(note))
    }

    /// A rule, and its `else` branches, of which each is asked only where none before it holds.
    fn bodies(&self, module: &Module, rule: &Rule) -> Vec<RuleReport> {
        let Rule::Spec { head, bodies, span } = rule else { return Vec::new() };
        let first = Body { module, statements: Vec::new(), values: values(head) };
        if bodies.is_empty() {
            return vec![self.body(&first, span, shown_head(rule))];
        }
        let mut reports: Vec<RuleReport> = Vec::new();
        for (at, body) in bodies.iter().enumerate() {
            let is_first = at == 0;
            let values = match &body.assign {
                Some(assign) if is_constant(&assign.value) => Vec::new(),
                Some(assign) => vec![&assign.value],
                None if is_first => values(head),
                None => Vec::new(),
            };
            let (place, text) = match is_first {
                true => (span, shown_head(rule)),
                false => (&body.span, first_line(&body.span)),
            };
            let fired = reports.iter().any(|report| report.fired == Some(true));
            if fired && body.is_else {
                reports.push(report(place, text, Some(false), Some("a branch before it holds".to_owned())));
                continue;
            }
            let body = Body { module, statements: body.query.stmts.iter().collect(), values };
            reports.push(self.body(&body, place, text));
        }
        reports
    }

    fn body(&self, body: &Body<'_>, place: &Span, text: String) -> RuleReport {
        match body.probe(&self.sandbox.engine, self.input) {
            Outcome::Holds => report(place, text, Some(true), None),
            Outcome::Fails => {
                report(place, text, Some(false), Some("which part does not hold cannot be told".to_owned()))
            }
            Outcome::Stops(written, because) => {
                let stop = Stop { line: written.line, column: written.column, text: one_line(&written.text), because };
                RuleReport { stopped: Some(stop), ..report(place, text, Some(false), None) }
            }
        }
    }
}

/// What a rule needs beside its body and can be without: the value, and what its head is indexed by.
fn values(head: &RuleHead) -> Vec<&Ref<Expr>> {
    let mut values = all_values(head);
    values.retain(|value| !is_constant(value));
    values
}

fn is_constant(value: &Ref<Expr>) -> bool {
    matches!(
        value.as_ref(),
        Expr::String { .. } | Expr::RawString { .. } | Expr::Number { .. } | Expr::Bool { .. } | Expr::Null { .. }
    )
}

fn all_values(head: &RuleHead) -> Vec<&Ref<Expr>> {
    match head {
        RuleHead::Compr { refr, assign, .. } => {
            indices(refr).into_iter().chain(assign.as_ref().map(|assign| &assign.value)).collect()
        }
        RuleHead::Set { refr, key, .. } => indices(refr).into_iter().chain(key).collect(),
        RuleHead::Func { .. } => Vec::new(),
    }
}

fn indices(refr: &Ref<Expr>) -> Vec<&Ref<Expr>> {
    let (mut found, mut at) = (Vec::new(), refr);
    loop {
        match at.as_ref() {
            Expr::RefBrack { refr, index, .. } => {
                found.push(index);
                at = refr;
            }
            Expr::RefDot { refr, .. } => at = refr,
            _ => return found,
        }
    }
}

fn report(span: &Span, rule: String, fired: Option<bool>, note: Option<String>) -> RuleReport {
    let (line, column) = syntax::place(span.source.get_contents(), span.start);
    RuleReport { file: span.source.get_path().clone(), line, column, rule, fired, stopped: None, note }
}

/// Whether a report is of a body of this rule.
fn stands_in(report: &RuleReport, rule: &Rule) -> bool {
    let span = rule.span();
    let last = span.line.saturating_add(u32::try_from(span.text().lines().count()).unwrap_or(u32::MAX));
    (span.line..last).contains(&report.line)
}

fn shown_head(rule: &Rule) -> String {
    match rule {
        Rule::Spec {
            head: RuleHead::Compr { span, .. } | RuleHead::Set { span, .. } | RuleHead::Func { span, .. },
            ..
        } => one_line(&Written::of(span, span.start).text),
        Rule::Default { span, .. } => first_line(span),
    }
}

fn first_line(span: &Span) -> String {
    Written::of(span, span.start).text.lines().next().unwrap_or_default().trim_end_matches('{').trim().to_owned()
}

/// Text of several lines, on one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Who calls what, by rule.
fn callers(modules: &[&Module], tree: &Tree) -> BTreeMap<usize, BTreeSet<String>> {
    let mut callers = BTreeMap::new();
    for module in modules {
        let scope = Scope::of(module);
        for rule in &module.policy {
            let name = rule_path(&scope.package, rule).join(".");
            walk_rule(rule, &mut Calls { tree, scope: &scope, name: &name, callers: &mut callers });
        }
    }
    callers
}

struct Calls<'a> {
    tree: &'a Tree,
    scope: &'a Scope,
    name: &'a str,
    callers: &'a mut BTreeMap<usize, BTreeSet<String>>,
}

impl Visit for Calls<'_> {
    fn reference(&mut self, root: &str, steps: &[Step], arguments: Option<usize>, _: &Span) {
        if let (Some(_), Target::Data(path)) = (arguments, self.scope.resolve(self.tree, root, steps)) {
            let (used, _) = self.tree.follow(&path);
            self.callers.entry(used).or_default().insert(self.name.to_owned());
        }
    }
    fn local(&mut self, _: &str, _: &Span) {}
    fn index(&mut self, _: &str) {}
    fn text(&mut self, _: &str, _: &Span) {}
    fn call(&mut self, _: &Expr, _: &[Ref<Expr>]) {}
    fn with(&mut self, _: &Span) {}
}
