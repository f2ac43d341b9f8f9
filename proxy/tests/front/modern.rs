//! The modern era: what a request states, twice, and what it is told.

use http::Method;
use serde_json::{Value, json};

use crate::rig::{LEGACY, MODERN, Rig, Told, request, stated};

async fn send(rig: &Rig, headers: &[(&str, &str)], body: &Value) -> Told {
    rig.post(&rig.issuer.token("policy:read case:write"), headers, body).await
}

#[tokio::test]
async fn discover_list_and_call() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let told = rig.modern(&token, "server/discover", json!({})).await;
    assert_eq!(
        told.json()["result"],
        json!({
            "resultType": "complete", "supportedVersions": ["2025-06-18", LEGACY, MODERN], "capabilities": {"tools": {}},
            "ttlMs": 60000, "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "support-contracts", "version": "1.0.0"}},
        })
    );
    let told = rig.modern(&token, "tools/list", json!({})).await;
    let result = &told.json()["result"];
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("private")));
    assert!(result["ttlMs"].as_u64().unwrap() <= 5000);
    assert!(told.body.contains(crate::desk::LOOKUP) && told.header("mcp-session-id").is_none());
    let told = rig.call(&token, "policy_lookup").await;
    assert_eq!(told.json()["result"]["resultType"], "complete");
    let before = rig.desk.state.lock().unwrap().sessions;
    rig.call(&token, "policy_lookup").await;
    assert_eq!(rig.desk.state.lock().unwrap().sessions, before, "one principal, one conversation");
}

#[tokio::test]
async fn headers_have_to_say_what_the_body_says() {
    let rig = Rig::start().await;
    let call = request("tools/call", stated(json!({"name": "policy_lookup", "arguments": {"topic": "refund"}})));
    let (version, method, name) =
        (("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "policy_lookup"));
    assert_eq!(send(&rig, &[version, method, name], &call).await.status, 200);
    let encoded = ("mcp-name", "=?base64?cG9saWN5X2xvb2t1cA==?=");
    assert_eq!(send(&rig, &[version, method, encoded], &call).await.status, 200);
    for (what, headers) in [
        ("no version", vec![method, name]),
        ("another version", vec![("mcp-protocol-version", LEGACY), method, name]),
        ("version twice", vec![version, version, method, name]),
        ("no method", vec![version, name]),
        ("another method", vec![version, ("mcp-method", "tools/list"), name]),
        ("method in capitals", vec![version, ("mcp-method", "TOOLS/CALL"), name]),
        ("method twice", vec![version, method, method, name]),
        ("no name", vec![version, method]),
        ("another name", vec![version, method, ("mcp-name", "case_tag")]),
        ("name twice", vec![version, method, name, name]),
        ("base64 of another name", vec![version, method, ("mcp-name", "=?base64?Y2FzZV90YWc=?=")]),
        ("base64 of nothing", vec![version, method, ("mcp-name", "=?base64?*?=")]),
    ] {
        let told = send(&rig, &headers, &call).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(-32020)), "{what}: {told:?}");
    }
    assert_eq!(rig.desk.calls().len(), 2);
    // A method that has no name does not look at one.
    let list = request("tools/list", stated(json!({})));
    let headers = [version, ("mcp-method", "tools/list"), ("mcp-name", "anything")];
    assert_eq!(send(&rig, &headers, &list).await.status, 200);
}

#[tokio::test]
async fn a_request_states_its_revision_and_what_the_client_can_do() {
    let rig = Rig::start().await;
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    let with = |meta: Value| request("tools/list", json!({"_meta": meta}));
    let (version, capabilities) =
        ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities");
    for (what, meta, code) in [
        ("nothing", json!({}), -32602),
        ("no revision", json!({capabilities: {}}), -32602),
        ("a revision that is a number", json!({version: 1, capabilities: {}}), -32602),
        ("no capabilities", json!({version: MODERN}), -32602),
        ("capabilities as a list", json!({version: MODERN, capabilities: []}), -32602),
        ("no object", json!([]), -32602),
        ("the members as an array", json!([MODERN, {}]), -32602),
        ("a revision of the other era", json!({version: LEGACY, capabilities: {}}), -32022),
        ("a revision that nobody knows", json!({version: "2099-01-01", capabilities: {}}), -32022),
    ] {
        let told = send(&rig, &headers, &with(meta)).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(code)), "{what}: {told:?}");
        if code == -32022 {
            assert_eq!(told.json()["error"]["data"]["supported"], json!(["2025-06-18", LEGACY, MODERN]), "{what}");
        }
    }
    rig.enforce(|snapshot| snapshot["protocol"]["revisions"] = json!([LEGACY])).await;
    let told = send(&rig, &headers, &with(json!({version: MODERN, capabilities: {}}))).await;
    assert_eq!(told.json()["error"]["data"], json!({"supported": [LEGACY], "requested": MODERN}));
}

#[tokio::test]
async fn what_the_modern_era_does_not_have_is_not_there() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    for method in ["initialize", "ping", "resources/read", "subscriptions/listen", "logging/setLevel"] {
        let told = rig.modern(&token, method, json!({})).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (404, &json!(-32601)), "{method}");
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": stated(json!({}))});
    assert_eq!(rig.post(&token, &[("mcp-protocol-version", MODERN)], &note).await.status, 202);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert_eq!(rig.post(&token, &[("mcp-protocol-version", MODERN)], &answer).await.status, 400);
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("mcp-protocol-version", MODERN), ("mcp-session-id", "x")];
    assert_eq!(rig.send(Method::DELETE, "/mcp", &headers, "").await.status, 405);
    let told = rig.modern(&token, "tools/list", json!({"cursor": ""})).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(-32602)));
}

/// A client that knows both eras learns which one is spoken here.
#[tokio::test]
async fn where_only_the_modern_era_is_spoken_a_legacy_request_is_told_so() {
    let rig = Rig::with(|snapshot| snapshot["protocol"]["revisions"] = json!([MODERN])).await;
    let token = rig.issuer.token("policy:read");
    for headers in [vec![], vec![("mcp-session-id", "x")], vec![("mcp-protocol-version", LEGACY)]] {
        let told = rig.post(&token, &headers, &request("tools/list", json!({}))).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(-32022)), "{headers:?}");
        assert_eq!(told.json()["error"]["data"]["supported"], json!([MODERN]));
    }
    let bearer = format!("Bearer {token}");
    assert_eq!(rig.send(Method::DELETE, "/mcp", &[("authorization", &bearer)], "").await.status, 405);
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
}

#[tokio::test]
async fn parameters_have_to_have_their_shape() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    for params in [
        json!({}),
        json!({"name": 1}),
        json!({"name": "policy_lookup", "arguments": []}),
        json!({"name": "no_such", "arguments": null}),
    ] {
        let name = params["name"].as_str().unwrap_or("x").to_owned();
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", &name)];
        let told = rig.post(&token, &headers, &request("tools/call", stated(params.clone()))).await;
        assert_eq!((told.status, &told.json()["error"]["message"]), (400, &json!("invalid params")), "{params}");
    }
    assert!(rig.desk.calls().is_empty());
}

#[tokio::test]
async fn results_that_are_not_complete_are_not_passed_on() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    for result in [r#"{"resultType":"input_required","inputRequests":{}}"#, r#"{"resultType":"task"}"#] {
        rig.desk.state.lock().unwrap().answer = Some(("result", result.to_owned()));
        let told = rig.call(&token, "policy_lookup").await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (502, &json!(50201)), "{result}");
    }
}
