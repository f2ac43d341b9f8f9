//! Which lines were evaluated. The engine tells of the files that it was in; a file that nothing reached has its lines from here.

use std::collections::BTreeSet;

use regorus::unstable::{Expr, Literal, Module, Query, Ref, Rule, RuleHead};
use serde::{Deserialize, Serialize};

use super::Sandbox;

/// A file's lines that were evaluated, and those that could have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The file.
    pub file: String,
    /// Lines that were evaluated.
    pub covered: Vec<u32>,
    /// Lines that were not.
    pub missed: Vec<u32>,
}

impl Sandbox {
    /// Which lines of the library and the modules were evaluated so far: every file, sorted by name, also one that nothing reached.
    #[must_use]
    pub fn coverage(&self) -> Vec<Coverage> {
        let reached = self.engine.get_coverage_report().map(|report| report.files).unwrap_or_default();
        let of = |(name, lines): (&String, &BTreeSet<u32>)| match reached.iter().find(|file| file.path == *name) {
            Some(file) => Coverage {
                file: name.clone(),
                covered: file.covered.iter().copied().collect(),
                missed: file.not_covered.iter().copied().collect(),
            },
            None => Coverage { file: name.clone(), covered: Vec::new(), missed: lines.iter().copied().collect() },
        };
        self.lines.iter().map(of).collect()
    }
}

/// The lines of a module that an evaluation can reach, as the engine counts them.
pub(super) fn lines(module: &Module) -> BTreeSet<u32> {
    let mut lines = BTreeSet::new();
    for rule in &module.policy {
        match rule.as_ref() {
            Rule::Default { value, .. } => of_expr(value, &mut lines),
            Rule::Spec { head, bodies, .. } => {
                of_head(head, &mut lines);
                bodies.iter().for_each(|body| of_query(&body.query, &mut lines));
            }
        }
    }
    lines
}

fn of_head(head: &RuleHead, lines: &mut BTreeSet<u32>) {
    match head {
        RuleHead::Compr { assign, .. } | RuleHead::Func { assign, .. } => {
            assign.iter().for_each(|assign| of_expr(&assign.value, lines));
        }
        RuleHead::Set { key, .. } => key.iter().for_each(|key| of_expr(key, lines)),
    }
}

fn of_query(query: &Query, lines: &mut BTreeSet<u32>) {
    for statement in &query.stmts {
        match &statement.literal {
            Literal::SomeVars { .. } => {}
            Literal::SomeIn { value, collection, .. } => {
                of_expr(value, lines);
                of_expr(collection, lines);
            }
            Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => of_expr(expr, lines),
            Literal::Every { domain, query, .. } => {
                of_expr(domain, lines);
                of_query(query, lines);
            }
        }
    }
}

fn of_expr(expr: &Ref<Expr>, lines: &mut BTreeSet<u32>) {
    let mut all = |exprs: &[&Ref<Expr>]| exprs.iter().for_each(|expr| of_expr(expr, lines));
    match expr.as_ref() {
        Expr::ArrayCompr { query, .. } | Expr::SetCompr { query, .. } | Expr::ObjectCompr { query, .. } => {
            return of_query(query, lines);
        }
        Expr::Array { items, .. } | Expr::Set { items, .. } => all(&items.iter().collect::<Vec<_>>()),
        Expr::Object { fields, .. } => fields.iter().for_each(|(_, key, value)| all(&[key, value])),
        Expr::Call { params, .. } => all(&params.iter().collect::<Vec<_>>()),
        Expr::UnaryExpr { expr, .. } => all(&[expr]),
        Expr::RefDot { refr, .. } => all(&[refr]),
        Expr::RefBrack { refr, index, .. } => all(&[refr, index]),
        Expr::BinExpr { lhs, rhs, .. }
        | Expr::BoolExpr { lhs, rhs, .. }
        | Expr::ArithExpr { lhs, rhs, .. }
        | Expr::AssignExpr { lhs, rhs, .. } => all(&[lhs, rhs]),
        Expr::Membership { key, value, collection, .. } => {
            all(&key.iter().chain([value, collection]).collect::<Vec<_>>());
        }
        Expr::String { .. }
        | Expr::RawString { .. }
        | Expr::Number { .. }
        | Expr::Bool { .. }
        | Expr::Null { .. }
        | Expr::Var { .. } => {}
    }
    lines.insert(expr.span().line);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::library;

    #[test]
    fn the_lines_of_a_file_are_those_that_the_engine_counts() {
        let text = "package cotter.user.m\n\nimport data.cotter.effects\n\ndefault x := {\n\t\"a\": 1,\n}\n\nx := [y |\n\tsome y in [\n\t\t1,\n\t\t2,\n\t]\n]\n\n\
                    deny contains \"no\" if {\n\tnot effects.reversible(input.tool)\n\tevery t in input.args.tags {\n\t\tcount(t) < 4\n\t}\n\tx[0] == 1\n\tinput.args.n +\n\t\t1 == 2\n\t1 in {\n\t\t1\n\t}\n}\n";
        let modules = BTreeMap::from([("m.rego".to_owned(), text.to_owned())]);
        let mut sandbox = Sandbox::new(&modules).unwrap();
        let input = serde_saphyr::from_str(include_str!("../../cases/base.yaml")).unwrap();
        sandbox.decide(&input).unwrap();
        let reached = sandbox.engine.get_coverage_report().unwrap().files;
        assert!(reached.len() > library::FILES.len() / 2, "{}", reached.len());
        for file in reached {
            let counted: BTreeSet<u32> = file.covered.union(&file.not_covered).copied().collect();
            assert_eq!(counted, sandbox.lines[&file.path], "{}", file.path);
        }
    }

    #[test]
    fn a_file_that_nothing_reached_is_there_with_all_its_lines() {
        let sandbox = Sandbox::new(&BTreeMap::new()).unwrap();
        let told = sandbox.coverage();
        assert_eq!(told.len(), library::FILES.len());
        assert!(told.iter().all(|file| file.covered.is_empty() && !file.missed.is_empty()), "{told:#?}");
    }
}
