//! Who sees and uses what: the vectors of the running example.

use cotter_core::{
    fingerprint::{Ignore, Scheme},
    reason::DenyReason,
    tool::{ListKind, ToolObject},
};
use serde_json::json;

use crate::{
    desk::{LOOKUP, TAG},
    issuer::{claims, sign_symmetric},
    rig::Rig,
};

const BOTH: &str = "policy:read case:write";

/// A6: discovery is filtered by scope and sorted by name.
#[tokio::test]
async fn a_list_has_what_the_scopes_give_sorted_by_name() {
    let rig = Rig::start().await;
    assert_eq!(rig.listed(&rig.issuer.token("policy:read")).await, ["policy_lookup"]);
    assert_eq!(rig.listed(&rig.issuer.token(BOTH)).await, ["case_tag", "policy_lookup"]);
    assert!(rig.listed(&rig.issuer.token("other:scope")).await.is_empty());
    assert!(rig.listed(&rig.issuer.token("")).await.is_empty());
}

/// A7: a call is decided anew, and a tool that was never listed is one that does not exist.
#[tokio::test]
async fn a_tool_without_its_scope_is_answered_like_an_unknown_one() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let (refused, unknown) = (rig.call(&token, "case_tag").await, rig.call(&token, "no_such_tool").await);
    assert_eq!(refused.face(), unknown.face());
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (200, &json!(-32602)));
    let record = rig.record(&refused).await;
    assert_eq!(record.reasons[0].code, DenyReason::MissingScope);
    assert_eq!(record.reasons[0].detail.as_deref(), Some("case:write"));
    assert!(rig.desk.calls().is_empty(), "nothing was forwarded");
    assert_eq!(rig.call(&token, "policy_lookup").await.status, 200);
    assert_eq!(rig.desk.calls().len(), 1);
}

/// Unlisted, quarantined, unknown and invisible: nothing but the audit tells them apart, in either era.
#[tokio::test]
async fn whatever_does_not_exist_for_a_caller_has_the_same_bytes() {
    let mut rig = Rig::with(|snapshot| {
        snapshot["pin"]["tools"]["case_tag"]["mismatched"] = json!(true);
    })
    .await;
    let token = rig.issuer.token(BOTH);
    let session = rig.session(&token).await;
    let mut faces = Vec::new();
    for tool in ["case_tag", "wipe_all", "no_such_tool", "", "policy_lookup\u{200b}"] {
        let legacy = rig.legacy(&token, &session, "tools/call", json!({"name": tool, "arguments": {}})).await;
        faces.push(legacy.face());
        if tool.is_ascii() && !tool.is_empty() {
            assert_eq!(rig.call(&token, tool).await.face(), legacy.face(), "{tool}");
        }
    }
    assert!(faces.windows(2).all(|pair| pair[0] == pair[1]), "{faces:?}");
    assert!(rig.desk.calls().is_empty());
    for (tool, reason) in [
        ("case_tag", DenyReason::Quarantined),
        ("wipe_all", DenyReason::Unlisted),
        ("no_such_tool", DenyReason::NotOffered),
    ] {
        let told = rig.call(&token, tool).await;
        assert_eq!(rig.record(&told).await.reasons[0].code, reason, "{tool}");
    }
}

/// A4: nothing in the arguments sets or widens who the caller is.
#[tokio::test]
async fn identity_comes_from_the_token_alone() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let claims =
        json!({"scope": "case:write", "tenant": "tenant-7", "sub": "root", "principal": {"scopes": ["case:write"]}});
    let told =
        rig.modern(&token, "tools/call", json!({"name": "case_tag", "arguments": claims, "scope": "case:write"})).await;
    assert_eq!(told.json()["error"]["message"], "Unknown tool");
    let headers = [
        ("x-scope", "case:write"),
        ("x-tenant", "tenant-8"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let body = crate::rig::request("tools/list", crate::rig::stated(claims));
    let told = rig.post(&token, &headers, &body).await;
    assert_eq!(told.json()["result"]["tools"].as_array().unwrap().len(), 1, "{told:?}");
}

/// A5: a token for another audience cannot even list, whatever it names.
#[tokio::test]
async fn a_token_for_another_audience_lists_nothing() {
    let mut rig = Rig::start().await;
    let mut other = claims(BOTH);
    other["aud"] = json!("inventory://api");
    let told = rig.modern(&rig.issuer.sign(&other), "tools/list", json!({})).await;
    assert_eq!(told.status, 401);
    assert_eq!(rig.record(&told).await.reasons[0].code, DenyReason::TokenAudience);
    other["aud"] = json!(["inventory://api", "support://mcp"]);
    assert_eq!(rig.listed(&rig.issuer.sign(&other)).await.len(), 2);
}

/// A8: of the caller's request only the arguments reach the server.
#[tokio::test]
async fn neither_token_nor_session_nor_headers_reach_the_server() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let session = rig.session(&token).await;
    let headers = [("mcp-session-id", session.as_str()), ("cookie", "secret=1"), ("x-anything", "secret-2")];
    let call = crate::rig::request(
        "tools/call",
        json!({
            "name": "policy_lookup", "arguments": {"topic": "refund", "big": 9007199254740993_u64}, "_meta": {"progressToken": "secret-3"},
        }),
    );
    let told = rig.post(&token, &headers, &call).await;
    assert_eq!(told.status, 200, "{told:?}");
    assert!(told.body.contains("9007199254740993"), "numbers pass as they came: {told:?}");
    let heard = rig.desk.everything();
    let signature = token.rsplit('.').next().unwrap();
    for secret in [signature, &session, "secret", "authorization", "cookie"] {
        assert!(!heard.contains(secret), "{secret} reached the server: {heard}");
    }
}

