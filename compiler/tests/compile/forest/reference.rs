//! The contract once more, without a line of the product's: what a delegation gives, and what binds it.

use std::collections::BTreeSet;

use cotter_core::grant::Grant;

use super::{Deed, EFFECTS, Forest, SCOPES, TENANTS, TIMES, TOOLS, Wish, at, called};

/// The contract once more: "Effective authority = delegation ∩ every ancestor", each active, each deep enough; what is missing or
/// malformed gives nothing.
pub(super) struct Reference<'a> {
    pub(super) forest: &'a Forest,
}

impl<'a> Reference<'a> {
    pub(super) fn is_accepted(wish: &Wish) -> bool {
        let lists = [&wish.servers, &wish.scopes, &wish.effects, &wish.tenants, &wish.globs];
        lists.iter().all(|list| !list.is_empty()) && wish.from.is_none_or(|from| from < wish.until)
    }

    /// The delegation and all its ancestors, where they end in a root and none of them stands above itself.
    fn links(&self, name: usize) -> Option<Vec<&'a Wish>> {
        let (mut links, mut seen, mut next) = (Vec::new(), BTreeSet::new(), Some(name));
        while let Some(name) = next {
            let wish = self.forest.get(&name).filter(|wish| seen.insert(name) && Self::is_accepted(wish))?;
            links.push(wish);
            next = wish.parent;
        }
        let fits_depth = |(distance, wish): (usize, &&Wish)| usize::try_from(wish.depth).unwrap() >= distance;
        links.iter().enumerate().all(fits_depth).then_some(links)
    }

    /// Everything that a delegation gives at a server.
    pub(super) fn gives(&self, name: usize, server: &str) -> BTreeSet<Deed> {
        let Some(links) = self.links(name) else { return BTreeSet::new() };
        let all = |holds: &dyn Fn(&Wish) -> bool| links.iter().all(|link| holds(link));
        if !all(&|link| !link.suspended && link.servers.contains(&server)) {
            return BTreeSet::new();
        }
        deeds(
            |time| all(&|link| link.from.is_none_or(|from| from <= time) && time < link.until),
            |scope| all(&|link| link.scopes.contains(&scope)),
            |effect| all(&|link| link.effects.contains(&effect)),
            |tenant| all(&|link| link.tenants.contains(&tenant)),
            |tool| all(&|link| link.globs.iter().any(|glob| fits(glob.as_bytes(), tool.as_bytes()))),
        )
    }
}

/// The bounds of a grant on calls, each with the delegation whose it is.
pub(super) type Bounds = BTreeSet<(String, Option<u64>, Option<u64>)>;

pub(super) fn bounds(grant: &Grant) -> Bounds {
    grant.budgets.iter().map(|budget| (budget.name.clone(), budget.calls, budget.per_minute)).collect()
}

/// Its own and those of every ancestor, as they stand there.
pub(super) fn wanted_bounds(forest: &Forest, name: usize) -> Bounds {
    let (mut wanted, mut next) = (Bounds::new(), Some(name));
    while let Some(wish) = next.and_then(|name| forest.get(&name)) {
        let (calls, per_minute) = wish.budget;
        let is_new = wish.budget == (None, None) || wanted.insert((called(next.unwrap()), calls, per_minute));
        next = wish.parent.filter(|_| is_new);
    }
    wanted
}

/// `*` takes any run, every other character itself.
fn fits(glob: &[u8], name: &[u8]) -> bool {
    match glob.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|taken| fits(rest, &name[taken..])),
        Some((letter, rest)) => name.first() == Some(letter) && fits(rest, &name[1..]),
    }
}

fn deeds(
    time: impl Fn(i64) -> bool,
    scope: impl Fn(&'static str) -> bool,
    effect: impl Fn(&'static str) -> bool,
    tenant: impl Fn(&'static str) -> bool,
    tool: impl Fn(&'static str) -> bool,
) -> BTreeSet<Deed> {
    let kept = |names: &[&'static str], keep: &dyn Fn(&'static str) -> bool| {
        names.iter().copied().filter(|name| keep(name)).collect::<Vec<_>>()
    };
    let (scopes, effects) = (kept(SCOPES, &scope), kept(EFFECTS, &effect));
    let (tenants, tools) = (kept(TENANTS, &tenant), kept(TOOLS, &tool));
    let mut all = BTreeSet::new();
    for time in TIMES.filter(|at| time(*at)) {
        for (scope, effect) in scopes.iter().flat_map(|scope| effects.iter().map(move |effect| (*scope, *effect))) {
            all.extend(
                tenants.iter().flat_map(|tenant| tools.iter().map(move |tool| (time, scope, effect, *tenant, *tool))),
            );
        }
    }
    all
}

/// Everything that a grant gives, as a sidecar reads it.
pub(super) fn given(grant: &Grant) -> BTreeSet<Deed> {
    deeds(
        |time| grant.is_active(at(time)),
        |scope| grant.scopes.contains(scope),
        |effect| grant.effects.iter().any(|one| one.as_str() == effect),
        |tenant| grant.tenants.contains(tenant),
        |tool| grant.covers(tool),
    )
}
