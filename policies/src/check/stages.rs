//! The stages before anything is evaluated, each file as far as it gets: what is wrong with one hides nothing of another.

use std::collections::{BTreeMap, BTreeSet};

use regorus::unstable::{Expr, Module, Ref, Span};

use super::{Finding, LeftOut, MAX_MODULES, TOGETHER, is_cluster_wide, rules, text};
use crate::{
    library,
    names::{Scope, Target, Tree},
    syntax::{self, Step, Visit, names, walk_rule},
};

/// What the first stage says.
pub(crate) struct Texts {
    /// Everything that is wrong with the texts.
    pub(crate) findings: Vec<Finding>,
    /// Those that a parser may see.
    pub(crate) good: BTreeMap<String, String>,
    /// The others.
    pub(crate) left_out: LeftOut,
}

/// The stage that needs no parser: it is linear in the texts, whatever is in them. Where there are too many modules, none goes on.
pub(crate) fn texts(modules: &BTreeMap<String, String>, mut left_out: LeftOut) -> Texts {
    let mut findings: Vec<Finding> = count(modules).into_iter().collect();
    let mut good = BTreeMap::new();
    let is_one_too_many = !findings.is_empty();
    for (name, text) in modules {
        let found = text::check(name, text);
        if found.is_empty() && !is_one_too_many {
            good.insert(name.clone(), text.clone());
        } else {
            left_out.add(text);
        }
        findings.extend(found);
    }
    Texts { findings, good, left_out }
}

/// What the parser and the walks over what it made say.
pub(super) struct Staged {
    /// Modules that could be parsed.
    pub(super) parsed: Vec<Module>,
    pub(super) findings: Vec<Finding>,
    left_out: LeftOut,
}

/// Parses modules that passed the first stage, and reads what they say.
pub(super) fn read(modules: &BTreeMap<String, String>, left_out: &LeftOut, at: &mut dyn FnMut(&str)) -> Staged {
    let (parsed, mut findings) = parse(modules, at);
    at(TOGETHER);
    let mut left_out = left_out.clone();
    let is_parsed = |name: &String| parsed.iter().any(|module| file(module) == name);
    modules.iter().filter(|(name, _)| !is_parsed(name)).for_each(|(_, text)| left_out.add(text));
    findings.extend(rules::check(&parsed, &left_out));
    findings.sort();
    findings.dedup();
    Staged { parsed, findings, left_out }
}

pub(super) fn parse(modules: &BTreeMap<String, String>, at: &mut dyn FnMut(&str)) -> (Vec<Module>, Vec<Finding>) {
    let (mut parsed, mut findings) = (Vec::new(), Vec::new());
    for (name, text) in modules {
        at(name);
        match syntax::parse(name, text) {
            Ok(module) => parsed.push(module),
            Err(error) => findings.push(text::engine_error(modules, &error)),
        }
    }
    (parsed, findings)
}

impl Staged {
    /// The modules with which nothing is wrong, and that use nothing of one with which something is: they mean the same without those.
    pub(super) fn sound(self) -> Vec<Module> {
        let Self { parsed, findings, mut left_out } = self;
        let tree = Tree::of(library::modules().iter().chain(&parsed));
        let uses: Vec<Vec<Vec<Step>>> = parsed.iter().map(|module| uses(&tree, module)).collect();
        let wrong: BTreeSet<&String> = findings.iter().map(|finding| &finding.file).collect();
        let mut is_sound: Vec<bool> = parsed.iter().map(|module| !wrong.contains(file(module))).collect();
        for (module, _) in parsed.iter().zip(&is_sound).filter(|(_, is_sound)| !**is_sound) {
            left_out.add_package(names(&module.package.refr));
        }
        // Each round leaves out at least one more.
        for _ in &parsed {
            let mut more = Vec::new();
            for ((module, uses), is_sound) in parsed.iter().zip(&uses).zip(&mut is_sound) {
                let package = names(&module.package.refr);
                let needs = left_out.share(&package) || uses.iter().any(|path| left_out.may_have(path));
                if *is_sound && needs {
                    *is_sound = false;
                    more.push(package);
                }
            }
            if more.is_empty() {
                break;
            }
            more.into_iter().for_each(|package| left_out.add_package(package));
        }
        let kept = parsed.into_iter().zip(is_sound);
        kept.filter(|(_, is_sound)| *is_sound).map(|(module, _)| module).collect()
    }
}

fn file(module: &Module) -> &String {
    module.package.span.source.get_path()
}

fn count(modules: &BTreeMap<String, String>) -> Option<Finding> {
    let (wide, own): (Vec<&String>, Vec<&String>) = modules.keys().partition(|name| is_cluster_wide(name));
    // The cluster's come first, so that it is a server's own that is one too many, where it has any.
    let name = wide.iter().chain(&own).nth(MAX_MODULES)?;
    let among = if wide.is_empty() { String::new() } else { format!(", {} of them cluster-wide,", wide.len()) };
    let message = format!("there are {} modules{among} and at most {MAX_MODULES} are taken", modules.len());
    Some(Finding::at(name, "", (1, 1), message, "join modules that belong together"))
}

/// The paths of `data` that a module's rules refer to.
pub(super) fn uses(tree: &Tree, module: &Module) -> Vec<Vec<Step>> {
    let scope = Scope::of(module);
    let mut uses = Uses { tree, scope: &scope, paths: Vec::new() };
    module.policy.iter().for_each(|rule| walk_rule(rule, &mut uses));
    uses.paths
}

struct Uses<'a> {
    tree: &'a Tree,
    scope: &'a Scope,
    paths: Vec<Vec<Step>>,
}

impl Visit for Uses<'_> {
    fn reference(&mut self, root: &str, steps: &[Step], _: Option<usize>, _: &Span) {
        if let Target::Data(path) = self.scope.resolve(self.tree, root, steps) {
            self.paths.push(path);
        }
    }
    fn local(&mut self, _: &str, _: &Span) {}
    fn index(&mut self, _: &str) {}
    fn text(&mut self, _: &str, _: &Span) {}
    fn call(&mut self, _: &Expr, _: &[Ref<Expr>]) {}
    fn with(&mut self, _: &Span) {}
}
