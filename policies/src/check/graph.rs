//! Which rules use which: no rule may come back to itself (it would overflow the stack and end the process, whatever the timer says),
//! and a chain of rules has a length that a small stack can carry.

use std::collections::BTreeMap;

use regorus::unstable::Span;

use super::Finding;
use crate::names::Tree;

/// Rules that may call each other in a row. 200 pass on a stack of 2 MiB and 500 do not.
const MAX_CHAIN: usize = 100;

/// Uses between the nodes of a [`Tree`]. A package uses all that is in it.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    tree: &'a Tree,
    uses: Vec<Vec<usize>>,
    places: BTreeMap<usize, Span>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

impl<'a> Graph<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree, uses: vec![Vec::new(); tree.len()], places: BTreeMap::new() }
    }

    /// A rule stands at a place of the text.
    pub(super) fn place(&mut self, rule: usize, span: &Span) {
        self.places.entry(rule).or_insert_with(|| span.clone());
    }

    /// A rule uses another, or everything below a package.
    pub(super) fn add(&mut self, user: usize, used: usize) {
        if let Some(uses) = self.uses.get_mut(user) {
            uses.push(used);
        }
    }

    fn next(&self, at: usize) -> Vec<usize> {
        let children = self.tree.node(at).into_iter().flat_map(|node| node.children.values().copied());
        self.uses.get(at).into_iter().flatten().copied().chain(children).collect()
    }

    /// The first cycle, or the longest chain where it is too long.
    pub(super) fn check(&self) -> Option<Finding> {
        let mut marks = vec![Mark::New; self.tree.len()];
        let mut chains = vec![0_usize; self.tree.len()];
        for start in self.places.keys() {
            if let Some(finding) = self.visit(*start, &mut marks, &mut chains) {
                return Some(finding);
            }
        }
        None
    }

    /// Depth first without recursion: the graph is as large as the texts allow.
    fn visit(&self, start: usize, marks: &mut [Mark], chains: &mut [usize]) -> Option<Finding> {
        if marks.get(start) != Some(&Mark::New) {
            return None;
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
                    Some(Mark::Open) => return Some(self.cycle(next, stack.iter().map(|(at, _)| *at))),
                    Some(Mark::Done) | None => {}
                },
                None => {
                    set(marks, at, Mark::Done);
                    stack.pop();
                    if let Some(finding) = self.close(at, chains) {
                        return Some(finding);
                    }
                }
            }
        }
        None
    }

    fn close(&self, at: usize, chains: &mut [usize]) -> Option<Finding> {
        let below = self.next(at).iter().filter_map(|next| chains.get(*next)).copied().max().unwrap_or_default();
        let chain = below + usize::from(self.tree.node(at).is_some_and(|node| node.is_rule));
        set(chains, at, chain);
        let span = self.places.get(&at).filter(|_| chain > MAX_CHAIN)?;
        let message = format!("more than {MAX_CHAIN} rules use each other in a row");
        Some(Finding::span(span, message, "use facts where they are needed instead of passing them from rule to rule"))
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
