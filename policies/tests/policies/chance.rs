//! Chance worlds and callers. Few names, so that they meet; every state that a decision can depend on, and what merely looks like it.

use cotter_core::grant::Inactive;
use serde_json::{Value, json};

use crate::{
    dice::Dice,
    plain::{Caller, Deputy, Lent, Tool, Whom, World},
    rules::Rule,
};

pub(crate) const SCOPES: &[&str] = &["case:read", "case:write", "mail:send", "case"];
pub(crate) const TENANTS: &[&str] = &["tenant-7", "tenant-8", "tenant"];
pub(crate) const EFFECTS: &[&str] = &["Read", "Write", "Destructive", "External"];
const GROUPS: &[&str] = &["desk", "night"];
const CORP: &str = "https://login.example.com";
const ISSUERS: &[&str] = &[CORP, CORP, CORP, CORP, "https://other.example"];
const CLUSTER: &str = "https://kubernetes.default.svc";
const PEOPLE: &[&str] = &["mia", "bot", "bot", "eve"];
const ACCOUNTS: &[(&str, &str, &str)] = &[
    ("desk", "bot", "system:serviceaccount:desk:bot"),
    ("desk", "eve", "system:serviceaccount:desk:eve"),
    ("night", "bot", "system:serviceaccount:night:bot"),
];
/// Around every time at which a delegation begins or ends.
const TIMES: &[i64] = &[-61, -60, -1, 0, 0, 1, 59, 60];
const PINS: &[(&str, Option<&str>)] = &[
    ("Matched", None),
    ("Matched", None),
    ("Drifted", Some("Cosmetic")),
    ("Drifted", Some("Text")),
    ("Added", None),
    ("Unpinned", None),
];

/// Names of tools: words that share beginnings and ends, and letters that mean something elsewhere.
pub(crate) fn names() -> Vec<String> {
    let parts = ["case", "mail", "policy", "a"].into_iter().flat_map(|first| {
        ["list", "tag", "send", "tag_all", "_", "case"].into_iter().map(move |second| format!("{first}_{second}"))
    });
    let odd = ["case", "case_", "_tag", "tag", "a", "aa", "a*", "*", "case_*", "case.tag", "case_tagtag", "CASE_TAG"];
    parts.chain(odd.map(str::to_owned)).collect()
}

fn claim(dice: &mut Dice) -> Value {
    let values = [
        json!("desk"),
        json!("desk"),
        json!(["desk", "other"]),
        json!(["other", "desk"]),
        json!("other"),
        json!("DESK"),
        json!(["desks"]),
        json!([]),
        json!(7),
        json!([7, "x"]),
        json!("7"),
        json!(true),
        json!(null),
        json!({"desk": true}),
        json!([["desk"]]),
    ];
    values[dice.roll(values.len())].clone()
}

fn wanted(dice: &mut Dice) -> Vec<(&'static str, Value)> {
    let mut claims = Vec::new();
    if dice.roll(12) != 0 {
        claims.push(("team", [json!("desk"), json!("desk"), json!(7), json!(true)][dice.roll(4)].clone()));
    }
    if dice.roll(5) == 0 {
        claims.push(("level", [json!("3"), json!(3)][dice.roll(2)].clone()));
    }
    claims
}

fn whom(dice: &mut Dice) -> Whom {
    match dice.roll(6) {
        0 | 1 => {
            let (namespace, name, _) = dice.pick(ACCOUNTS);
            Whom::Account(namespace, name)
        }
        2 => Whom::Claims(wanted(dice)),
        // What reads like a service account, of an issuer that is not the cluster's, and of the cluster's.
        3 if dice.roll(3) == 0 => Whom::Subject(dice.pick(&[CORP, CLUSTER]), dice.pick(ACCOUNTS).2),
        _ => Whom::Subject(dice.pick(ISSUERS), dice.pick(PEOPLE)),
    }
}

