//! What a rule set reads of its input: the proof that a decision may be remembered.
//!
//! Every rule of every module counts, reachable or not, so the answer errs on the side of not remembering. An `input` that is taken
//! whole, or indexed by something computed, reads everything.

use regorus::unstable::{Expr, Module, Ref, Span};

use crate::{
    check::Checked,
    library,
    names::{Scope, Target, Tree},
    syntax::{Step, Visit, walk_rule},
};

/// Members of the input that a rule set reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one member of the input")]
pub struct Reads {
    /// `input` as a whole: everything below is true too.
    pub whole: bool,
    /// `input.args` or `input.argsDigest`.
    pub args: bool,
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
        for module in library.iter().chain(&checked.modules) {
            reads.add(&tree, module);
        }
        reads
    }

    fn add(&mut self, tree: &Tree, module: &Module) {
        let scope = Scope::of(module);
        let mut reader = Reader { reads: self, tree, scope: &scope };
        for rule in &module.policy {
            walk_rule(rule, &mut reader);
        }
    }

    /// Whether the decision on a call depends on nothing but who asks, for which tool, and how it compares with its pin.
    #[must_use]
    pub const fn call_is_stable(&self) -> bool {
        !(self.whole || self.args || self.now || self.history)
    }

    /// The same for a list, where there are no arguments.
    #[must_use]
    pub const fn list_is_stable(&self) -> bool {
        !(self.whole || self.now || self.history)
    }

    /// Whether a call can be decided otherwise than a list.
    #[must_use]
    pub const fn tells_calls_from_lists(&self) -> bool {
        self.whole || self.args || self.history || self.operation
    }

    /// Whether the arguments have to be in the input.
    #[must_use]
    pub const fn arguments(&self) -> bool {
        self.whole || self.args
    }
}

struct Reader<'a> {
    reads: &'a mut Reads,
    tree: &'a Tree,
    scope: &'a Scope,
}

impl Visit for Reader<'_> {
    fn reference(&mut self, root: &str, steps: &[Step], _arguments: Option<usize>, _span: &Span) {
        match self.scope.resolve(self.tree, root, steps) {
            Target::Input(path) => match path.first() {
                Some(Step::Name(member)) => self.member(member),
                Some(Step::Any) | None => self.reads.whole = true,
            },
            Target::Data(_) | Target::Own => {}
        }
    }
    fn local(&mut self, _name: &str, _span: &Span) {}
    fn index(&mut self, _name: &str) {}
    fn text(&mut self, _text: &str, _span: &Span) {}
    fn call(&mut self, _function: &Expr, _arguments: &[Ref<Expr>]) {}
    fn with(&mut self, _span: &Span) {}
}

impl Reader<'_> {
    fn member(&mut self, member: &str) {
        match member {
            "args" | "argsDigest" => self.reads.args = true,
            "now" => self.reads.now = true,
            "operation" => self.reads.operation = true,
            "era" | "protocol" | "version" | "server" | "principal" | "grants" | "tool" | "tools" => {}
            // `approval`, `ledger`, and whatever a later input has: not known to be the same from call to call.
            _ => self.reads.history = true,
        }
    }
}
