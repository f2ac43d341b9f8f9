//! Policy modules: those of the server, and those of the whole cluster.

use cotter_core::{decision::Era, decision::Kind, principal::Principal, snapshot::Snapshot};
use cotter_policies::{Ask, PinFacts, Policy};
use serde_json::json;

use crate::desk::{Desk, message, now, said};

const CLOSED: &str = "clusterPolicies: {org: {hours.rego: \"package cotter.user.org\\n\\ndeny contains \\\"closed\\\" if input.tool.name == \\\"case_tag\\\"\\n\"}}";
const OWN: &str = "server: {spec: {policies: [{configMapRef: {name: mine}}]}}\npolicies: {mine: {mine.rego: \"package cotter.user.mine\\n\"}}";

fn desk(parts: &[&str]) -> Desk {
    parts.iter().fold(Desk::new(), |desk, part| desk.and(&crate::desk::yaml(part)))
}

fn policies_ready(desk: &Desk) -> (String, String, bool) {
    let plan = desk.plan();
    let conditions = &plan.server_status.conditions;
    (said(conditions, "PoliciesReady"), message(conditions, "PoliciesReady"), plan.snapshot.is_some())
}

/// Whether a caller with every scope may call the tool.
fn may_call(snapshot: &Snapshot, tool: &str) -> bool {
    let principal: Principal = serde_json::from_value(json!({
        "issuer": "https://login.example.com", "subject": "alice", "tenant": "tenant-7",
        "scopes": ["policy:read", "case:write"], "expiresAt": "2027-01-01T00:00:00Z",
    }))
    .unwrap();
    let tool = tool.parse().unwrap();
    let policy = Policy::prepare(snapshot).unwrap();
    let verdict = policy.decide(&Ask {
        principal: &principal,
        authority: None,
        era: Era::Modern,
        method: "tools/call",
        kind: Kind::Call,
        tool: &tool,
        pin: PinFacts::MATCHED,
        annotations: None,
        arguments: None,
        now: now(),
    });
    verdict.is_allowed()
}

#[test]
fn a_module_of_the_cluster_holds_for_a_server_that_names_none() {
    let (with, without) = (desk(&[CLOSED]).snapshot(), desk(&[]).snapshot());
    assert_eq!(with.policies.keys().collect::<Vec<_>>(), ["cluster/org/hours.rego"]);
    assert!(!may_call(&with, "case_tag") && may_call(&with, "policy_lookup"));
    assert!(may_call(&without, "case_tag") && without.policies.is_empty());
}

#[test]
fn status_says_how_many_modules_there_are_and_whose() {
    for (parts, told) in [
        (vec![], "no module of its own"),
        (vec![OWN], "1 module"),
        (vec![CLOSED], "1 module, cluster-wide"),
        (vec![CLOSED, OWN], "2 modules, 1 of them cluster-wide"),
    ] {
        assert_eq!(policies_ready(&desk(&parts)), ("True/PoliciesReady".to_owned(), told.to_owned(), true));
    }
}

#[test]
fn no_module_of_a_server_takes_the_place_of_one_of_the_cluster() {
    let same = "server: {spec: {policies: [{configMapRef: {name: cluster}}, {configMapRef: {name: org}}]}}\npolicies: {cluster: {hours.rego: \"package cotter.user.a\\n\"}, org: {hours.rego: \"package cotter.user.b\\n\"}}";
    let snapshot = desk(&[CLOSED, same]).snapshot();
    let names: Vec<&String> = snapshot.policies.keys().collect();
    assert_eq!(names, ["cluster/hours.rego", "cluster/org/hours.rego", "org/hours.rego"]);
    assert!(!may_call(&snapshot, "case_tag"));
    for slash in [
        "server: {spec: {policies: [{configMapRef: {name: cluster}}]}}\npolicies: {cluster: {org/hours.rego: \"package cotter.user.a\\n\"}}",
        "server: {spec: {policies: [{configMapRef: {name: cluster/org}}]}}\npolicies: {cluster/org: {hours.rego: \"package cotter.user.a\\n\"}}",
    ] {
        let (said, message, has_snapshot) = policies_ready(&desk(&[CLOSED, slash]));
        assert!(said == "False/PolicyInvalid" && !has_snapshot && message.contains("slash"), "{said}: {message}");
    }
}