/// A name with some of it behind a star, or what no name fits.
fn glob(dice: &mut Dice, names: &[String]) -> String {
    let name = &names[dice.roll(names.len())];
    let (one, two) = (dice.roll(name.len() + 1), dice.roll(name.len() + 1));
    let (from, to) = (one.min(two), one.max(two));
    match dice.roll(8) {
        0..3 => "*".to_owned(),
        3 => name.clone(),
        4 => format!("{}*", &name[..from]),
        5 => format!("*{}", &name[from..]),
        // The ends overlap: the name itself is too short for them.
        6 if dice.roll(2) == 0 => format!("{}*{}", &name[..to], &name[from..]),
        6 => format!("{}*{}", &name[..from], &name[to..]),
        _ => format!("{}*{}*", &name[..from], &name[from..to]),
    }
}

fn lent(dice: &mut Dice, number: usize, names: &[String]) -> Lent {
    let some = |dice: &mut Dice, items: &[&'static str]| dice.some(items).into_iter().collect::<Vec<_>>();
    let links = [0, 1, 1, 1, 1, 2, 2, 3][dice.roll(8)];
    let link = |dice: &mut Dice| (0..=dice.roll(3)).map(|_| glob(dice, names)).collect();
    Lent {
        name: format!("g{number}"),
        delegator: (dice.roll(3) == 0).then(|| whom(dice)),
        delegate: whom(dice),
        scopes: some(dice, SCOPES),
        effects: some(dice, EFFECTS),
        tenants: some(dice, TENANTS),
        links: (0..links).map(|_| link(dice)).collect(),
        from: (dice.roll(4) == 0).then(|| [-60, 0, 60][dice.roll(3)]),
        until: [-60, 0, 60, 3600, 3600, 3600][dice.roll(6)],
        inactive: (dice.roll(6) == 0)
            .then(|| [Inactive::Suspended, Inactive::ParentInactive, Inactive::DepthExceeded][dice.roll(3)]),
    }
}

/// A world with all those tools but a few, and up to seven delegations.
pub(crate) fn any_world(dice: &mut Dice) -> World {
    let names = names();
    let any_tool = |dice: &mut Dice, name: &String| Tool {
        name: name.clone(),
        scope: dice.pick(SCOPES),
        effect: dice.pick(EFFECTS),
        asks: dice.roll(5) == 0,
        pin: dice.pick(PINS),
        destroys: [None, Some(false), Some(true)][dice.roll(3)],
    };
    let mut tools: Vec<Tool> = Vec::new();
    for name in &names {
        if dice.roll(16) != 0 {
            tools.push(any_tool(dice, name));
        }
    }
    let tenants = match dice.roll(6) {
        0 => vec!["*"],
        1 => vec!["*", "tenant-7"],
        2 => vec!["tenant-8"],
        _ => dice.some(TENANTS).into_iter().collect(),
    };
    let mut rules = Vec::new();
    if dice.roll(3) == 0 {
        rules.extend(Rule::STABLE.into_iter().filter(|_| dice.roll(4) == 0));
        if dice.roll(4) == 0 {
            rules.push(dice.pick(&Rule::FRESH));
        }
    }
    let grants = (0..dice.roll(7) + dice.roll(3)).map(|number| lent(dice, number, &names)).collect();
    World { tenants, tools, grants, rules }
}

fn deputy(dice: &mut Dice) -> Deputy {
    let (namespace, name, subject) = dice.pick(ACCOUNTS);
    match dice.roll(4) {
        0 | 1 => Deputy { issuer: CLUSTER, subject, account: Some((namespace, name)) },
        2 if dice.roll(3) == 0 => Deputy { issuer: CORP, subject, account: None },
        _ => Deputy { issuer: dice.pick(ISSUERS), subject: dice.pick(PEOPLE), account: None },
    }
}

/// The subject that the cluster's tokens give a service account.
fn reads_like(namespace: &str, name: &str) -> &'static str {
    ACCOUNTS.iter().find(|account| (account.0, account.1) == (namespace, name)).unwrap().2
}

