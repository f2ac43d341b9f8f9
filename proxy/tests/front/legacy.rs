//! The legacy era: handshake, sessions, and to whom they belong.

use cotter_core::reason::DenyReason;
use http::Method;
use serde_json::json;

use crate::{
    issuer::{ISSUER, claims},
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

/// RFC 8693: two actors for one subject are two principals, and one is the same with every token that it brings.
#[tokio::test]
async fn who_acts_for_somebody_has_sessions_of_its_own() {
    let acting = |names: &[(&str, &str)]| {
        let grants = names.iter().map(|(name, delegate)| {
            json!({
                "name": name, "delegator": {"subject": {"issuer": ISSUER, "subject": "alice"}},
                "delegate": {"subject": {"issuer": ISSUER, "subject": delegate}},
                "scopes": ["policy:read"], "effects": ["Read"], "tools": [["*"]], "tenants": ["tenant-7"],
                "expiresAt": "2099-01-01T00:00:00Z",
            })
        });
        json!(grants.collect::<Vec<_>>())
    };
    let slow = json!({"tokens": 1, "perMs": 60000, "burst": 6});
    let rig = Rig::with(|snapshot| {
        snapshot["grants"] = acting(&[("one", "bot-1"), ("two", "bot-2")]);
        snapshot["limits"]["ratePerPrincipal"] = slow;
    })
    .await;
    let token = |actor: &serde_json::Value, id: &str| {
        let mut claims = claims("policy:read");
        (claims["act"], claims["jti"]) = (actor.clone(), json!(id));
        rig.issuer.sign(&claims)
    };
    let (one, two) = (json!({"sub": "bot-1"}), json!({"sub": "bot-2", "act": {"sub": "bot-1"}}));
    let session = rig.session(&token(&one, "a")).await;
    let list = rig.legacy(&token(&one, "b"), &session, "tools/list", json!({})).await;
    assert_eq!(list.json()["result"]["tools"][0]["name"], "policy_lookup", "{list:?}");
    let foreign = rig.legacy(&token(&two, "c"), &session, "tools/list", json!({})).await;
    let unknown = rig.legacy(&token(&two, "d"), "00000000000000000000000000000000", "tools/list", json!({})).await;
    assert_eq!((foreign.status, foreign.face()), (404, unknown.face()));
    // In the modern era each has a conversation of its own.
    let before = rig.desk.state.lock().unwrap().sessions;
    for (actor, id) in [(&one, "a"), (&one, "b"), (&two, "c"), (&two, "d")] {
        assert_eq!(rig.call(&token(actor, id), "policy_lookup").await.status, 200, "{actor}");
    }
    assert_eq!(rig.desk.state.lock().unwrap().sessions - before, 2);
    // And a rate: four of six are used, and the one's are not the other's.
    for (status, actor) in [(200, &one), (200, &one), (429, &one), (200, &two)] {
        assert_eq!(rig.modern(&token(actor, "e"), "tools/list", json!({})).await.status, status, "{actor}");
    }
}

#[tokio::test]
async fn sessions_have_a_conversation_each() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let (one, two) = (rig.session(&token).await, rig.session(&token).await);
    let before = rig.desk.state.lock().unwrap().sessions;
    for session in [&one, &two, &one, &two] {
        let told = rig
            .legacy(&token, session, "tools/call", json!({"name": "policy_lookup", "arguments": {"topic": "refund"}}))
            .await;
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
