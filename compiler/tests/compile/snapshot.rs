//! What a snapshot is made of, and what moves its digest.

use std::collections::BTreeSet;

use cotter_compiler::compile;
use cotter_core::snapshot::{Digest, Rate, Sealed, Sessions, Upstream};
use serde_json::json;

use crate::desk::Desk;

fn digest(desk: &Desk) -> Digest {
    desk.plan().snapshot.expect("a snapshot").digest()
}

#[test]
fn the_same_world_gives_the_same_snapshot_whatever_its_order() {
    let more = "{delegations: {a: {metadata: {name: a, creationTimestamp: '2026-11-01T00:00:00Z'}, spec: {delegate: {serviceAccount: {name: a}}, to: {servers: [{name: support}]}, scopes: [x], effects: [Read], tenants: [t], expiresAt: '2026-12-24T00:00:00Z'}}}, sidecars: {support-1: {tools: rugpull, knows: Verified, enforces: this}}}";
    let mut world = Desk::with(more).world();
    let first = compile(&world);
    assert_eq!(compile(&world).snapshot.unwrap().bytes(), first.snapshot.as_ref().unwrap().bytes());

    world.delegations.reverse();
    world.reports.reverse();
    world.server.spec.tools.reverse();
    world.pins[0].spec.tools.reverse();
    world.server.spec.access.tenants.reverse();
    let second = compile(&world);

    assert_eq!(second.snapshot.unwrap().bytes(), first.snapshot.unwrap().bytes());
    assert_eq!(second.server_status, first.server_status);
    assert_eq!(second.pin_statuses, first.pin_statuses);
    assert_eq!(second.delegation_statuses, first.delegation_statuses);
    assert_eq!(second.children, first.children);
}

#[test]
fn neither_time_nor_reports_move_the_digest() {
    let base = digest(&Desk::new());
    assert_eq!(digest(&Desk::with("{now: '2027-01-01T00:00:00Z'}")), base);
    assert_eq!(digest(&Desk::with("{sidecars: {support-0: {tools: rugpull}}}")), base);
    assert_eq!(digest(&Desk::with("{sidecars: {support-0: null}}")), base);
    for change in [
        "{server: {metadata: {generation: 4}}}",
        "{server: {spec: {audience: 'support://other'}}}",
        "{delegations: {triage: {spec: {suspended: true}}}}",
        "{keys: {corp: {keys: [{kty: EC, crv: P-256, kid: two, x: eA, y: eQ}]}}}",
        "{pins: {support: {spec: {enforcement: Audit}}}}",
    ] {
        assert_ne!(digest(&Desk::with(change)), base, "{change}");
    }
}

#[test]
fn a_snapshot_survives_its_bytes() {
    let sealed = Desk::new().plan().snapshot.unwrap();
    let opened = Sealed::open(sealed.bytes(), Some(sealed.digest())).unwrap();
    assert_eq!(opened.snapshot(), sealed.snapshot());
}

#[test]
fn tools_carry_what_they_demand() {
    let snapshot = Desk::new().snapshot();
    let rule = snapshot.tools.get("case_tag").unwrap();
    assert_eq!(
        json!(rule),
        json!({"scope": "case:write", "effect": "Write", "idempotencyKey": "/idempotency_key", "approval": "Never",
            "timeoutMs": 10_000, "resultBytes": 65_536, "rate": {"tokens": 5, "perMs": 1_000, "burst": 5}})
    );
    assert_eq!(json!(snapshot.limits)["timeoutMs"], 60_000);
    assert_eq!(json!(snapshot.verify), json!({"intervalMs": 30_000, "graceMs": 300_000}));
    assert_eq!(json!(snapshot.stale), json!({"afterMs": 300_000, "action": "Report"}));
}

#[test]
fn a_rate_is_a_bucket_and_its_absence_is_none() {
    let rate = |limits: &str| {
        Desk::with(&format!("{{server: {{spec: {{limits: {limits}}}}}}}")).snapshot().limits.rate_per_principal
    };
    assert_eq!(rate("{rate: {perPrincipal: 20/s, burst: 40}}"), Rate { tokens: 20, per_ms: 1_000, burst: 40 });
    assert_eq!(rate("{rate: {perPrincipal: 5/m}}"), Rate { tokens: 5, per_ms: 60_000, burst: 1 });
    assert_eq!(rate("{}"), Rate { tokens: 1_000_000, per_ms: 1_000, burst: 1_000_000 });
}