/// Makes the caller one whom a delegation means, as far as it can be.
fn meet(dice: &mut Dice, caller: &mut Caller, lent: &Lent) {
    match lent.delegator.as_ref().unwrap_or(&lent.delegate) {
        &Whom::Subject(issuer, subject) => (caller.issuer, caller.subject, caller.account) = (issuer, subject, None),
        &Whom::Account(namespace, name) => {
            (caller.issuer, caller.subject, caller.account) =
                (CLUSTER, reads_like(namespace, name), Some((namespace, name)));
        }
        Whom::Claims(claims) => caller.claims.clone_from(claims),
    }
    caller.actor = lent.delegator.as_ref().map(|_| match lent.delegate {
        Whom::Subject(issuer, subject) => Deputy { issuer, subject, account: None },
        Whom::Account(namespace, name) => {
            Deputy { issuer: CLUSTER, subject: reads_like(namespace, name), account: Some((namespace, name)) }
        }
        Whom::Claims(_) => deputy(dice),
    });
}

/// A token of some kind, used at some time; every second one is of somebody whom a delegation of the world means.
pub(crate) fn any_caller(dice: &mut Dice, world: &World) -> Caller {
    let mut caller = anybody(dice);
    if dice.roll(2) == 0 && !world.grants.is_empty() {
        let lent = &world.grants[dice.roll(world.grants.len())];
        meet(dice, &mut caller, lent);
        if dice.roll(4) == 0 {
            miss(dice, &mut caller);
        }
    }
    caller
}

/// The same token used otherwise: in the other era, at another time, with other arguments.
pub(crate) fn in_another_way(dice: &mut Dice, caller: &Caller) -> Caller {
    let mut other = caller.clone();
    match dice.roll(4) {
        0 | 1 => other.legacy = !caller.legacy,
        2 => other.at = dice.pick(TIMES),
        _ => other.amount = [None, Some(10), Some(11)][dice.roll(3)],
    }
    other
}

/// Spoils one thing of a caller whom a delegation means.
fn miss(dice: &mut Dice, caller: &mut Caller) {
    match (dice.roll(4), &mut caller.actor) {
        (0, Some(actor)) => actor.issuer = dice.pick(&[CORP, CLUSTER, "https://other.example"]),
        (1, Some(actor)) => actor.account = None,
        (2, Some(_)) => caller.actor = None,
        (0, None) => caller.issuer = dice.pick(&[CORP, CLUSTER, "https://other.example"]),
        (1, None) => caller.account = None,
        (2, None) => caller.actor = Some(deputy(dice)),
        _ => caller.claims.iter_mut().for_each(|(_, value)| *value = claim(dice)),
    }
}

fn anybody(dice: &mut Dice) -> Caller {
    let (namespace, name, subject) = dice.pick(ACCOUNTS);
    let scopes = match dice.roll(8) {
        0 => Some(Vec::new()),
        1 | 2 => None,
        _ => Some(dice.some(SCOPES).into_iter().collect()),
    };
    let mut caller = Caller {
        issuer: dice.pick(ISSUERS),
        subject: dice.pick(PEOPLE),
        account: None,
        tenant: [
            None,
            Some("tenant-7"),
            Some("tenant-7"),
            Some("tenant-7"),
            Some("tenant-8"),
            Some("tenant"),
            Some("*"),
        ][dice.roll(7)],
        scopes,
        groups: dice.few(GROUPS, 3).into_iter().collect(),
        actor: None,
        claims: Vec::new(),
        at: dice.pick(TIMES),
        legacy: dice.roll(3) == 0,
        amount: [None, Some(10), Some(11), Some(-1)][dice.roll(4)],
    };
    match dice.roll(6) {
        0 => {
            (caller.issuer, caller.subject, caller.account) = (CLUSTER, subject, Some((namespace, name)));
            caller.scopes = None;
        }
        1 => caller.subject = subject,
        2 | 3 => caller.actor = Some(deputy(dice)),
        _ => {}
    }
    if dice.roll(2) == 0 {
        caller.claims.push(("team", claim(dice)));
    }
    if dice.roll(3) == 0 {
        caller.claims.push(("level", [json!("3"), json!(3), json!(["3", 4])][dice.roll(3)].clone()));
    }
    caller
}