#[tokio::test]
async fn a_tenant_that_is_not_admitted_is_told_so() {
    let mut rig = Rig::start().await;
    for tenant in [json!("tenant-8"), json!(null)] {
        let mut foreign = claims(BOTH);
        match tenant.as_str() {
            Some(tenant) => foreign["tenant"] = json!(tenant),
            None => drop(foreign.as_object_mut().unwrap().remove("tenant")),
        }
        let told = rig.modern(&rig.issuer.sign(&foreign), "tools/list", json!({})).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (403, &json!(40302)));
        assert_eq!(told.json()["error"]["data"]["source"], "cotter");
        assert_eq!(rig.record(&told).await.reasons[0].code, DenyReason::TenantNotAdmitted);
    }
    rig.enforce(|snapshot| snapshot["access"]["tenants"] = json!(["*"])).await;
    let mut nobody = claims(BOTH);
    nobody.as_object_mut().unwrap().remove("tenant");
    assert_eq!(rig.listed(&rig.issuer.sign(&nobody)).await.len(), 2);
}

#[tokio::test]
async fn a_missing_scope_may_be_a_challenge() {
    let rig = Rig::with(|snapshot| snapshot["access"]["insufficientScope"] = json!("Challenge")).await;
    let token = rig.issuer.token("policy:read");
    let told = rig.call(&token, "case_tag").await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (403, &json!(40304)));
    assert_eq!(told.json()["error"]["data"]["reason"], "InsufficientScope");
    let challenge = told.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"case:write\""),
        "{challenge}"
    );
    assert_eq!(rig.call(&token, "no_such_tool").await.json()["error"]["message"], "Unknown tool");
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
}

#[tokio::test]
async fn a_tool_that_needs_approval_is_listed_and_waits() {
    let rig = Rig::with(|snapshot| snapshot["tools"]["case_tag"]["approval"] = json!("Always")).await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.listed(&token).await.len(), 2);
    let told = rig.call(&token, "case_tag").await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (428, &json!(42801)));
    assert_eq!(told.json()["error"]["data"]["reason"], "ApprovalRequired");
    assert!(rig.desk.calls().is_empty());
    rig.enforce(|_| {}).await;
    assert_eq!(rig.call(&token, "case_tag").await.status, 200);
}

#[tokio::test]
async fn a_policy_that_refuses_arguments_says_so_and_one_that_refuses_the_tool_hides_it() {
    let refuses = |rule: &str| format!("package cotter.user.rules\n\n{rule}\n");
    let by_arguments = refuses("deny contains \"no refunds\" if input.args.topic == \"refund\"");
    let mut rig = Rig::with(|snapshot| snapshot["policies"] = json!({"rules.rego": by_arguments})).await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.listed(&token).await.len(), 2);
    let told = rig.call(&token, "policy_lookup").await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (403, &json!(40301)), "{told:?}");
    assert!(!told.body.contains("no refunds"), "the owner's words are not the caller's");
    assert_eq!(rig.record(&told).await.reasons[0].detail.as_deref(), Some("no refunds"));
    let other = rig.modern(&token, "tools/call", json!({"name": "policy_lookup", "arguments": {"topic": "x"}})).await;
    assert!(other.json()["result"].is_object(), "{other:?}");

    let by_tool = refuses("deny contains \"closed\" if input.tool.name == \"policy_lookup\"");
    rig.enforce(|snapshot| snapshot["policies"] = json!({"rules.rego": by_tool})).await;
    assert_eq!(rig.listed(&token).await, ["case_tag"]);
    assert_eq!(rig.call(&token, "policy_lookup").await.face(), rig.call(&token, "no_such_tool").await.face());
}

