//! The legacy era: handshake, sessions, and to whom they belong.

use cotter_core::reason::DenyReason;
use http::Method;
use serde_json::json;

use crate::{
    issuer::claims,
    rig::{LEGACY, Rig, initialize, request},
};

#[tokio::test]
async fn a_whole_session() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let told = rig.post(&token, &[], &initialize(LEGACY)).await;
    assert_eq!(
        told.json(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {
            "protocolVersion": LEGACY, "capabilities": {"tools": {}},
            "serverInfo": {"name": "support-contracts", "version": "1.0.0"},
        }})
    );
    let session = told.header("mcp-session-id").unwrap();
    assert!(session.len() == 32 && !session.contains("desk"), "{session}");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let accepted = rig.post(&token, &[("mcp-session-id", session)], &note).await;
    assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
    assert_eq!(rig.legacy(&token, session, "ping", json!({})).await.json()["result"], json!({}));
    let list = rig.legacy(&token, session, "tools/list", json!({})).await;
    assert!(list.body.contains(crate::desk::LOOKUP), "the object is the verified one, byte for byte: {list:?}");
    assert_eq!(list.json()["result"].as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    let call = rig
        .legacy(&token, session, "tools/call", json!({"name": "policy_lookup", "arguments": {"topic": "refund"}}))
        .await;
    assert!(call.json()["result"]["content"].is_array(), "{call:?}");
    assert_eq!(rig.desk.calls()[0]["params"], json!({"name": "policy_lookup", "arguments": {"topic": "refund"}}));
    let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
    assert_eq!(rig.post(&token, &[("mcp-session-id", session)], &answer).await.status, 202);
    let bearer = format!("Bearer {token}");
    let end = [("authorization", bearer.as_str()), ("mcp-session-id", session)];
    assert_eq!(rig.send(Method::DELETE, "/mcp", &end, "").await.status, 200);
    assert_eq!(rig.legacy(&token, session, "ping", json!({})).await.status, 404);
    assert_eq!(rig.send(Method::DELETE, "/mcp", &end, "").await.status, 404);
    assert_eq!(rig.send(Method::GET, "/mcp", &end, "").await.status, 405);
}

/// A2: never an echo, never a guess.
#[tokio::test]
async fn a_revision_is_negotiated_or_refused() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    for (asked, agreed) in
        [("2025-06-18", "2025-06-18"), ("2024-11-05", LEGACY), ("2099-01-01", LEGACY), ("2026-07-28", LEGACY)]
    {
        let told = rig.post(&token, &[], &initialize(asked)).await;
        assert_eq!(told.json()["result"]["protocolVersion"], agreed, "{asked}");
    }
    for bad in [json!({}), json!({"protocolVersion": 1})] {
        let told = rig.post(&token, &[], &request("initialize", bad)).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (200, &json!(-32602)));
    }
    let session = rig.session(&token).await;
    let told = rig
        .post(
            &token,
            &[("mcp-session-id", &session), ("mcp-protocol-version", "2025-03-26")],
            &request("ping", json!({})),
        )
        .await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(-32022)));
    assert_eq!(told.json()["error"]["data"]["requested"], "2025-03-26");
    rig.enforce(|snapshot| snapshot["protocol"]["revisions"] = json!(["2026-07-28"])).await;
    let told = rig.post(&token, &[], &initialize(LEGACY)).await;
    assert_eq!(told.json()["error"]["data"], json!({"supported": ["2026-07-28"], "requested": LEGACY}));
    let told = rig.post(&token, &[("mcp-session-id", &session)], &request("ping", json!({}))).await;
    assert_eq!(rig.record(&told).await.reasons[0].code, DenyReason::UnsupportedRevision);
}

/// A session is no authentication, and somebody else's does not exist.
#[tokio::test]
async fn a_foreign_session_is_an_unknown_one() {
    let mut rig = Rig::start().await;
    let alice = rig.issuer.token("policy:read");
    let session = rig.session(&alice).await;
    let bob = {
        let mut claims = claims("policy:read");
        claims["sub"] = json!("bob");
        rig.issuer.sign(&claims)
    };
    let foreign = rig.legacy(&bob, &session, "tools/list", json!({})).await;
    let unknown = rig.legacy(&bob, "00000000000000000000000000000000", "tools/list", json!({})).await;
    assert_eq!((foreign.status, foreign.face()), (404, unknown.face()));
    let detail = rig.record(&foreign).await.reasons[0].detail.clone();
    assert_eq!(detail.as_deref(), Some("the session belongs to another principal"));
    let nobody = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", LEGACY)];
    assert_eq!(rig.post_text(None, &nobody, &request("ping", json!({})).to_string()).await.status, 401);
    let bearer = format!("Bearer {bob}");
    let end = [("authorization", bearer.as_str()), ("mcp-session-id", session.as_str())];
    assert_eq!(rig.send(Method::DELETE, "/mcp", &end, "").await.status, 404);
    // Refreshed tokens are other bytes of the same principal, and what they say is what counts.
    let refreshed = {
        let mut claims = claims("case:write");
        claims["jti"] = json!("second");
        rig.issuer.sign(&claims)
    };
    let list = rig.legacy(&refreshed, &session, "tools/list", json!({})).await;
    assert_eq!(list.json()["result"]["tools"][0]["name"], "case_tag", "{list:?}");
}

#[tokio::test]
async fn sessions_have_a_conversation_each() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let (one, two) = (rig.session(&token).await, rig.session(&token).await);
    let before = rig.desk.state.lock().unwrap().sessions;
    for session in [&one, &two, &one, &two] {
        let told = rig.legacy(&token, session, "tools/call", json!({"name": "policy_lookup"})).await;
        assert_eq!(told.status, 200);
    }
    assert_eq!(rig.desk.state.lock().unwrap().sessions - before, 2);
}

#[tokio::test]
async fn a_session_header_may_not_be_repeated() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let session = rig.session(&token).await;
    let twice = [("mcp-session-id", session.as_str()), ("mcp-session-id", session.as_str())];
    let told = rig.post(&token, &twice, &request("ping", json!({}))).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(-32020)));
}
