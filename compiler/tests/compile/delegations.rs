//! Grants of a snapshot, and delegations to several servers.

use std::collections::BTreeMap;

use cotter_compiler::{Delegations, Evidence, LONGEST_DELEGATION, compile, delegation_status};
use cotter_core::{grant::Inactive, snapshot::Digest};
use serde_json::json;

use crate::desk::{Desk, now, said};

const CHILD: &str = "
delegations:
  triage: {spec: {tools: ['policy_*', 'case_*'], notBefore: '2026-11-02T00:00:00Z'}}
  sub:
    metadata: {name: sub, namespace: support, creationTimestamp: '2026-11-01T00:00:00Z'}
    spec:
      delegator: {claims: {team: desk}}
      delegate: {subject: {issuer: 'https://login.example.com', subject: bot}}
      parentRef: {name: triage}
      to: {servers: [{name: support}]}
      scopes: ['policy:read', admin]
      effects: [Read, External]
      tenants: [tenant-7, tenant-8]
      tools: ['*_lookup']
      expiresAt: '2027-01-20T00:00:00Z'
";

#[test]
fn a_grant_is_attenuated_along_its_chain() {
    let grants = Desk::with(CHILD).snapshot().grants;
    assert_eq!(
        json!(grants[0]),
        json!({"name": "sub", "delegator": {"claims": {"team": "desk"}},
            "delegate": {"subject": {"issuer": "https://login.example.com", "subject": "bot"}},
            "scopes": ["policy:read"], "effects": ["Read"], "tenants": ["tenant-7"],
            "tools": [["*_lookup"], ["policy_*", "case_*"]], "notBefore": "2026-11-02T00:00:00Z",
            "expiresAt": "2027-01-15T00:00:00Z", "ancestors": ["triage"]})
    );
    assert!(grants[0].covers("policy_lookup") && !grants[0].covers("stock_lookup") && !grants[0].covers("case_tag"));
    assert_eq!(grants[1].name, "triage");
}

#[test]
fn effective_tools_are_what_has_to_fit_every_link() {
    let status = Desk::with(CHILD).plan().delegation_statuses.remove("sub").unwrap();
    assert_eq!(status.effective.unwrap().tools, ["*_lookup & case_*", "*_lookup & policy_*"]);
    let inner = Desk::with(CHILD).and(&json!({"delegations": {"sub": {"spec": {"tools": ["policy_lookup", "*"]}}}}));
    let status = inner.plan().delegation_statuses.remove("sub").unwrap();
    assert_eq!(status.effective.unwrap().tools, ["case_*", "policy_*", "policy_lookup"]);
}

#[test]
fn an_accepted_delegation_stays_in_the_snapshot_when_it_gives_nothing() {
    let inactive = |patch: &str| -> BTreeMap<String, Option<Inactive>> {
        let grants = Desk::with(CHILD).and(&crate::desk::yaml(patch)).snapshot().grants;
        grants.into_iter().map(|grant| (grant.name, grant.inactive)).collect()
    };
    let of = |sub, triage| BTreeMap::from([("sub".to_owned(), sub), ("triage".to_owned(), triage)]);
    assert_eq!(inactive("{}"), of(None, None));
    let revoked = inactive("{delegations: {triage: {spec: {suspended: true}}}}");
    assert_eq!(revoked, of(Some(Inactive::ParentInactive), Some(Inactive::Suspended)));
    let shallow = inactive("{delegations: {triage: {spec: {maxDepth: 0}}}}");
    assert_eq!(shallow, of(Some(Inactive::DepthExceeded), None));
    let elsewhere = inactive("{delegations: {triage: {spec: {to: {servers: [{name: stock}]}}}}}");
    assert_eq!(elsewhere.get("sub"), Some(&Some(Inactive::ParentInactive)), "the parent does not reach this server");
    let refused = inactive("{delegations: {sub: {spec: {scopes: []}}}}");
    assert_eq!(refused.get("sub"), None, "what was not accepted names nobody");
}

#[test]
fn a_delegation_to_two_servers_is_enforced_where_both_do() {
    let mut world =
        Desk::with("{delegations: {triage: {spec: {to: {servers: [{name: support}, {name: stock}]}}}}}").world();
    let enforced =
        |world: &cotter_compiler::World| said(&compile(world).delegation_statuses["triage"].conditions, "Enforced");
    let mut stock = Evidence { desired: Some(Digest::of(b"x")), live: 2, enforced: 1, ..Evidence::default() };
    world.others.insert("stock".to_owned(), stock.clone());
    assert_eq!(enforced(&world), "False/Pending");
    stock.enforced = 2;
    world.others.insert("stock".to_owned(), stock);
    assert_eq!(enforced(&world), "True/Enforced");
}

#[test]
fn a_delegation_without_any_server_has_a_status_too() {
    let world = Desk::new().world_without_reports();
    let all = Delegations::read(&world.delegations, LONGEST_DELEGATION, now());
    let status = delegation_status(&world.delegations[0], &all, &BTreeMap::new(), &BTreeMap::new(), now());
    assert_eq!(said(&status.conditions, "ResolvedRefs"), "False/ServerNotFound");
    assert_eq!(said(&status.conditions, "Enforced"), "False/NoSidecar");
}

#[test]
fn the_next_pass_is_due_when_a_delegation_begins_or_ends() {
    let next = |patch: &str| Desk::with(patch).plan().next.map(|time| time.to_string());
    assert_eq!(next("{}").as_deref(), Some("2027-01-15T00:00:00Z"));
    assert_eq!(
        next("{delegations: {triage: {spec: {notBefore: '2026-12-01T00:00:00Z'}}}}").as_deref(),
        Some("2026-12-01T00:00:00Z")
    );
    assert_eq!(next("{delegations: {triage: null}}"), None);
}
