//! What a rule set reads of its input: the proof that a decision may be remembered.
//!
//! Every rule of every module counts, reachable or not, so the answer errs on the side of not remembering. An `input` that is taken
//! whole, or indexed by something computed, reads everything.

use regorus::unstable::{Expr, Module, Ref, Span};

use crate::{
    check::Checked,
    library,
    names::{Scope, Target, Tree},
    syntax::{Step, Visit, path, walk_rule},
};

/// Members of the input that a rule set reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one member of the input")]
pub struct Reads {
    /// `input` as a whole: everything below is true too.
    pub whole: bool,
    /// `input.args`.
    pub args: bool,
    /// `input.argsDigest`.
    pub digest: bool,
    /// `input.tool.annotations`; also `input.tool` as a whole, but for what a module hands to a function of the library.
    pub annotations: bool,
    /// `input.now`.
    pub now: bool,
    /// `input.approval` or `input.ledger`: what happened to this call before.
    pub history: bool,
    /// `input.operation`.
    pub operation: bool,
}

impl Reads {
    /// What the library and these modules read together.
    #[must_use]
    pub fn of(checked: &Checked) -> Self {
        let library = library::modules();
        let tree = Tree::of(library.iter().chain(&checked.modules));
        let mut reads = Self::default();
        library.iter().for_each(|module| reads.add(&tree, module, Whose::Library));
        checked.modules.iter().for_each(|module| reads.add(&tree, module, Whose::User));
        reads
    }

    fn add(&mut self, tree: &Tree, module: &Module, whose: Whose) {
        let scope = Scope::of(module);
        let mut reader = Reader { reads: self, tree, scope: &scope, whose, handed: Vec::new() };
        for rule in &module.policy {
            walk_rule(rule, &mut reader);
        }
    }

    /// Whether the decision on a call depends on nothing but who asks, for which tool, and how it compares with its pin.
    #[must_use]
    pub const fn call_is_stable(&self) -> bool {
        !(self.whole || self.args || self.digest || self.now || self.history)
    }

    /// The same for a list, where there are no arguments.
    #[must_use]
    pub const fn list_is_stable(&self) -> bool {
        !(self.whole || self.now || self.history)
    }

    /// Whether a call can be decided otherwise than a list.
    #[must_use]
    pub const fn tells_calls_from_lists(&self) -> bool {
        self.whole || self.args || self.digest || self.history || self.operation
    }

    /// Whether the arguments have to be in the input.
    #[must_use]
    pub const fn arguments(&self) -> bool {
        self.whole || self.args
    }

    /// Whether their digest has to be.
    #[must_use]
    pub const fn arguments_digest(&self) -> bool {
        self.whole || self.digest
    }

    /// Whether what the server says of the tool has to be: then it is part of what a decision depends on.
    #[must_use]
    pub const fn said_of_tool(&self) -> bool {
        self.whole || self.annotations
    }
}

/// The library hands whole tools around and reads no annotations, which a test of its text holds it to; of a module nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Library,
    User,
}

/// A line and a column.
type At = (u32, u32);

struct Reader<'a> {
    reads: &'a mut Reads,
    tree: &'a Tree,
    scope: &'a Scope,
    whose: Whose,
    /// References that are arguments of the library's functions.
    handed: Vec<At>,
}

impl Visit for Reader<'_> {
    fn reference(&mut self, root: &str, steps: &[Step], _arguments: Option<usize>, span: &Span) {
        match self.scope.resolve(self.tree, root, steps) {
            Target::Input(path) => match path.first() {
                Some(Step::Name(member)) => self.member(member, path.get(1), (span.line, span.col)),
                Some(Step::Any) | None => self.reads.whole = true,
            },
            Target::Data(_) | Target::Own => {}
        }
    }
    fn local(&mut self, _name: &str, _span: &Span) {}
    fn index(&mut self, _name: &str) {}
    fn text(&mut self, _text: &str, _span: &Span) {}
    fn call(&mut self, function: &Expr, arguments: &[Ref<Expr>]) {
        if self.is_of_the_library(function) {
            let handed = arguments.iter().filter_map(|argument| path(argument));
            self.handed.extend(handed.map(|(root, _)| (root.line, root.col)));
        }
    }
    fn with(&mut self, _span: &Span) {}
}

impl Reader<'_> {
    fn member(&mut self, member: &str, below: Option<&Step>, at: At) {
        match member {
            "args" => self.reads.args = true,
            "argsDigest" => self.reads.digest = true,
            "now" => self.reads.now = true,
            "operation" => self.reads.operation = true,
            "tool" => self.tool(below, at),
            "era" | "protocol" | "version" | "server" | "principal" | "grants" | "tools" => {}
            // `approval`, `ledger`, and whatever a later input has: not known to be the same from call to call.
            _ => self.reads.history = true,
        }
    }

    fn tool(&mut self, below: Option<&Step>, at: At) {
        let known = match below {
            None => self.whose == Whose::Library || self.handed.contains(&at),
            Some(Step::Name(name)) => name != "annotations",
            Some(Step::Any) => false,
        };
        self.reads.annotations |= !known;
    }

    fn is_of_the_library(&self, function: &Expr) -> bool {
        let Some((root, steps)) = path(function) else { return false };
        let named = |step: Option<&Step>, is: fn(&str) -> bool| matches!(step, Some(Step::Name(name)) if is(name));
        match self.scope.resolve(self.tree, root.text(), &steps) {
            Target::Data(path) => {
                named(path.first(), |name| name == "cotter") && named(path.get(1), |name| name != "user")
            }
            Target::Input(_) | Target::Own => false,
        }
    }
}
