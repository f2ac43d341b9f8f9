//! What names mean in a module: its package, what it imports, and the rules of all modules as one tree.

use std::collections::BTreeMap;

use regorus::unstable::{Module, Rule};

use crate::syntax::{HeadForm, Step, head, names};

/// What a reference in a module points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A member of the input.
    Input(Vec<Step>),
    /// A rule, or something below or above one.
    Data(Vec<Step>),
    /// A variable of the rule itself, or a function of the language.
    Own,
}

/// A rule, or a package on the way to one.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) children: BTreeMap<String, usize>,
    /// Whether a rule has exactly this path.
    pub(crate) is_rule: bool,
    /// The number of arguments, where it is a function.
    pub(crate) arguments: Option<usize>,
}

/// The rules of all modules by path, without the leading `data`.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// The rules of these modules.
    pub(crate) fn of<'a>(modules: impl IntoIterator<Item = &'a Module>) -> Self {
        let mut tree = Self { nodes: vec![Node { path: "data".to_owned(), ..Node::default() }] };
        for module in modules {
            let package = names(&module.package.refr);
            tree.insert(&package);
            for rule in &module.policy {
                let at = tree.insert(&rule_path(&package, rule));
                let (_, form) = head(rule);
                if let Some(node) = tree.nodes.get_mut(at) {
                    node.is_rule = true;
                    if form == HeadForm::Function {
                        node.arguments = Some(arguments(rule));
                    }
                }
            }
        }
        tree
    }

    fn insert(&mut self, path: &[String]) -> usize {
        let mut at = 0;
        for name in path {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { break };
            let full = format!("{}.{name}", node.path);
            at = *node.children.entry(name.clone()).or_insert(next);
            if at == next {
                self.nodes.push(Node { path: full, ..Node::default() });
            }
        }
        at
    }

    pub(crate) fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a path.
    pub(crate) fn find(&self, path: &[String]) -> Option<usize> {
        path.iter().try_fold(0, |at, name| self.nodes.get(at)?.children.get(name).copied())
    }

    /// Where a reference leads: as deep as there are rules, whether it stops at a rule, and the first name that leads nowhere.
    pub(crate) fn follow<'s>(&self, steps: &'s [Step]) -> (usize, Option<&'s str>) {
        let mut at = 0;
        for step in steps {
            let Some(node) = self.nodes.get(at) else { break };
            match step {
                Step::Name(name) => match node.children.get(name) {
                    Some(next) => at = *next,
                    None => return (at, (!node.is_rule).then_some(name)),
                },
                Step::Any => break,
            }
        }
        (at, None)
    }
}

/// The path of a rule, up to the first computed index in its head.
pub(crate) fn rule_path(package: &[String], rule: &Rule) -> Vec<String> {
    package.iter().cloned().chain(names(head(rule).0)).collect()
}

fn arguments(rule: &Rule) -> usize {
    match rule {
        Rule::Default { args, .. } | Rule::Spec { head: regorus::unstable::RuleHead::Func { args, .. }, .. } => {
            args.len()
        }
        Rule::Spec { .. } => 0,
    }
}

/// The names that one module can use without a prefix.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) package: Vec<String>,
    imports: BTreeMap<String, Vec<Step>>,
}

impl Scope {
    pub(crate) fn of(module: &Module) -> Self {
        let mut imports = BTreeMap::new();
        for import in &module.imports {
            let path = names(&import.refr);
            let alias = import.r#as.as_ref().map(|span| span.text().to_owned()).or_else(|| path.last().cloned());
            if let Some(alias) = alias.filter(|_| path.first().is_some_and(|root| root == "data" || root == "input")) {
                imports.insert(alias, path.into_iter().map(Step::Name).collect());
            }
        }
        Self { package: names(&module.package.refr), imports }
    }

    /// What a reference points to. A variable never hides a rule or an import: the check refuses that, and the library keeps to it.
    pub(crate) fn resolve(&self, tree: &Tree, root: &str, steps: &[Step]) -> Target {
        match root {
            "input" => Target::Input(steps.to_vec()),
            "data" => Target::Data(steps.to_vec()),
            _ => match self.imports.get(root) {
                Some(path) => self.resolve_import(path, steps),
                None => self.resolve_own(tree, root, steps),
            },
        }
    }

    fn resolve_import(&self, path: &[Step], steps: &[Step]) -> Target {
        let full: Vec<Step> = path.iter().skip(1).chain(steps).cloned().collect();
        match path.first() {
            Some(Step::Name(root)) if root == "input" => Target::Input(full),
            _ => Target::Data(full),
        }
    }

    /// Whether a rule of the module's own package begins with this name.
    pub(crate) fn is_rule(&self, tree: &Tree, name: &str) -> bool {
        let mut path = self.package.clone();
        path.push(name.to_owned());
        tree.find(&path).is_some()
    }

    fn resolve_own(&self, tree: &Tree, root: &str, steps: &[Step]) -> Target {
        if !self.is_rule(tree, root) {
            return Target::Own;
        }
        let mut path = self.package.clone();
        path.push(root.to_owned());
        Target::Data(path.into_iter().map(Step::Name).chain(steps.iter().cloned()).collect())
    }

    /// Whether a variable of this name would hide something.
    pub(crate) fn hides(&self, tree: &Tree, name: &str) -> bool {
        name != "_" && self.resolve(tree, name, &[]) != Target::Own
    }
}
