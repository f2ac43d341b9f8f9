//! Which rules use which: no rule may come back to itself (it would overflow the stack and end the process, whatever the timer says),
//! and a chain of rules has a length that a small stack can carry.

use std::collections::BTreeMap;

use regorus::unstable::Span;

use super::Finding;
use crate::names::Tree;

/// Rules that may call each other in a row. 200 pass on a stack of 2 MiB and 500 do not.
const MAX_CHAIN: usize = 100;
/// Multiplications of two values that can come together in one number. Each can double its digits: a number of 53 bits has some
/// 400 KiB after these, and multiplying such numbers takes a thousandth of a second.
const MAX_PRODUCTS: usize = 16;

/// Uses between the nodes of a [`Tree`]. A package uses all that is in it.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    tree: &'a Tree,
    uses: Vec<Vec<usize>>,
    places: BTreeMap<usize, Span>,
    definitions: BTreeMap<usize, Vec<Definition>>,
    /// Only cycles count.
    only_cycles: bool,
}

/// One of the definitions of a rule: what it multiplies, and what it uses, as often as it does.
#[derive(Debug, Default)]
struct Definition {
    products: usize,
    uses: Vec<usize>,
}

/// What is known of a rule when all that it uses is known.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    chain: usize,
    products: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

impl<'a> Graph<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        let (places, definitions) = (BTreeMap::new(), BTreeMap::new());
        Self { tree, uses: vec![Vec::new(); tree.len()], places, definitions, only_cycles: false }
    }

    /// The same, where chains may be as long as they like.
    pub(super) fn of_cycles(tree: &'a Tree) -> Self {
        Self { only_cycles: true, ..Self::new(tree) }
    }

    /// Takes in what another one of the same tree knows.
    pub(super) fn join(&mut self, other: Self) {
        for (uses, more) in self.uses.iter_mut().zip(other.uses) {
            uses.extend(more);
        }
        for (rule, span) in other.places {
            self.places.entry(rule).or_insert(span);
        }
        for (rule, more) in other.definitions {
            self.definitions.entry(rule).or_default().extend(more);
        }
    }

    /// A rule stands at a place of the text.
    pub(super) fn place(&mut self, rule: usize, span: &Span) {
        self.places.entry(rule).or_insert_with(|| span.clone());
        self.definitions.entry(rule).or_default().push(Definition::default());
    }

    /// The definition that was placed last multiplies two values.
    pub(super) fn product(&mut self, rule: usize) {
        if let Some(definition) = self.definitions.get_mut(&rule).and_then(|all| all.last_mut()) {
            definition.products += 1;
        }
    }

    /// A rule uses another, or everything below a package.
    pub(super) fn add(&mut self, user: usize, used: usize) {
        if let Some(uses) = self.uses.get_mut(user) {
            uses.push(used);
        }
        if let Some(definition) = self.definitions.get_mut(&user).and_then(|all| all.last_mut()) {
            definition.uses.push(used);
        }
    }

    fn next(&self, at: usize) -> Vec<usize> {
        let children = self.tree.node(at).into_iter().flat_map(|node| node.children.values().copied());
        self.uses.get(at).into_iter().flatten().copied().chain(children).collect()
    }

    /// The first cycle of each file, or its first chain that is too long.
    pub(super) fn check(&self) -> Vec<Finding> {
        let mut marks = vec![Mark::New; self.tree.len()];
        let mut known = vec![Known::default(); self.tree.len()];
        let mut findings: Vec<Finding> = Vec::new();
        for start in self.places.keys() {
            for finding in self.visit(*start, &mut marks, &mut known) {
                if findings.iter().all(|other| other.file != finding.file) {
                    findings.push(finding);
                }
            }
        }
        findings
    }

    /// Depth first without recursion: the graph is as large as the texts allow. A cycle is told once, and ends there.
    fn visit(&self, start: usize, marks: &mut [Mark], known: &mut [Known]) -> Vec<Finding> {
        let mut findings = Vec::new();
        if marks.get(start) != Some(&Mark::New) {
            return findings;
        }
        set(marks, start, Mark::Open);
        let mut stack = vec![(start, self.next(start))];
        while let Some((at, open)) = stack.last_mut() {
            let at = *at;
            match open.pop() {
                Some(next) => match marks.get(next) {
                    Some(Mark::New) => {
                        set(marks, next, Mark::Open);
                        let uses = self.next(next);
                        stack.push((next, uses));
                    }
                    Some(Mark::Open) => {
                        findings.push(self.cycle(next, stack.iter().map(|(at, _)| *at)));
                        stack.drain(..).for_each(|(at, _)| set(marks, at, Mark::Done));
                    }
                    Some(Mark::Done) | None => {}
                },
                None => {
                    set(marks, at, Mark::Done);
                    stack.pop();
                    findings.extend(self.close(at, known));
                }
            }
        }
        findings
    }

    fn close(&self, at: usize, known: &mut [Known]) -> Option<Finding> {
        let below = self.next(at).iter().filter_map(|next| known.get(*next)).map(|below| below.chain).max();
        let chain = below.unwrap_or_default() + usize::from(self.tree.node(at).is_some_and(|node| node.is_rule));
        let products = self.products(at, known);
        set(known, at, Known { chain, products });
        let span = self.places.get(&at).filter(|_| !self.only_cycles)?;
        if chain > MAX_CHAIN {
            let message = format!("more than {MAX_CHAIN} rules use each other in a row");
            let help = "use facts where they are needed instead of passing them from rule to rule";
            return Some(Finding::span(span, message, help));
        }
        (products > MAX_PRODUCTS).then(|| {
            let message = format!("more than {MAX_PRODUCTS} multiplications of values can come together in one number");
            Finding::span(
                span,
                message,
                "each can double the digits of the number; multiply by numbers that stand in the text",
            )
        })
    }

    /// The multiplications on the longest way to a value. Rego has no loop that carries a value on: a number comes from one value, and
    /// passes each multiplication of the text once, and each function once for every time that it is called.
    fn products(&self, at: usize, known: &[Known]) -> usize {
        let of = |at: &usize| known.get(*at).map_or(0, |known| known.products);
        let is_function = |at: &&usize| self.tree.node(**at).is_some_and(|node| node.arguments.is_some());
        let way = |found: &Definition| {
            let (functions, values): (Vec<&usize>, Vec<&usize>) = found.uses.iter().partition(is_function);
            let from = values.into_iter().map(of).max().unwrap_or_default();
            functions.into_iter().map(of).fold(found.products.saturating_add(from), usize::saturating_add)
        };
        let own = self.definitions.get(&at).into_iter().flatten().map(way);
        let children = self.tree.node(at).into_iter().flat_map(|node| node.children.values().map(of));
        own.chain(children).max().unwrap_or_default()
    }

    fn cycle(&self, from: usize, stack: impl Iterator<Item = usize>) -> Finding {
        let rules: Vec<usize> = stack.skip_while(|at| *at != from).collect();
        let shown: Vec<&str> =
            rules.iter().chain([&from]).filter_map(|at| self.tree.node(*at)).map(|node| node.path.as_str()).collect();
        let message = format!("the rule uses itself: {}", shown.join(" -> "));
        let help = "Rego has no recursion; use `every`, `some … in` or a comprehension";
        match rules.iter().find_map(|at| self.places.get(at)) {
            Some(span) => Finding::span(span, message, help),
            None => Finding::at("", "", (1, 1), message, help),
        }
    }
}

fn set<T>(items: &mut [T], at: usize, value: T) {
    if let Some(item) = items.get_mut(at) {
        *item = value;
    }
}
