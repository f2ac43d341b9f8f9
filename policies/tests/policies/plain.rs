//! Worlds and callers as data of the test's own, for a reference that shares no method with what it judges.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use cotter_core::{
    decision::{Approval, Era},
    effect::Effect,
    grant::{Grant, Inactive, Party},
    principal::{Actor, Principal, ServiceAccount},
    snapshot::Snapshot,
};
use cotter_policies::{Listed, PinFacts};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    rules::Rule,
    world::{noon, rule, snapshot, tool, user},
};

/// One server and everything that a decision on it depends on.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// `*` admits everybody.
    pub(crate) tenants: Vec<&'static str>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) grants: Vec<Lent>,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) scope: &'static str,
    pub(crate) effect: &'static str,
    pub(crate) asks: bool,
    pub(crate) pin: (&'static str, Option<&'static str>),
    /// What the server says of it: whether it destroys.
    pub(crate) destroys: Option<bool>,
}

#[derive(Debug, Clone)]
pub(crate) enum Whom {
    Subject(&'static str, &'static str),
    Claims(Vec<(&'static str, Value)>),
    Account(&'static str, &'static str),
}

/// One delegation, after its chain.
#[derive(Debug, Clone)]
pub(crate) struct Lent {
    pub(crate) name: String,
    pub(crate) delegator: Option<Whom>,
    pub(crate) delegate: Whom,
    pub(crate) scopes: Vec<&'static str>,
    pub(crate) effects: Vec<&'static str>,
    pub(crate) tenants: Vec<&'static str>,
    /// One list of patterns for each link of the chain.
    pub(crate) links: Vec<Vec<String>>,
    /// Seconds from noon.
    pub(crate) from: Option<i64>,
    pub(crate) until: i64,
    pub(crate) inactive: Option<Inactive>,
}

/// What a token says, and when and how it is used.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) issuer: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) account: Option<(&'static str, &'static str)>,
    pub(crate) tenant: Option<&'static str>,
    pub(crate) scopes: Option<Vec<&'static str>>,
    pub(crate) groups: Vec<&'static str>,
    pub(crate) actor: Option<Deputy>,
    pub(crate) claims: Vec<(&'static str, Value)>,
    /// Seconds from noon.
    pub(crate) at: i64,
    pub(crate) legacy: bool,
    pub(crate) amount: Option<i64>,
}

/// Whom a token names as acting.
#[derive(Debug, Clone)]
pub(crate) struct Deputy {
    pub(crate) issuer: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) account: Option<(&'static str, &'static str)>,
}

fn parsed<T: std::str::FromStr, C: FromIterator<T>>(texts: &[&str]) -> C {
    texts.iter().map(|text| text.parse().unwrap_or_else(|_| panic!("{text}"))).collect()
}

fn account((namespace, name): (&str, &str)) -> ServiceAccount {
    ServiceAccount { namespace: namespace.parse().unwrap(), name: name.to_owned() }
}

pub(crate) fn seconds(from_noon: i64) -> Timestamp {
    noon() + SignedDuration::from_secs(from_noon)
}

pub(crate) fn effect(name: &str) -> Effect {
    *Effect::ALL.iter().find(|effect| effect.as_str() == name).unwrap()
}

impl Whom {
    fn party(&self) -> Party {
        match self {
            Self::Subject(issuer, subject) => {
                Party::Subject { issuer: issuer.parse().unwrap(), subject: subject.parse().unwrap() }
            }
            Self::Claims(claims) => {
                Party::Claims(claims.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
            }
            Self::Account(namespace, name) => Party::ServiceAccount(account((namespace, name))),
        }
    }
}

impl Lent {
    fn grant(&self) -> Grant {
        let link = |globs: &Vec<String>| globs.iter().map(|glob| glob.parse().unwrap()).collect();
        Grant {
            delegator: self.delegator.as_ref().map(Whom::party),
            delegate: self.delegate.party(),
            scopes: parsed(&self.scopes),
            effects: self.effects.iter().map(|name| effect(name)).collect(),
            tools: self.links.iter().map(link).collect(),
            tenants: parsed(&self.tenants),
            not_before: self.from.map(seconds),
            expires_at: seconds(self.until),
            inactive: self.inactive,
            ..crate::world::grant(&self.name, "nobody", &[], &[], &[])
        }
    }
}

/// What a server says of a tool that destroys, and of one that does not.
static HINTS: LazyLock<[Value; 2]> =
    LazyLock::new(|| [false, true].map(|destroys| json!({"title": "Tool", "destructiveHint": destroys})));

impl Tool {
    pub(crate) fn listed(&self) -> Listed<'static> {
        let annotations = self.destroys.map(|destroys| &HINTS[usize::from(destroys)]);
        Listed { pin: PinFacts { state: self.pin.0, class: self.pin.1 }, annotations }
    }
}

impl World {
    /// What a sidecar would enforce.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut made = snapshot();
        made.access.tenants = self.tenants.iter().map(|tenant| (*tenant).to_owned()).collect();
        let rule = |of: &Tool| {
            let mut rule = rule(of.scope, effect(of.effect));
            rule.approval = if of.asks { Approval::Always } else { Approval::Never };
            rule
        };
        made.tools = self.tools.iter().map(|of| (tool(&of.name), rule(of))).collect();
        made.grants = self.grants.iter().map(Lent::grant).collect();
        let module =
            |(at, rule): (usize, &Rule)| (format!("m{at}"), format!("package cotter.user.m{at}\n\n{}\n", rule.rego()));
        made.policies = self.rules.iter().enumerate().map(module).collect();
        made
    }
}

impl Caller {
    /// What the sidecar would have verified.
    pub(crate) fn principal(&self) -> Principal {
        let actor = self.actor.as_ref().map(|deputy| Actor {
            issuer: deputy.issuer.parse().unwrap(),
            subject: deputy.subject.parse().unwrap(),
            service_account: deputy.account.map(account),
        });
        let claims: BTreeMap<String, Value> =
            self.claims.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Principal {
            issuer: self.issuer.parse().unwrap(),
            subject: self.subject.parse().unwrap(),
            tenant: self.tenant.map(|tenant| tenant.parse().unwrap()),
            scopes: self.scopes.as_deref().map(parsed),
            groups: self.groups.iter().map(|group| (*group).to_owned()).collect::<BTreeSet<_>>(),
            service_account: self.account.map(account),
            actor_chain: actor.iter().cloned().collect(),
            actor,
            claims,
            ..user(&[])
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        seconds(self.at)
    }

    pub(crate) fn era(&self) -> Era {
        if self.legacy { Era::Legacy } else { Era::Modern }
    }

    pub(crate) fn arguments(&self) -> String {
        self.amount.map_or_else(|| "{}".to_owned(), |amount| format!("{{\"amount\": {amount}}}"))
    }
}
