//! Budgets: what is permitted is charged, to the delegation and to those above it, and what is used up permits nothing.

use cotter_core::reason::DenyReason;
use serde_json::{Value, json};

use crate::{
    issuer::{ISSUER, claims},
    rig::{Rig, Told},
};

const BOTH: &str = "policy:read case:write";

fn grant(name: &str, subject: &str, budgets: Value) -> Value {
    json!({
        "name": name, "delegate": {"subject": {"issuer": ISSUER, "subject": subject}},
        "scopes": ["policy:read", "case:write"], "effects": ["Read", "Write"], "tools": [["*"]], "tenants": ["tenant-7"],
        "expiresAt": "2099-01-01T00:00:00Z", "budgets": budgets,
    })
}

async fn rig(grants: Value) -> Rig {
    Rig::with(|snapshot| snapshot["grants"] = grants).await
}

fn token(rig: &Rig, subject: &str) -> String {
    let mut claims = claims(BOTH);
    claims["sub"] = json!(subject);
    rig.issuer.sign(&claims)
}

fn is_allowed(told: &Told) -> bool {
    told.json()["result"].is_object()
}

fn is_exhausted(told: &Told) -> bool {
    told.status == 429
        && told.json()["error"]["code"] == 42902
        && told.json()["error"]["data"]["reason"] == "BudgetExhausted"
}

#[tokio::test]
async fn calls_are_charged_until_they_are_used_up_and_the_list_stays() {
    let mut rig = rig(json!([grant("reader", "alice", json!([{"name": "reader", "calls": 2}]))])).await;
    let token = token(&rig, "alice");
    for _ in 0..2 {
        assert_eq!(rig.listed(&token).await.len(), 2, "a list is not charged");
        let told = rig.call(&token, "policy_lookup").await;
        assert!(is_allowed(&told), "{told:?}");
        assert_eq!(rig.record(&told).await.delegation.as_deref(), Some("reader"));
    }
    let told = rig.call(&token, "policy_lookup").await;
    assert!(is_exhausted(&told), "{told:?}");
    assert_eq!(told.header("retry-after"), None, "waiting does not help");
    let record = rig.record(&told).await;
    assert_eq!((record.reasons[0].code, record.delegation.as_deref()), (DenyReason::BudgetExhausted, Some("reader")));
    assert_eq!(record.reasons[0].detail.as_deref(), Some("the 2 calls of reader are used up"));
    assert_eq!((rig.listed(&token).await.len(), rig.desk.calls().len()), (2, 2));
    let session = rig.session(&token).await;
    let legacy =
        rig.legacy(&token, &session, "tools/call", json!({"name": "policy_lookup", "arguments": {"topic": "x"}})).await;
    assert!(is_exhausted(&legacy), "in either era: {legacy:?}");
}

#[tokio::test]
async fn a_refused_call_is_not_charged() {
    let no = "package cotter.user.rules\n\ndeny contains \"no\" if input.args.topic == \"no\"\n";
    let rig = Rig::with(|snapshot| {
        snapshot["grants"] = json!([grant("reader", "alice", json!([{"name": "reader", "calls": 1}]))]);
        snapshot["policies"] = json!({"rules.rego": no});
        snapshot["tools"]["case_tag"]["rate"] = json!({"tokens": 0, "perMs": 1000, "burst": 1});
    })
    .await;
    let token = token(&rig, "alice");
    let denied = json!({"name": "policy_lookup", "arguments": {"topic": "no"}});
    assert_eq!(rig.modern(&token, "tools/call", denied).await.json()["error"]["data"]["reason"], "PolicyDenied");
    assert_eq!(rig.call(&token, "wipe_all").await.json()["error"]["message"], "Unknown tool");
    let tag = json!({"case_id": "1", "tag": "eligible", "idempotency_key": "k"});
    let told = rig.modern(&token, "tools/call", json!({"name": "case_tag", "arguments": tag})).await;
    assert_eq!(told.json()["error"]["data"]["reason"], "RateLimited");
    assert!(is_allowed(&rig.call(&token, "policy_lookup").await));
    assert!(is_exhausted(&rig.call(&token, "policy_lookup").await));
}

