//! Attenuation: a child is never wider than a parent.

use super::*;

mod patterns;

fn glob(text: &str) -> Glob {
    text.parse().unwrap()
}

#[test]
fn containment_of_patterns_is_exact() {
    for (inner, outer) in
        [("a", "a"), ("a", "*"), ("*", "*"), ("a*", "a*"), ("ab*", "a*"), ("*a*", "*"), ("a*b*c", "a*c"), ("**", "*")]
    {
        assert!(within(&glob(inner), &glob(outer)), "{inner} in {outer}");
    }
    for (inner, outer) in
        [("*", "a*"), ("a*", "ab*"), ("a*", "a"), ("*a", "a*"), ("a*c", "a*b*c"), ("b", "a"), ("a*", "*b")]
    {
        assert!(!within(&glob(inner), &glob(outer)), "{inner} in {outer}");
    }
}

#[test]
fn patterns_overlap_where_one_name_fits_both() {
    for (one, other) in [("a", "a"), ("*", "a"), ("a*", "*b"), ("a*c", "ab*"), ("*a*", "b*"), ("**", "*")] {
        assert!(overlap(&glob(one), &glob(other)) && overlap(&glob(other), &glob(one)), "{one} {other}");
    }
    for (one, other) in [("a", "b"), ("case_*", "policy_lookup"), ("a*", "b*"), ("*a", "*b"), ("a*b", "a"), ("a", "aa")]
    {
        assert!(!overlap(&glob(one), &glob(other)) && !overlap(&glob(other), &glob(one)), "{one} {other}");
    }
}

/// A small generator: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn some<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        from.iter().filter(|_| self.below(4) > 0).cloned().collect()
    }

    fn time(&mut self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + i64::try_from(self.below(8)).unwrap()).unwrap()
    }

    fn bound(&mut self) -> Option<u64> {
        (self.below(3) == 0).then(|| 1 + self.below(9))
    }

    fn delegation(&mut self, name: u64, others: u64) -> Delegation {
        // Mostly one that came before; sometimes any, itself and one that does not exist among them.
        let parent = match self.below(8) {
            0 => Some(self.below(others)),
            _ if name == 0 => None,
            1 => None,
            _ => Some(self.below(name)),
        };
        let parent = parent.map(|name| format!("d{name}"));
        let not_before = (self.below(3) == 0).then(|| self.time());
        let account = cotter_core::principal::ServiceAccount { namespace: "a".parse().unwrap(), name: "b".to_owned() };
        Delegation {
            name: format!("d{name}"),
            uid: None,
            delegator: None,
            delegate: cotter_core::grant::Party::ServiceAccount(account),
            parent,
            servers: self.some(&["s", "t"]).into_iter().map(str::to_owned).collect(),
            scopes: self.some(&SCOPES).into_iter().map(|text| text.parse().unwrap()).collect(),
            effects: self.some(&Effect::ALL).into_iter().collect(),
            tenants: self.some(&TENANTS).into_iter().map(|text| text.parse().unwrap()).collect(),
            tools: self.some(&["*", "a*", "*b", "ab", "b*a"]).into_iter().map(glob).collect(),
            not_before,
            expires_at: self.time(),
            max_depth: u32::try_from(self.below(4)).unwrap(),
            budget: Bounds { calls: self.bound(), per_minute: self.bound() },
            suspended: self.below(10) == 0,
        }
    }
}

const SCOPES: [&str; 3] = ["x", "y", "z"];
const TENANTS: [&str; 3] = ["t1", "t2", "t3"];
const TOOLS: [&str; 6] = ["a", "b", "ab", "ba", "aab", "bxa"];

/// Everything that a grant permits at a server, one by one.
fn permitted(grant: &Grant) -> BTreeSet<(String, Effect, String, String, i64)> {
    let mut all = BTreeSet::new();
    for second in 1_800_000_000..1_800_000_008 {
        if !grant.is_active(Timestamp::from_second(second).unwrap()) {
            continue;
        }
        for tenant in TENANTS.iter().filter(|t| grant.tenants.contains(**t)) {
            for tool in TOOLS.iter().filter(|tool| grant.covers(tool)) {
                for scope in &grant.scopes {
                    for effect in &grant.effects {
                        all.insert((scope.to_string(), *effect, (*tenant).to_owned(), (*tool).to_owned(), second));
                    }
                }
            }
        }
    }
    all
}