#[test]
fn the_service_names_and_the_public_host_are_accepted_hosts() {
    let hosts = Desk::with(
        "{server: {spec: {access: {hosts: [Gateway.example], publicUrl: 'https://mcp.example.com:8443/x'}}}}",
    )
    .snapshot()
    .access
    .hosts;
    let expected = [
        "gateway.example",
        "mcp.example.com:8443",
        "support",
        "support.support",
        "support.support.svc",
        "support.support.svc.cluster.local",
    ];
    assert_eq!(hosts, expected.map(str::to_owned).into());
    let local = Desk::with("{mode: Local}").snapshot().access.hosts;
    assert_eq!(local, BTreeSet::new(), "a laptop has no Service; loopback is always accepted");
}

#[test]
fn service_accounts_are_accepted_only_where_enabled() {
    let names = |patch: &str| -> Vec<String> {
        Desk::with(patch).snapshot().access.issuers.into_iter().map(|issuer| issuer.name).collect()
    };
    assert_eq!(names("{}"), ["corp"]);
    let enabled = "{server: {spec: {access: {serviceAccounts: {enabled: true, tenants: [{namespace: agents, tenant: tenant-7}]}}}}}";
    assert_eq!(names(enabled), ["corp", "cluster.serviceaccounts"]);
    let issuer = Desk::with(enabled).snapshot().access.issuers.pop().unwrap();
    assert_eq!(issuer.issuer.as_str(), "https://kubernetes.default.svc.cluster.local");
    assert_eq!(json!(issuer.service_accounts), json!({"tenants": {"agents": "tenant-7"}}));
}

#[test]
fn an_issuer_without_keys_can_authenticate_nobody() {
    let issuers = Desk::with("{unresolved: {corp: Unreachable}}").snapshot().access.issuers;
    assert_eq!(json!(issuers)[0]["jwks"], json!({"keys": []}));
    assert_eq!(json!(issuers)[0]["claims"]["tenant"], "tenant_id");
}

#[test]
fn the_upstream_of_a_pod() {
    let upstream = |patch: &str| Desk::with(patch).snapshot().upstream;
    let socket = Upstream::Socket { path: "/run/cotter/shim.sock".to_owned(), sessions: Sessions::PerSession };
    assert_eq!(upstream("{}"), socket);
    let http = upstream("{server: {spec: {upstream: {container: {stdio: null, http: {port: 8000, path: /x}}}}}}");
    assert_eq!(http, Upstream::Http { url: "http://127.0.0.1:8000/x".to_owned(), credentials: None, ca_file: None });
    let remote = "{server: {spec: {upstream: {container: null, remote: {url: 'https://a.example/mcp', credentials: {secretRef: {name: s}}, tls: {caSecretRef: {name: c}}}}}}}";
    assert_eq!(
        json!(upstream(remote)),
        json!({"http": {"url": "https://a.example/mcp", "ca_file": "/etc/cotter/upstream/ca.crt",
            "credentials": {"file": "/etc/cotter/upstream/token", "header": "Authorization", "prefix": "Bearer "}}})
    );
}

#[test]
fn a_pin_that_cannot_be_used_approves_nothing_even_where_it_would_let_drift_pass() {
    let lax = "{spec: {onDrift: {Added: Report, Text: Report}}}";
    let pin = |patch: &str| Desk::with(&format!("{{pins: {{support: {patch}}}}}")).snapshot().pin.unwrap();
    assert!(pin(lax).tools.values().all(|tool| !tool.mismatched));
    let broken = "{spec: {tools: [{name: case_tag, fingerprint: nonsense}, {name: policy_lookup, fingerprint: auto, definition: {name: case_tag}}]}}";
    let broken = pin(broken);
    assert_eq!(broken.tools.len(), 2, "an entry that cannot be used is kept, so that the tool is not merely Added");
    assert!(broken.tools.values().all(|tool| tool.mismatched && tool.definition.is_none()));
}