/// What a server adds to a package is in it: an exemption there would switch a rule of the cluster off.
#[test]
fn a_package_of_the_cluster_is_closed_to_servers() {
    let guarded = "clusterPolicies: {org: {org.rego: \"package cotter.user.org\\n\\nexempt contains \\\"policy_lookup\\\"\\n\\ndeny contains \\\"closed\\\" if not input.tool.name in exempt\\n\"}}";
    let in_package = |package: &str| {
        format!(
            "server: {{spec: {{policies: [{{configMapRef: {{name: mine}}}}]}}}}\npolicies: {{mine: {{mine.rego: \"package cotter.user.{package}\\n\\nexempt contains \\\"case_tag\\\"\\n\"}}}}"
        )
    };
    for package in ["org", "org.exempt", "org.more"] {
        let (said, message, has_snapshot) = policies_ready(&desk(&[guarded, &in_package(package)]));
        assert!(said == "False/PolicyInvalid" && !has_snapshot, "{package}: {said}");
        let place =
            "mine/mine.rego:1:1: the package cotter.user.org belongs to the cluster-wide module cluster/org/org.rego";
        assert!(message.contains(place), "{package}: {message}");
    }
    for package in ["mine", "organisation", "mine.org"] {
        let desk = desk(&[guarded, &in_package(package)]);
        assert_eq!(policies_ready(&desk).1, "2 modules, 1 of them cluster-wide", "{package}");
        assert!(!may_call(&desk.snapshot(), "case_tag"), "{package}");
    }
}

#[test]
fn a_bad_module_is_named_and_no_half_of_the_modules_is_enforced() {
    let bad_wide = "clusterPolicies: {org: {hours.rego: \"package cotter.user.org\\n\\ndeny contains \\\"x\\\" if http.send({})\\n\"}}";
    let (said, message, has_snapshot) = policies_ready(&desk(&[bad_wide, OWN]));
    assert_eq!((said.as_str(), has_snapshot), ("False/PolicyInvalid", false));
    assert!(message.contains("cluster/org/hours.rego:3:22"), "{message}");
    let bad_own = "policies: {mine: {mine.rego: \"package cotter.user.mine\\n\\ndeny contains if {\\n\"}}";
    let (said, message, has_snapshot) = policies_ready(&desk(&[CLOSED, OWN, bad_own]));
    assert_eq!((said.as_str(), has_snapshot), ("False/PolicyInvalid", false));
    assert!(message.contains("mine/mine.rego:3:") && !message.contains("cluster/"), "{message}");
    let empty = "clusterPolicies: {org: {readme.txt: x}}";
    let (said, message, has_snapshot) = policies_ready(&desk(&[empty]));
    assert_eq!((said.as_str(), has_snapshot), ("False/PolicyNotFound", false));
    assert!(message.contains("the cluster-wide ConfigMap org has no key"), "{message}");
}

/// The bound is for both together, and what is one too many is the server's own.
#[test]
fn a_server_has_at_most_thirty_two_modules_with_those_of_the_cluster() {
    let with = |own: usize| {
        let mut patch = json!({"policies": {"mine": {}}});
        for number in 0..own {
            patch["policies"]["mine"][format!("m{number:02}.rego")] = json!(format!("package cotter.user.m{number}\n"));
        }
        policies_ready(&desk(&[CLOSED, OWN, "policies: {mine: null}"]).and(&patch))
    };
    assert_eq!(with(31).1, "32 modules, 1 of them cluster-wide");
    let (said, message, has_snapshot) = with(32);
    assert_eq!((said.as_str(), has_snapshot), ("False/PolicyInvalid", false));
    assert!(
        message.contains("mine/m31.rego:1:1: there are 33 modules, 1 of them cluster-wide, and at most 32 are taken"),
        "{message}"
    );
}
