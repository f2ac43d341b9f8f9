//! Rules that use themselves, among rules that may do everything else: tests.

use regorus::unstable::{Expr, Module, Ref, Span};

use super::{Finding, graph::Graph};
use crate::{
    library,
    names::{Scope, Target, Tree, rule_path},
    syntax::{Step, Visit, walk_rule},
};

/// The first rule of each file that uses itself, where nothing else is asked of the modules.
pub(super) fn cycle(modules: &[Module]) -> Vec<Finding> {
    let tree = Tree::of(library::modules().iter().chain(modules));
    let mut graph = Graph::of_cycles(&tree);
    for module in modules {
        let scope = Scope::of(module);
        for rule in &module.policy {
            let at = tree.find(&rule_path(&scope.package, rule)).unwrap_or_default();
            graph.place(at, rule.span());
            walk_rule(rule, &mut Uses { tree: &tree, scope: &scope, graph: &mut graph, at });
        }
    }
    graph.check()
}

struct Uses<'a, 't> {
    tree: &'t Tree,
    scope: &'a Scope,
    graph: &'a mut Graph<'t>,
    at: usize,
}

impl Visit for Uses<'_, '_> {
    fn reference(&mut self, root: &str, steps: &[Step], _arguments: Option<usize>, _span: &Span) {
        if let Target::Data(path) = self.scope.resolve(self.tree, root, steps) {
            // What is not there is mocked by `with`, or undefined.
            if let (used, None) = self.tree.follow(&path) {
                self.graph.add(self.at, used);
            }
        }
    }
    fn local(&mut self, _name: &str, _span: &Span) {}
    fn index(&mut self, _name: &str) {}
    fn text(&mut self, _text: &str, _span: &Span) {}
    fn call(&mut self, _function: &Expr, _arguments: &[Ref<Expr>]) {}
    fn with(&mut self, _span: &Span) {}
}
