//! Delegations that narrow delegations, edited at random: a child never has more than its parent, after every edit, at every time, and
//! what is left in the end is what stands there, whatever was there before.

use std::collections::{BTreeMap, BTreeSet};

use cotter_compiler::{Delegations, LONGEST_DELEGATION, compile};
use cotter_crds::AgentDelegation;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::desk::{Desk, now};

mod reference;

use reference::{Reference, bounds, given, wanted_bounds};

const SERVERS: &[&str] = &["support", "stock"];
const SCOPES: &[&str] = &["policy:read", "case:write", "admin"];
const EFFECTS: &[&str] = &["Read", "Write", "External"];
const TENANTS: &[&str] = &["tenant-7", "tenant-8"];
const GLOBS: &[&str] = &["*", "case_*", "*_tag", "case_tag", "c*_*g", "*e*", "mail_send"];
const TOOLS: &[&str] = &["case_tag", "case_list", "mail_tag", "mail_send", "case_"];
/// Seconds from [`now`] at which delegations begin and end, and at which they are looked at.
const TIMES: std::ops::Range<i64> = 0..6;
/// Names of delegations; the last one is never made.
const NAMES: usize = 6;

/// A small generator: the same forests in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    /// Most of them; now and then none, which is not accepted.
    fn some(&mut self, from: &[&'static str]) -> Vec<&'static str> {
        let empty = self.below(40) == 0;
        let mut kept: Vec<_> = from.iter().copied().filter(|_| !empty && self.below(4) > 0).collect();
        if kept.is_empty() && !empty {
            kept.push(from[self.below(from.len())]);
        }
        kept
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// One delegation as somebody wrote it.
#[derive(Debug, Clone, PartialEq)]
struct Wish {
    parent: Option<usize>,
    servers: Vec<&'static str>,
    scopes: Vec<&'static str>,
    effects: Vec<&'static str>,
    tenants: Vec<&'static str>,
    globs: Vec<&'static str>,
    from: Option<i64>,
    until: i64,
    depth: u32,
    suspended: bool,
    /// Calls, and calls per minute.
    budget: (Option<u64>, Option<u64>),
    /// Which of [`PARTIES`] acts, and for which, if any.
    parties: (usize, Option<usize>),
}

/// What stands in the namespace.
type Forest = BTreeMap<usize, Wish>;

fn at(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

impl Wish {
    fn any(chance: &mut Chance, name: usize) -> Self {
        let mut wish = Self {
            parent: None,
            servers: Vec::new(),
            scopes: Vec::new(),
            effects: Vec::new(),
            tenants: Vec::new(),
            globs: Vec::new(),
            from: None,
            until: 0,
            depth: 0,
            suspended: false,
            budget: (None, None),
            parties: (0, None),
        };
        (0..FIELDS).for_each(|field| wish.change(chance, name, field));
        wish
    }

    /// One field gets another value.
    fn change(&mut self, chance: &mut Chance, name: usize, field: usize) {
        match field {
            // Mostly an earlier one; now and then itself, a later one, or one that is not there.
            0 => {
                self.parent = match chance.below(8) {
                    0 => None,
                    1 => Some(chance.below(NAMES)),
                    _ => (name > 0).then(|| chance.below(name.max(1))),
                }
            }
            1 => self.servers = chance.some(SERVERS),
            2 => self.scopes = chance.some(SCOPES),
            3 => self.effects = chance.some(EFFECTS),
            4 => self.tenants = chance.some(TENANTS),
            5 => self.globs = (0..=chance.below(2)).map(|_| GLOBS[chance.below(GLOBS.len())]).collect(),
            6 => self.from = (chance.below(3) == 0).then(|| i64::try_from(chance.below(4)).unwrap()),
            7 => self.until = i64::try_from(1 + chance.below(6)).unwrap(),
            8 => self.depth = [0, 1, 2, 3, 8][chance.below(5)],
            9 => self.suspended = chance.below(8) == 0,
            10 => self.budget = [(None, None), (Some(9), None), (None, Some(4)), (Some(2), Some(3))][chance.below(4)],
            _ => {
                let delegator = chance.below(2 * PARTIES.len());
                self.parties = (chance.below(PARTIES.len()), (delegator < PARTIES.len()).then_some(delegator));
            }
        }
    }

    fn object(&self, name: usize, status: Option<&Value>) -> AgentDelegation {
        let mut object = json!({
            "apiVersion": "cotter.dev/v1alpha1", "kind": "AgentDelegation",
            "metadata": {"name": called(name), "namespace": "support", "generation": 1, "creationTimestamp": at(-60)},
            "spec": {
                "delegate": party(self.parties.0),
                "to": {"servers": self.servers.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()},
                "scopes": self.scopes, "effects": self.effects, "tenants": self.tenants, "tools": self.globs,
                "expiresAt": at(self.until), "maxDepth": self.depth, "suspended": self.suspended,
            },
        });
        if let Some(parent) = self.parent {
            object["spec"]["parentRef"] = json!({"name": called(parent)});
        }
        if let Some(delegator) = self.parties.1 {
            object["spec"]["delegator"] = party(delegator);
        }
        let members = [("calls", self.budget.0), ("perMinute", self.budget.1)];
        for (member, bound) in members.into_iter().filter_map(|(member, bound)| Some((member, bound?))) {
            object["spec"]["budget"][member] = json!(bound);
        }
        if let Some(from) = self.from {
            object["spec"]["notBefore"] = json!(at(from));
        }
        if let Some(status) = status {
            object["status"] = status.clone();
        }
        serde_json::from_value(object).unwrap_or_else(|error| panic!("{error}"))
    }
}

const FIELDS: usize = 12;

/// Who can be named.
const PARTIES: &[&str] = &[
    r#"{"serviceAccount": {"name": "bot", "namespace": "agents"}}"#,
    r#"{"subject": {"issuer": "https://login.example.com", "subject": "bot"}}"#,
    r#"{"claims": {"team": "desk"}}"#,
];

fn party(index: usize) -> Value {
    serde_json::from_str(PARTIES[index]).unwrap()
}

fn called(name: usize) -> String {
    format!("d{name}")
}

/// One thing that a call would be, at one time.
type Deed = (i64, &'static str, &'static str, &'static str, &'static str);

/// What came of it.
#[derive(Debug, Default)]
struct Tally {
    edits: usize,
    children: usize,
    useful: usize,
    narrowed: usize,
    silenced: usize,
    bound: usize,
}

/// Compares what the delegations give with the reference, and every child with its parent.
fn look(forest: &Forest, chance: &mut Chance, tally: &mut Tally) {
    let mut objects: Vec<AgentDelegation> = forest.iter().map(|(name, wish)| wish.object(*name, None)).collect();
    chance.shuffle(&mut objects);
    let all = Delegations::read(&objects, LONGEST_DELEGATION, now());
    let reference = Reference { forest };
    for server in SERVERS {
        let all = all.grants(server);
        let grants: BTreeMap<String, BTreeSet<Deed>> =
            all.iter().map(|grant| (grant.name.clone(), given(grant))).collect();
        for grant in all.iter().filter(|grant| !given(grant).is_empty()) {
            let name = (0..NAMES).find(|name| called(*name) == grant.name).unwrap();
            assert_eq!(bounds(grant), wanted_bounds(forest, name), "what binds d{name} at {server}: {forest:#?}");
            tally.bound += usize::from(grant.budgets.len() > 1);
        }
        let named = forest.iter().filter(|(_, wish)| Reference::is_accepted(wish) && wish.servers.contains(server));
        let named: BTreeSet<String> = named.map(|(name, _)| called(*name)).collect();
        assert_eq!(grants.keys().cloned().collect::<BTreeSet<_>>(), named, "who acts under delegations: {forest:#?}");
        for (name, wish) in forest {
            let Some(gives) = grants.get(&called(*name)) else { continue };
            assert_eq!(*gives, reference.gives(*name, server), "d{name} at {server}: {forest:#?}");
            let Some(parent) = wish.parent else { continue };
            let most = grants.get(&called(parent)).cloned().unwrap_or_default();
            assert!(gives.is_subset(&most), "d{name} has more than d{parent} at {server}: {forest:#?}");
            tally.children += 1;
            tally.useful += usize::from(!gives.is_empty());
            tally.narrowed += usize::from(!gives.is_empty() && gives.len() < most.len());
            tally.silenced += usize::from(gives.is_empty() && !most.is_empty());
        }
    }
    tally.edits += 1;
}

/// Changes a field, deletes, makes anew, or takes back a revocation.
fn edit(forest: &mut Forest, chance: &mut Chance) {
    let name = chance.below(NAMES - 1);
    match (chance.below(8), forest.get_mut(&name)) {
        (0, Some(_)) => drop(forest.remove(&name)),
        (1, Some(wish)) => wish.suspended = !wish.suspended,
        (_, Some(wish)) => {
            let field = chance.below(FIELDS);
            wish.change(chance, name, field);
        }
        (_, None) => drop(forest.insert(name, Wish::any(chance, name))),
    }
}

#[test]
fn a_child_never_has_more_than_its_parent_after_any_edit() {
    let (mut chance, mut tally) = (Chance(3), Tally::default());
    for _ in 0..150 {
        let mut forest: Forest = (0..NAMES - 1).map(|name| (name, Wish::any(&mut chance, name))).collect();
        look(&forest, &mut chance, &mut tally);
        for _ in 0..12 {
            edit(&mut forest, &mut chance);
            look(&forest, &mut chance, &mut tally);
        }
    }
    println!("{tally:?}");
    let Tally { edits, children, useful, narrowed, silenced, bound } = tally;
    assert!(edits >= 1_900 && children > 5_000, "{tally:?}");
    assert!(useful > 300 && narrowed > 150 && silenced > 500 && bound > 100, "{tally:?}");
}

/// Field by field towards an end, with detours: what each delegation was meanwhile has to be forgotten.
fn walk(start: &Forest, end: &Forest, chance: &mut Chance) -> Vec<Forest> {
    let mut steps: Vec<usize> = (0..NAMES - 1).collect();
    chance.shuffle(&mut steps);
    let (mut forest, mut path) = (start.clone(), vec![start.clone()]);
    for _ in 0..4 {
        edit(&mut forest, chance);
        path.push(forest.clone());
    }
    for name in steps {
        match end.get(&name) {
            Some(wish) => drop(forest.insert(name, wish.clone())),
            None => drop(forest.remove(&name)),
        }
        path.push(forest.clone());
    }
    assert_eq!(forest, *end);
    path
}

/// Compiles one state after the other, each with the status that the one before left.
fn arrive(path: &[Forest], desk: &Desk, chance: &mut Chance) -> (String, BTreeMap<String, Value>) {
    let mut statuses: BTreeMap<String, Value> = BTreeMap::new();
    let mut bytes = String::new();
    for (second, forest) in path.iter().enumerate() {
        let mut world = desk.world_without_reports();
        world.now = at(i64::try_from(second % 6).unwrap());
        world.delegations =
            forest.iter().map(|(name, wish)| wish.object(*name, statuses.get(&called(*name)))).collect();
        chance.shuffle(&mut world.delegations);
        let plan = compile(&world);
        statuses = plan.delegation_statuses.iter().map(|(name, status)| (name.clone(), json!(status))).collect();
        bytes = plan.snapshot.expect("a snapshot").bytes().to_string();
    }
    let effective = |status: Value| status["effective"].clone();
    (bytes, statuses.into_iter().map(|(name, status)| (name, effective(status))).collect())
}

#[test]
fn edits_in_any_order_end_in_the_same_grants() {
    let (mut chance, desk, mut different) = (Chance(5), Desk::new(), BTreeSet::new());
    for _ in 0..25 {
        let any = |chance: &mut Chance| -> Forest {
            let kept: Vec<usize> = (0..NAMES - 1).filter(|_| chance.below(6) > 0).collect();
            kept.into_iter().map(|name| (name, Wish::any(chance, name))).collect()
        };
        let (start, end) = (any(&mut chance), any(&mut chance));
        let at_once = arrive(std::slice::from_ref(&end), &desk, &mut chance);
        for _ in 0..2 {
            let path = walk(&start, &end, &mut chance);
            assert_eq!(arrive(&path, &desk, &mut chance), at_once, "{path:#?}");
        }
        different.insert(at_once.0);
    }
    assert!(different.len() >= 24, "the ends differ");
}
