//! Arguments against the schema that was approved: who is told what, when, and that nothing reaches the server.

use std::time::Duration;

use cotter_core::{catalogue::ToolState, reason::DenyReason};
use serde_json::{Value, json};

use crate::{
    desk::{LOOKUP, TAG, TAG_AND_NOTIFY},
    limits::get,
    rig::{Rig, initialize, request},
};

const BOTH: &str = "policy:read case:write";
const SECRET: &str = "hunter2";

/// A call of `case_tag` with a change.
fn tag(change: impl FnOnce(&mut Value)) -> Value {
    let mut arguments = json!({"case_id": "case-1", "tag": "eligible", "idempotency_key": "k-1"});
    change(&mut arguments);
    json!({"name": "case_tag", "arguments": arguments})
}

fn wrong() -> Value {
    tag(|arguments| {
        arguments["tag"] = json!(SECRET);
        arguments["case_id"] = json!(7);
    })
}

const TOLD: &str = "invalid arguments: /case_id (type), /tag (enum)";

#[tokio::test]
async fn a_model_is_told_what_is_wrong_as_the_newer_revisions_want_it() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let session = rig.session(&token).await;
    assert_eq!(rig.modern(&token, "tools/call", tag(|_| {})).await.json()["result"]["isError"], Value::Null);
    let modern = rig.modern(&token, "tools/call", wrong()).await;
    let legacy = rig.legacy(&token, &session, "tools/call", wrong()).await;
    for (told, kind) in [(&modern, json!("complete")), (&legacy, Value::Null)] {
        let result = told.json()["result"].clone();
        assert_eq!((told.status, &result["isError"], &result["resultType"]), (200, &json!(true), &kind), "{told:?}");
        assert_eq!(result["content"], json!([{"type": "text", "text": TOLD}]));
        let refusal = &result["_meta"]["cotter.dev/refusal"];
        assert_eq!((&refusal["source"], &refusal["reason"]), (&json!("cotter"), &json!("InvalidArguments")));
    }
    assert_eq!(rig.desk.calls().len(), 1, "nothing of it reached the server");
    let record = rig.record(&legacy).await;
    assert!(!record.allow && record.reasons[0].code == DenyReason::InvalidArguments);
    assert_eq!(record.reasons[0].detail.as_deref(), Some("/case_id (type), /tag (enum)"));
    assert!(!format!("{record:?}{modern:?}{legacy:?}").contains(SECRET), "no value is repeated");
}

#[tokio::test]
async fn older_revisions_are_answered_with_an_error() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let opened = rig.post(&token, &[], &initialize("2025-06-18")).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-06-18")];
    let told = rig.post(&token, &headers, &request("tools/call", wrong())).await;
    let error = &told.json()["error"];
    assert_eq!((told.status, &error["code"], &error["message"]), (200, &json!(-32602), &json!(TOLD)));
    let problems = json!(["/case_id (type)", "/tag (enum)"]);
    assert_eq!(error["data"], json!({"source": "cotter", "reason": "InvalidArguments", "problems": problems}));
    assert!(rig.desk.calls().is_empty());
    let passed = rig.post(&token, &headers, &request("tools/call", tag(|_| {}))).await;
    assert!(passed.json()["result"].is_object() && rig.desk.calls().len() == 1);
}

#[tokio::test]
async fn whoever_may_not_use_a_tool_does_not_learn_what_it_takes() {
    let rig = Rig::with(|snapshot| snapshot["pin"]["tools"]["policy_lookup"]["mismatched"] = json!(true)).await;
    let (reader, both) = (rig.issuer.token("policy:read"), rig.issuer.token(BOTH));
    let unknown = rig.modern(&reader, "tools/call", json!({"name": "no_such_tool", "arguments": {}})).await.face();
    assert_eq!(rig.modern(&reader, "tools/call", wrong()).await.face(), unknown, "its scope is missing");
    let quarantined = json!({"name": "policy_lookup", "arguments": {"topic": 1}});
    assert_eq!(rig.modern(&both, "tools/call", quarantined).await.face(), unknown, "it is quarantined");
    assert!(rig.modern(&both, "tools/call", wrong()).await.json()["result"]["isError"] == json!(true));
}

#[tokio::test]
async fn what_is_refused_by_policy_is_not_checked_further() {
    let module =
        "package cotter.user.guard\nimport rego.v1\ndeny contains \"no case\" if { input.args.case_id == 7 }\n";
    let rig = Rig::with(|snapshot| snapshot["policies"] = json!({"guard.rego": module})).await;
    let token = rig.issuer.token(BOTH);
    let told = rig.modern(&token, "tools/call", wrong()).await;
    assert_eq!(told.json()["error"]["data"]["reason"], "PolicyDenied", "{told:?}");
    let told = rig.modern(&token, "tools/call", tag(|arguments| arguments["tag"] = json!(SECRET))).await;
    assert_eq!(told.json()["result"]["isError"], true, "{told:?}");
}

#[tokio::test]
async fn a_new_definition_brings_its_schema_with_it() {
    let rig = Rig::with(|snapshot| snapshot["pin"]["onDrift"] = json!({"Additive": "Report"})).await;
    let token = rig.issuer.token(BOTH);
    let notify = |value: Value| tag(|arguments| arguments["notify_customer"] = value);
    let is_error =
        async |params| rig.modern(&token, "tools/call", params).await.json()["result"]["isError"] == json!(true);
    assert!(!is_error(notify(json!("yes"))).await, "the approved schema does not know the argument");
    rig.desk.state.lock().unwrap().tools = format!("[{LOOKUP},{TAG_AND_NOTIFY}]");
    rig.until_tool("case_tag", ToolState::Drifted).await;
    assert!(is_error(notify(json!("yes"))).await, "the one that is served now does");
    assert!(!is_error(notify(json!(true))).await);
    rig.desk.state.lock().unwrap().tools = format!("[{LOOKUP},{TAG}]");
    rig.until_tool("case_tag", ToolState::Matched).await;
    assert!(!is_error(notify(json!("yes"))).await);
}

#[tokio::test]
async fn a_schema_that_cannot_be_enforced_stops_nobody_and_is_counted() {
    let rig = Rig::with(|snapshot| {
        snapshot.as_object_mut().unwrap().remove("pin");
        snapshot["pinning"] = json!("Audit");
    })
    .await;
    let token = rig.issuer.token(BOTH);
    let odd = LOOKUP.replace(r#""topic":{"type":"string"}"#, r#""topic":{"type":"string","pattern":"(?!x)"}"#);
    let endless = TAG.replace(r#""inputSchema":{"#, r##""inputSchema":{"allOf":[{"$ref":"#"}],"##);
    rig.desk.state.lock().unwrap().tools = format!("[{odd},{endless}]");
    let counted = async || {
        let (_, page) = get(rig.sidecar.admin_addr().unwrap(), "/metrics").await;
        page.contains("cotter_tools_partly_checked 1\n") && page.contains("cotter_tools_unchecked 1\n")
    };
    tokio::time::timeout(Duration::from_secs(20), async {
        while !counted().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("both are counted");
    let is_error =
        async |params| rig.modern(&token, "tools/call", params).await.json()["result"]["isError"] == json!(true);
    assert!(!is_error(json!({"name": "policy_lookup", "arguments": {"topic": "refund"}})).await);
    assert!(is_error(json!({"name": "policy_lookup", "arguments": {"topic": 1}})).await, "the rest of it is enforced");
    assert!(!is_error(wrong()).await, "nothing of it is");
}
