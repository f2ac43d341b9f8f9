//! Callers that act under delegations only.

use serde_json::{Value, json};

use crate::{
    issuer::{ISSUER, claims},
    rig::{LEGACY, Rig, initialize},
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

/// Of whatever there is and is not, in both eras: who has no delegation learns nothing from the difference.
#[tokio::test]
async fn without_an_active_delegation_there_is_no_operation_at_all() {
    let mut rig = Rig::with(|snapshot| snapshot["grants"] = json!([grant("reader", &json!(["policy:read"]))])).await;
    let token = rig.issuer.token("policy:read");
    let session = rig.session(&token).await;
    let bearer = format!("Bearer {token}");
    let end = [("authorization", bearer.as_str()), ("mcp-session-id", session.as_str())];
    let note = |method: &str| json!({"jsonrpc": "2.0", "method": method});
    let unstated = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let tags = [("mcp-session-id", session.as_str())];
    let both = async |rig: &Rig| {
        vec![
            rig.post(&token, &[], &initialize(LEGACY)).await,
            rig.legacy(&token, &session, "ping", json!({})).await,
            rig.legacy(&token, &session, "tools/list", json!({})).await,
            rig.legacy(&token, &session, "nothing/here", json!({})).await,
            rig.legacy(&token, "unknown", "ping", json!({})).await,
            rig.post(&token, &[("mcp-protocol-version", "1999-01-01")], &unstated).await,
            rig.modern(&token, "server/discover", json!({})).await,
            rig.modern(&token, "tools/list", json!({"cursor": "x"})).await,
            rig.modern(&token, "nothing/here", json!({})).await,
        ]
    };
    let allowed: Vec<u16> = both(&rig).await.iter().map(|told| told.status).collect();
    assert_eq!(allowed, [200, 200, 200, 200, 404, 400, 200, 400, 404], "with a delegation each is told its own");
    assert_eq!(rig.post(&token, &tags, &note("notifications/initialized")).await.status, 202);

    let mut suspended = grant("reader", &json!(["policy:read"]));
    suspended["inactive"] = json!("Suspended");
    rig.enforce(|snapshot| snapshot["grants"] = json!([suspended])).await;
    let refused = both(&rig).await;
    assert!(refused.iter().all(|told| told.face() == refused[0].face()), "{refused:?}");
    assert_eq!((refused[0].status, &refused[0].json()["error"]["code"]), (403, &json!(40303)));
    for told in [
        rig.post(&token, &tags, &note("notifications/initialized")).await,
        rig.send(http::Method::DELETE, "/mcp", &end, "").await,
    ] {
        assert_eq!((told.status, &told.json()["error"]["code"]), (403, &json!(40303)));
    }
    let told = rig.call(&token, "policy_lookup").await;
    let record = rig.record(&told).await;
    assert_eq!((record.method.as_deref(), record.tool.as_deref()), (Some("tools/call"), Some("policy_lookup")));
    assert_eq!(rig.post_text(Some(&token), &[], "not json").await.status, 400, "what is no message is no operation");

    rig.enforce(|snapshot| snapshot["grants"] = json!([grant("reader", &json!(["policy:read"]))])).await;
    assert_eq!(rig.send(http::Method::DELETE, "/mcp", &end, "").await.status, 200, "the session was kept");
}

/// Who has no delegation is not told how things stand with the server.
#[tokio::test]
async fn no_delegation_comes_before_not_ready() {
    let mut suspended = grant("reader", &json!(["policy:read"]));
    suspended["inactive"] = json!("Suspended");
    let rig = Rig::unread(|snapshot| {
        snapshot["upstream"] = json!({"http": {"url": "http://127.0.0.1:9/mcp"}});
        snapshot["grants"] = json!([suspended]);
    })
    .await;
    let told = rig.modern(&rig.issuer.token("policy:read"), "tools/list", json!({})).await;
    assert_eq!(told.json()["error"]["data"]["reason"], "NoDelegation");
    let mut bob = claims("policy:read");
    bob["sub"] = json!("bob");
    let told = rig.modern(&rig.issuer.sign(&bob), "tools/list", json!({})).await;
    assert_eq!(told.json()["error"]["data"]["reason"], "NotReady");
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