#[test]
fn a_child_never_has_more_than_its_parent() {
    let mut numbers = Numbers(7);
    let (mut children, mut useful) = (0, 0);
    for _ in 0..1_000 {
        let all: Vec<Delegation> = (0..5).map(|name| numbers.delegation(name, 6)).collect();
        let known: Known<'_> = all.iter().map(|one| (one.name.as_str(), Some(one))).collect();
        for own in &all {
            let given = permitted(&Chain::follow(own, &known).grant("s"));
            let Some(parent) = &own.parent else { continue };
            children += 1;
            useful += usize::from(!given.is_empty());
            match known.get(parent.as_str()) {
                Some(Some(parent)) => {
                    let most = permitted(&Chain::follow(parent, &known).grant("s"));
                    assert!(given.is_subset(&most), "{own:#?} is wider than {parent:#?}");
                }
                _ => assert!(given.is_empty(), "{own:#?} has no parent"),
            }
        }
    }
    assert!(children > 2_000 && useful > 100, "{useful} of {children} children permit something");
}

/// Every budget that bounds the parent bounds the child, too, and what is left of one is never more than of the other.
#[test]
fn a_child_is_bound_by_every_budget_of_its_parent() {
    let mut numbers = Numbers(13);
    let (mut bound, mut wider, mut open) = (0, 0, 0);
    for _ in 0..1_000 {
        let all: Vec<Delegation> = (0..5).map(|name| numbers.delegation(name, 6)).collect();
        let known: Known<'_> = all.iter().map(|one| (one.name.as_str(), Some(one))).collect();
        for own in &all {
            let Some(Some(parent)) = own.parent.as_ref().and_then(|name| known.get(name.as_str())) else { continue };
            let (chain, above) = (Chain::follow(own, &known), Chain::follow(parent, &known));
            if chain.broken().is_some() {
                continue;
            }
            let (given, most) = (chain.grant("s").budgets, above.grant("s").budgets);
            assert!(given.ends_with(&most), "{own:#?} is not bound by a budget of {parent:#?}");
            assert_eq!(given.len(), most.len() + usize::from(!own.budget.are_none()));
            let within = |child: Option<u64>, parent: Option<u64>| {
                parent.is_none_or(|most| child.is_some_and(|own| own <= most))
            };
            let (child, parent) = (chain.effective().budget, above.effective().budget);
            assert!(within(child.calls, parent.calls) && within(child.per_minute, parent.per_minute), "{own:#?}");
            let states_more = |own: Option<u64>, most: Option<u64>| own.zip(most).is_some_and(|(own, most)| own > most);
            let more =
                states_more(own.budget.calls, parent.calls) || states_more(own.budget.per_minute, parent.per_minute);
            assert_eq!(chain.wider().contains(&"budget"), more, "{own:#?}");
            bound += usize::from(!most.is_empty());
            wider += usize::from(more);
            open += usize::from(given.is_empty());
        }
    }
    assert!(bound > 100 && wider > 20 && open > 100, "{bound} {wider} {open}");
}

#[test]
fn what_is_left_is_wider_than_asked_for_nowhere() {
    let mut numbers = Numbers(11);
    for _ in 0..1_000 {
        let all: Vec<Delegation> = (0..4).map(|name| numbers.delegation(name, 4)).collect();
        let known: Known<'_> = all.iter().map(|one| (one.name.as_str(), Some(one))).collect();
        for own in &all {
            let alone = Delegation { parent: None, suspended: false, ..own.clone() };
            let asked = permitted(&Chain::follow(&alone, &known).grant("s"));
            let chain = Chain::follow(own, &known);
            let given = permitted(&chain.grant("s"));
            assert!(given.is_subset(&asked), "{own:#?}");
            if chain.inactive().is_none() && chain.wider().is_empty() && chain.effective().not_before == own.not_before
            {
                assert_eq!(given, asked, "nothing was taken away, and `wider` says so: {own:#?}");
            }
        }
    }
}

#[test]
fn an_endless_chain_ends() {
    let mut numbers = Numbers(1);
    let all: Vec<Delegation> = (0..40)
        .map(|at| Delegation {
            parent: Some(format!("d{}", at + 1)),
            max_depth: 8,
            suspended: false,
            ..numbers.delegation(at, 1)
        })
        .collect();
    let known: Known<'_> = all.iter().map(|one| (one.name.as_str(), Some(one))).collect();
    let chain = Chain::follow(&all[0], &known);
    assert_eq!((chain.broken(), chain.inactive()), (Some(&Broken::TooLong), Some(Inactive::ParentInactive)));
}
