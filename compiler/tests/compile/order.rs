//! The order of lists that are sets, and of everything that a pass is given, decides nothing.

use std::collections::BTreeMap;

use cotter_compiler::{Plan, compile};
use cotter_crds::{AgentDelegation, AgentDelegationStatus};
use serde_json::{Value, json};

use crate::desk::{Desk, yaml};

/// A server with two of everything.
const MANY: &str = "
server:
  spec:
    access:
      tenants: [tenant-7, tenant-8, tenant-9]
      hosts: [a.example, b.example, c.example]
      origins: ['https://a.example', 'https://b.example']
      serviceAccounts: {enabled: true, tenants: [{namespace: agents, tenant: tenant-7}, {namespace: bots, tenant: tenant-8}]}
      issuers: [{name: corp, issuer: 'https://login.example.com'}, {name: lab, issuer: 'https://lab.example.com'}]
    protocol: {revisions: ['2026-07-28', '2025-11-25', '2025-06-18']}
    policies: [{configMapRef: {name: one}}, {configMapRef: {name: two}}]
keys:
  lab: {keys: [{kty: EC, crv: P-256, kid: lab, x: eA, y: eQ}]}
policies:
  one: {a.rego: \"package cotter.user.a\\n\\ndeny contains 1 if input.tool.name == input.era\\n\", b.rego: \"package cotter.user.b\\n\\nx := 1\\n\"}
  two: {a.rego: \"package cotter.user.c\\n\\ny := 1\\n\"}
sidecars:
  support-1: {tools: rugpull, knows: Verified, enforces: this}
  support-2: {tools: extra, knows: Verified, enforces: other}
";

/// Lists whose items have no order, wherever they stand.
const SETS: &[&str] =
    &["tools", "tenants", "hosts", "origins", "issuers", "revisions", "policies", "scopes", "effects", "servers"];

/// A small generator: the same orders in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    fn reorder(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.reorder(member);
                    if let Some(items) = member.as_array_mut().filter(|_| SETS.contains(&name.as_str())) {
                        self.shuffle(items);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.reorder(item)),
            _ => {}
        }
    }
}

/// Six delegations, each below an earlier one.
fn delegations() -> Value {
    let one = |at: usize| {
        let mut made = json!({
            "apiVersion": "cotter.dev/v1alpha1", "kind": "AgentDelegation",
            "metadata": {"name": format!("d{at}"), "namespace": "support", "generation": 1, "creationTimestamp": "2026-11-01T00:00:00Z"},
            "spec": {
                "delegate": {"claims": {"team": format!("t{at}"), "level": "3"}},
                "to": {"servers": [{"name": "support"}, {"name": "stock"}]},
                "scopes": ["policy:read", "case:write", "admin"], "effects": ["Read", "Write"],
                "tenants": ["tenant-7", "tenant-8"], "expiresAt": "2027-01-15T00:00:00Z", "maxDepth": 3,
            },
        });
        if at > 0 {
            made["spec"]["parentRef"] = json!({"name": format!("d{}", at / 2)});
        }
        (format!("d{at}"), made)
    };
    Value::Object((0..6).map(one).collect())
}

/// The statuses of the delegations, without the summary: it repeats lists in the words and the order of their owner.
fn decided(plan: &Plan) -> BTreeMap<String, AgentDelegationStatus> {
    let mut statuses = plan.delegation_statuses.clone();
    statuses.values_mut().for_each(|status| status.summary = None);
    statuses
}

fn same(one: &Plan, other: &Plan) {
    let bytes = |plan: &Plan| plan.snapshot.as_ref().map(|sealed| sealed.bytes().clone());
    assert!(one.snapshot.is_some());
    assert_eq!(bytes(one), bytes(other));
    assert_eq!(one.server_status, other.server_status);
    assert_eq!(one.pin_statuses, other.pin_statuses);
    assert_eq!(decided(one), decided(other));
    assert_eq!(one.children, other.children);
    assert_eq!(one.observed, other.observed);
    assert_eq!((&one.evidence, one.next), (&other.evidence, other.next));
}

#[test]
fn no_list_that_is_a_set_and_no_order_of_objects_changes_a_plan() {
    let desk = Desk::new().and(&yaml(MANY)).and(&json!({"delegations": delegations()}));
    let first = compile(&desk.world());
    let mut chance = Chance(17);
    for _ in 0..25 {
        let mut other = desk.clone();
        chance.reorder(&mut other.0);
        let mut world = other.world();
        chance.shuffle(&mut world.delegations);
        chance.shuffle(&mut world.reports);
        same(&first, &compile(&world));
    }
    let grants = &first.snapshot.as_ref().unwrap().snapshot().grants;
    assert_eq!(grants.iter().filter(|grant| grant.inactive.is_none()).count(), 7, "{grants:#?}");
    let moved = |delegation: &AgentDelegation| delegation.metadata.name.as_deref() == Some("d5");
    let mut world = desk.world();
    world.delegations.retain(|delegation| !moved(delegation));
    assert_ne!(first.snapshot.unwrap().digest(), compile(&world).snapshot.unwrap().digest(), "a missing one does");
}