/// What the server would get is not what the rule would see: nothing is forwarded, and where no rule looks everything is.
#[tokio::test]
async fn a_number_that_a_rule_would_see_otherwise_is_refused_where_a_rule_looks() {
    let bound = "package cotter.user.rules\n\ndeny contains \"large\" if input.args.amount > 100\n";
    let mut rig = Rig::with(|snapshot| snapshot["policies"] = json!({"rules.rego": bound})).await;
    let token = rig.issuer.token(BOTH);
    let session = rig.session(&token).await;
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", crate::rig::LEGACY)];
    let call = |amount: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"case_tag","arguments":{{"case_id":"case-1","tag":"eligible","idempotency_key":"k-1","amount":{amount}}}}}}}"#
        )
    };
    for amount in ["100.000000000000000000001", "1e-400", "10000000000000000000001"] {
        let told = rig.post_text(Some(&token), &headers, &call(amount)).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (403, &json!(40308)), "{told:?}");
        assert!(!told.body.contains("amount"), "the pointer is the owner's: {told:?}");
        let reason = rig.record(&told).await.reasons[0].clone();
        assert_eq!((reason.code, reason.detail.as_deref()), (DenyReason::ArgumentsNotExact, Some("/amount")));
    }
    assert_eq!(rig.desk.calls().len(), 0);
    assert_eq!(rig.post_text(Some(&token), &headers, &call("1e2")).await.status, 200);
    assert_eq!(rig.post_text(Some(&token), &headers, &call("100.5")).await.json()["error"]["code"], json!(40301));
    rig.enforce(|_| {}).await;
    assert_eq!(rig.post_text(Some(&token), &headers, &call("100.000000000000000000001")).await.status, 200);
}

/// The hints of the definition that is served, and of no other.
#[tokio::test]
async fn a_rule_sees_what_the_served_definition_says_of_its_tool() {
    let hints = "package cotter.user.rules\n\ndeny contains \"destroys\" if input.tool.annotations.destructiveHint\n";
    let rules = |snapshot: &mut serde_json::Value| {
        snapshot["policies"] = json!({"rules.rego": hints});
        snapshot["pin"] = json!(null);
        snapshot["pinning"] = json!("Audit");
    };
    let rig = Rig::with(rules).await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.listed(&token).await, ["case_tag", "policy_lookup"]);
    assert_eq!(rig.call(&token, "case_tag").await.status, 200);
    let said = TAG.replacen('{', r#"{"annotations":{"destructiveHint":true},"#, 1);
    rig.desk.state.lock().unwrap().tools = format!("[{LOOKUP},{said}]");
    let print = ToolObject::parse(&said, ListKind::Tools).unwrap().fingerprint(Scheme::ToolV1, &Ignore::NONE).unwrap();
    rig.until(|report| report.catalogue.tools.iter().any(|tool| tool.observed == Some(print))).await;
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
    assert_eq!(rig.call(&token, "case_tag").await.face(), rig.call(&token, "no_such_tool").await.face());
}

/// The same token under changed rules, over the connection that stays open.
#[tokio::test]
async fn new_rules_hold_for_tokens_that_were_seen_before() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.listed(&token).await.len(), 2);
    rig.enforce(|snapshot| snapshot["tools"]["case_tag"]["scope"] = json!("case:admin")).await;
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
    rig.enforce(|snapshot| snapshot["access"]["issuers"] = json!([])).await;
    assert_eq!(rig.modern(&token, "tools/list", json!({})).await.status, 401);
}

#[tokio::test]
async fn a_server_cannot_speak_as_cotter() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let error = r#"{"code":40301,"message":"denied by policy","data":{"source":"cotter","reason":"PolicyDenied"}}"#;
    rig.desk.state.lock().unwrap().answer = Some(("error", error.to_owned()));
    let told = rig.call(&token, "policy_lookup").await;
    assert_eq!((told.status, &told.json()["error"]["data"]), (200, &json!({"reason": "PolicyDenied"})));
    let failed = r#"{"content":[{"type":"text","text":"no such case"}],"isError":true}"#;
    rig.desk.state.lock().unwrap().answer = Some(("result", failed.to_owned()));
    assert_eq!(rig.call(&token, "policy_lookup").await.json()["result"]["isError"], json!(true));
}

#[tokio::test]
async fn every_answer_carries_a_decision_of_its_own() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let mut seen = std::collections::BTreeSet::new();
    for told in [
        rig.call(&token, "policy_lookup").await,
        rig.call(&token, "nothing").await,
        rig.post_text(None, &[], "{}").await,
        rig.post_text(Some(&token), &[], "not json").await,
        rig.send(http::Method::GET, "/nothing", &[], "").await,
        rig.send(http::Method::GET, "/.well-known/oauth-protected-resource", &[], "").await,
        rig.post(&sign_symmetric(b"x", &claims(BOTH)), &[], &json!({})).await,
    ] {
        assert!(seen.insert(told.header("cotter-decision").unwrap().to_owned()), "{told:?}");
    }
}
