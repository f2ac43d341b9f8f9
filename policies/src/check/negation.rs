//! `not` over a member that can be missing. Here the condition is then undefined and `not` makes it true; `opa` takes the member out
//! of the condition first, and the whole rule is undefined. Here it refuses more, so it is a warning.

use regorus::unstable::{BoolOp, Expr, Module, Ref, Span};

use super::Finding;
use crate::{
    contract, library,
    names::{Scope, Target, Tree},
    syntax::{self, Step, Visit, path, walk_rule},
};

/// What to write instead.
const HELP: &str = "give the condition a rule of its own and write `not that_rule`, which means the same everywhere; or test first that the member is there";

/// Everything in a module that `opa` reads otherwise.
pub(super) fn warnings(module: &Module) -> Vec<Finding> {
    let tree = Tree::of(library::modules().iter().chain([module]));
    let scope = Scope::of(module);
    let mut reader = Reader { tree: &tree, scope: &scope, findings: Vec::new() };
    module.policy.iter().for_each(|rule| walk_rule(rule, &mut reader));
    reader.findings
}

struct Reader<'a> {
    tree: &'a Tree,
    scope: &'a Scope,
    findings: Vec<Finding>,
}

impl Visit for Reader<'_> {
    fn reference(&mut self, _: &str, _: &[Step], _: Option<usize>, _: &Span) {}
    fn local(&mut self, _: &str, _: &Span) {}
    fn index(&mut self, _: &str) {}
    fn text(&mut self, _: &str, _: &Span) {}
    fn call(&mut self, _: &Expr, _: &[Ref<Expr>]) {}
    fn with(&mut self, _: &Span) {}

    fn not(&mut self, expr: &Expr) {
        let mut references = Vec::new();
        taken_out(expr, &mut references);
        if let Some(member) = references.into_iter().find_map(|reference| self.optional(reference)) {
            let message = format!("where {member} is missing, `not` is true here and undefined in opa");
            let (span, text) = (expr.span(), expr.span().source.get_contents());
            let place = syntax::place(text, syntax::start(expr));
            self.findings.push(Finding::at(span.source.get_path(), text, place, message, HELP));
        }
    }
}

impl Reader<'_> {
    /// The member of the input that a reference needs and an input can be without.
    fn optional(&self, reference: &Expr) -> Option<String> {
        let (root, steps) = path(reference)?;
        match self.scope.resolve(self.tree, root.text(), &steps) {
            Target::Input(path) => contract::optional(&path),
            Target::Data(_) | Target::Own => None,
        }
    }
}

/// The references of a condition that `opa` evaluates before `not`: all but the condition itself, and the sides of `==`.
fn taken_out<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    match expr {
        Expr::RefDot { refr, .. } => taken_out(refr, out),
        Expr::RefBrack { refr, index, .. } => {
            taken_out(refr, out);
            operands(index, out);
        }
        Expr::BoolExpr { op: BoolOp::Eq, lhs, rhs, .. } | Expr::AssignExpr { lhs, rhs, .. } => {
            for side in [lhs, rhs] {
                match side.as_ref() {
                    Expr::RefDot { .. } | Expr::RefBrack { .. } => taken_out(side, out),
                    other => operands(other, out),
                }
            }
        }
        other => operands(other, out),
    }
}

/// The references among the operands of an expression. A comprehension has a body of its own, and is defined whatever is missing.
fn operands<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    let mut all = |exprs: &[&'a Ref<Expr>]| exprs.iter().for_each(|expr| operands(expr, out));
    match expr {
        Expr::RefDot { refr, .. } => {
            out.push(expr);
            taken_out(refr, out);
        }
        Expr::RefBrack { .. } => {
            out.push(expr);
            taken_out(expr, out);
        }
        Expr::Call { params, .. } => all(&params.iter().collect::<Vec<_>>()),
        Expr::Array { items, .. } | Expr::Set { items, .. } => all(&items.iter().collect::<Vec<_>>()),
        Expr::Object { fields, .. } => fields.iter().for_each(|(_, key, value)| all(&[key, value])),
        Expr::Membership { key, value, collection, .. } => {
            all(&key.iter().chain([value, collection]).collect::<Vec<_>>());
        }
        Expr::BoolExpr { lhs, rhs, .. }
        | Expr::BinExpr { lhs, rhs, .. }
        | Expr::ArithExpr { lhs, rhs, .. }
        | Expr::AssignExpr { lhs, rhs, .. } => all(&[lhs, rhs]),
        Expr::UnaryExpr { expr, .. } => all(&[expr]),
        Expr::ArrayCompr { .. } | Expr::SetCompr { .. } | Expr::ObjectCompr { .. } => {}
        Expr::Bool { .. }
        | Expr::Null { .. }
        | Expr::Number { .. }
        | Expr::RawString { .. }
        | Expr::String { .. }
        | Expr::Var { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(condition: &str) -> Vec<String> {
        let text = format!("package cotter.user.m\n\ndeny contains \"x\" if {condition}\n");
        warnings(&syntax::parse("m.rego", &text).unwrap()).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn what_opa_takes_out_of_a_condition_is_warned_of() {
        for condition in [
            "not input.args.a != 1",
            "not input.args.a > 1",
            "not startswith(input.args.a, \"x\")",
            "not input.principal.tenant in {\"a\"}",
            "not \"x\" in input.args.a",
            "not count(input.args.a) == 0",
            "not [input.args.a] == [1]",
            "not input.args.a + 1 == 2",
            "not -input.args.a == 2",
            "not input.principal.groups[input.args.a]",
            "not {\"a\"}[input.args.a]",
            "{ x := 1; not x in input.server.labels.numbers }",
        ] {
            assert_eq!(warned(condition).len(), 1, "{condition}");
        }
        assert!(warned("not input.args.a > 1")[0].starts_with("where input.args is missing"));
    }

    #[test]
    fn what_means_the_same_is_not() {
        for condition in [
            "not input.args.a",
            "not input.args.a == 1",
            "not input.args.a == input.args.b",
            "not \"desk\" in input.principal.groups",
            "not startswith(input.tool.name, \"x\")",
            "not count([x | some x in input.args.tags; x == \"a\"]) == 0",
            "{ not holds }\n\nholds if startswith(input.args.a, \"x\")",
            "input.args.a > 1",
        ] {
            assert_eq!(warned(condition), Vec::<String>::new(), "{condition}");
        }
    }
}
