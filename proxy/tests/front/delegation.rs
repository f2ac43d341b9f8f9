//! Callers that act under delegations only.

use serde_json::{Value, json};

use crate::{
    issuer::{ISSUER, claims},
    rig::Rig,
};

fn grant(name: &str, scopes: &Value) -> Value {
    json!({
        "name": name, "delegate": {"subject": {"issuer": ISSUER, "subject": "alice"}},
        "scopes": scopes, "effects": ["Read", "Write"], "tools": [["*"]], "tenants": ["tenant-7"],
        "expiresAt": "2099-01-01T00:00:00Z",
    })
}

#[tokio::test]
async fn a_delegate_acts_under_its_delegations_only() {
    let rig = Rig::with(|snapshot| snapshot["grants"] = json!([grant("reader", &json!(["policy:read"]))])).await;
    let token = rig.issuer.token("policy:read case:write");
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
    assert_eq!(rig.call(&token, "case_tag").await.face(), rig.call(&token, "no_such_tool").await.face());
    assert!(rig.call(&token, "policy_lookup").await.json()["result"].is_object());
    rig.sidecar.refresh();
    rig.until(|report| report.uses.get("reader").is_some_and(|uses| (uses.allowed, uses.denied) == (1, 2))).await;
    let other = {
        let mut claims = claims("policy:read case:write");
        claims["sub"] = json!("bob");
        rig.issuer.sign(&claims)
    };
    assert_eq!(rig.listed(&other).await.len(), 2, "somebody else is not bound");
}

#[tokio::test]
async fn without_an_active_delegation_every_operation_is_told_the_same() {
    let mut suspended = grant("reader", &json!(["policy:read"]));
    suspended["inactive"] = json!("Suspended");
    let rig = Rig::with(|snapshot| snapshot["grants"] = json!([suspended])).await;
    let token = rig.issuer.token("policy:read case:write");
    let list = rig.modern(&token, "tools/list", json!({})).await;
    assert_eq!((list.status, &list.json()["error"]["code"]), (403, &json!(40303)));
    let faces: Vec<_> = [rig.call(&token, "policy_lookup").await, rig.call(&token, "no_such_tool").await, list]
        .iter()
        .map(crate::rig::Told::face)
        .collect();
    assert!(faces.windows(2).all(|pair| pair[0] == pair[1]), "{faces:?}");
    rig.enforce(|snapshot| snapshot["grants"] = json!([grant("reader", &json!(["policy:read"]))])).await;
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
}

/// The token stays the same; what it amounts to ends with the delegation.
#[tokio::test]
async fn a_delegation_ends_on_time_for_a_token_that_was_seen() {
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1500);
    let mut short = grant("reader", &json!(["policy:read"]));
    short["expiresAt"] = json!(soon);
    let rig = Rig::with(|snapshot| snapshot["grants"] = json!([short])).await;
    let token = rig.issuer.token("policy:read");
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
    tokio::time::sleep(std::time::Duration::from_millis(1600)).await;
    assert_eq!(rig.modern(&token, "tools/list", json!({})).await.status, 403);
}