#[tokio::test]
async fn a_minute_is_a_bound_of_its_own_and_says_how_long_to_wait() {
    let rig = rig(json!([grant("reader", "alice", json!([{"name": "reader", "perMinute": 1}]))])).await;
    let token = token(&rig, "alice");
    assert!(is_allowed(&rig.call(&token, "policy_lookup").await));
    let told = rig.call(&token, "policy_lookup").await;
    assert!(is_exhausted(&told), "{told:?}");
    let wait: u64 = told.header("retry-after").unwrap().parse().unwrap();
    assert!((55..=61).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_sibling_uses_up_what_their_parent_has() {
    let child =
        |name: &str, subject| grant(name, subject, json!([{"name": name, "calls": 10}, {"name": "desk", "calls": 3}]));
    let rig = rig(json!([child("a", "alice"), child("b", "bob")])).await;
    let (alice, bob) = (token(&rig, "alice"), token(&rig, "bob"));
    assert!(is_allowed(&rig.call(&bob, "policy_lookup").await));
    for _ in 0..2 {
        assert!(is_allowed(&rig.call(&alice, "policy_lookup").await));
    }
    assert!(is_exhausted(&rig.call(&bob, "policy_lookup").await), "its own budget has 9 left, and its parent's none");
    let roomy =
        |name: &str, subject| grant(name, subject, json!([{"name": name, "calls": 10}, {"name": "desk", "calls": 20}]));
    rig.enforce(|snapshot| snapshot["grants"] = json!([roomy("a", "alice"), roomy("b", "bob")])).await;
    let more = async |token: &str| {
        let mut calls = 0;
        while is_allowed(&rig.call(token, "policy_lookup").await) {
            calls += 1;
        }
        calls
    };
    assert_eq!((more(&bob).await, more(&alice).await), (9, 8), "what was refused was charged to nobody");
}

#[tokio::test]
async fn of_several_delegations_the_first_with_something_left_is_used() {
    let mut rig = rig(json!([
        grant("a", "alice", json!([{"name": "a", "calls": 1}])),
        grant("b", "alice", json!([{"name": "b", "perMinute": 1}])),
    ]))
    .await;
    let token = token(&rig, "alice");
    for used in ["a", "b"] {
        let told = rig.call(&token, "policy_lookup").await;
        assert!(is_allowed(&told), "{used}: {told:?}");
        assert_eq!(rig.record(&told).await.delegation.as_deref(), Some(used));
    }
    let told = rig.call(&token, "policy_lookup").await;
    assert!(is_exhausted(&told) && told.header("retry-after").is_some(), "b comes back: {told:?}");
    let open = json!([grant("a", "alice", json!([{"name": "a", "calls": 1}])), grant("c", "alice", json!([]))]);
    rig.enforce(|snapshot| snapshot["grants"] = open).await;
    let told = rig.call(&token, "policy_lookup").await;
    assert_eq!(rig.record(&told).await.delegation.as_deref(), Some("c"), "one without a budget is never used up");
}

#[tokio::test]
async fn a_budget_that_is_edited_counts_at_once_and_goes_on_where_it_was() {
    let rig = rig(json!([grant("reader", "alice", json!([{"name": "reader", "uid": "u1", "calls": 1}]))])).await;
    let token = token(&rig, "alice");
    let edited = async |budgets: Value| {
        rig.enforce(|snapshot| snapshot["grants"] = json!([grant("reader", "alice", budgets)])).await;
        is_allowed(&rig.call(&token, "policy_lookup").await)
    };
    assert!(is_allowed(&rig.call(&token, "policy_lookup").await));
    assert!(is_exhausted(&rig.call(&token, "policy_lookup").await));
    assert!(edited(json!([{"name": "reader", "uid": "u1", "calls": 2}])).await, "raised");
    assert!(!edited(json!([{"name": "reader", "uid": "u1", "calls": 1}])).await, "lowered");
    assert!(edited(json!([])).await, "taken away");
    assert!(!edited(json!([{"name": "reader", "uid": "u1", "calls": 2}])).await, "back again, with its count");
    assert!(edited(json!([{"name": "reader", "uid": "u2", "calls": 1}])).await, "another delegation of the same name");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_at_once_never_have_more_than_there_is() {
    let budgets = |name: &str| json!([{"name": name, "calls": 1000}, {"name": "desk", "calls": 40}]);
    let rig = rig(json!([grant("a", "alice", budgets("a")), grant("b", "bob", budgets("b"))])).await;
    let tokens = [token(&rig, "alice"), token(&rig, "bob")];
    let caller = async |token: &String| {
        let mut allowed = 0;
        for _ in 0..4 {
            allowed += usize::from(is_allowed(&rig.call(token, "policy_lookup").await));
        }
        allowed
    };
    let callers = (0..32).map(|number| caller(&tokens[number % 2]));
    let allowed: usize = futures::future::join_all(callers).await.into_iter().sum();
    assert_eq!((allowed, rig.desk.calls().len()), (40, 40));
}
