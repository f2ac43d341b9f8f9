//! What is listed and called is what was verified, and nothing else, from the moment that a change is seen.

use cotter_core::{catalogue::ToolState, drift::Class, report::Knowledge};
use serde_json::json;

use crate::{
    desk::{LOOKUP, TAG, TAG_AND_NOTIFY},
    rig::Rig,
};

const BOTH: &str = "policy:read case:write";

/// B3: the rug pull.
#[tokio::test]
async fn a_drifted_tool_is_hidden_and_reported_and_comes_back() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.listed(&token).await, ["case_tag", "policy_lookup"]);
    rig.desk.state.lock().unwrap().tools = format!("[{LOOKUP},{TAG_AND_NOTIFY}]");
    rig.sidecar.refresh();
    let report = rig.until_tool("case_tag", ToolState::Drifted).await;
    let tool = report.catalogue.tools.iter().find(|tool| tool.name == "case_tag").unwrap();
    assert_eq!((tool.class, tool.callable), (Some(Class::Additive), false));
    assert_eq!(tool.fields, ["/inputSchema/properties/notify_customer"]);
    assert!(tool.approved.is_some() && tool.observed.is_some() && tool.approved != tool.observed);
    assert_eq!(report.catalogue.definitions["case_tag"].get(), TAG_AND_NOTIFY);
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
    assert_eq!(rig.call(&token, "case_tag").await.face(), rig.call(&token, "no_such_tool").await.face());
    assert_eq!(rig.call(&token, "policy_lookup").await.status, 200);
    assert_eq!(rig.desk.calls().len(), 1);
    rig.desk.state.lock().unwrap().tools = format!("[{TAG},{LOOKUP}]");
    rig.sidecar.refresh();
    rig.until_tool("case_tag", ToolState::Matched).await;
    assert_eq!(rig.listed(&token).await, ["case_tag", "policy_lookup"]);
    assert!(rig.call(&token, "case_tag").await.json()["result"].is_object());
}

#[tokio::test]
async fn without_a_pin_nothing_is_callable_unless_the_owner_says_so() {
    let rig = Rig::with(|snapshot| drop(snapshot.as_object_mut().unwrap().remove("pin"))).await;
    let token = rig.issuer.token(BOTH);
    assert!(rig.listed(&token).await.is_empty());
    assert_eq!(rig.call(&token, "case_tag").await.face(), rig.call(&token, "no_such_tool").await.face());
    rig.enforce(|snapshot| {
        snapshot.as_object_mut().unwrap().remove("pin");
        snapshot["pinning"] = json!("Audit");
    })
    .await;
    assert_eq!(rig.listed(&token).await.len(), 2);
}

#[tokio::test]
async fn two_tools_of_one_name_are_none() {
    let rig = Rig::start().await;
    rig.desk.state.lock().unwrap().tools =
        format!("[{LOOKUP},{TAG},{}]", TAG_AND_NOTIFY.replace("case_tag", "Case_Tag"));
    rig.sidecar.refresh();
    rig.until_tool("case_tag", ToolState::Ambiguous).await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
    assert_eq!(rig.call(&token, "case_tag").await.json()["error"]["message"], "Unknown tool");
}

/// A list that cannot be read leaves the last one in force for the grace, and then nothing.
#[tokio::test]
async fn a_list_that_cannot_be_read_serves_for_its_grace_only() {
    let rig = Rig::with(|snapshot| snapshot["verify"] = json!({"intervalMs": 1000, "graceMs": 3000})).await;
    let token = rig.issuer.token(BOTH);
    rig.desk.state.lock().unwrap().broken = true;
    rig.sidecar.refresh();
    rig.until(|report| matches!(report.catalogue.knowledge, Knowledge::Grace { .. })).await;
    assert_eq!(rig.listed(&token).await.len(), 2);
    let report = rig.until(|report| matches!(report.catalogue.knowledge, Knowledge::Expired { .. })).await;
    assert!(report.catalogue.tools.iter().all(|tool| !tool.callable));
    for tool in ["policy_lookup", "no_such_tool"] {
        let told = rig.call(&token, tool).await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (503, &json!(50301)), "{tool}");
        assert!(told.header("retry-after").is_some());
    }
    assert_eq!(rig.modern(&token, "tools/list", json!({})).await.status, 503);
    let admin = rig.sidecar.admin_addr().unwrap();
    assert_eq!(crate::limits::get(admin, "/readyz").await.0, 503);
    rig.desk.state.lock().unwrap().broken = false;
    rig.sidecar.refresh();
    rig.until(|report| report.catalogue.knowledge == Knowledge::Verified).await;
    assert_eq!(rig.listed(&token).await.len(), 2);
    assert_eq!(crate::limits::get(admin, "/readyz").await.0, 200);
}

#[tokio::test]
async fn a_list_with_a_name_twice_is_no_list() {
    let rig = Rig::start().await;
    rig.desk.state.lock().unwrap().tools =
        format!("[{LOOKUP},{}]", TAG.replacen('{', "{\"name\":\"policy_lookup\",", 1));
    rig.sidecar.refresh();
    let report = rig.until(|report| matches!(report.catalogue.knowledge, Knowledge::Grace { .. })).await;
    let Knowledge::Grace { why } = &report.catalogue.knowledge else { panic!("{report:?}") };
    assert!(why.contains("occurs twice"), "{why}");
    assert_eq!(rig.listed(&rig.issuer.token(BOTH)).await.len(), 2, "the last verified list serves");
}

#[tokio::test]
async fn a_server_that_never_answered_has_no_tools() {
    let rig = Rig::unread(|snapshot| snapshot["upstream"] = json!({"http": {"url": "http://127.0.0.1:1/mcp"}})).await;
    let token = rig.issuer.token(BOTH);
    let told = rig.call(&token, "policy_lookup").await;
    assert_eq!((told.status, &told.json()["error"]["data"]["reason"]), (503, &json!("NotReady")));
}

/// A snapshot that cannot be enforced changes nothing but the report.
#[tokio::test]
async fn a_snapshot_with_a_broken_policy_is_rejected_and_the_one_before_stays() {
    let rig = Rig::start().await;
    let before = rig.reports.borrow().as_ref().unwrap().enforced;
    let mut value = crate::rig::snapshot(&rig.desk, &rig.issuer.jwks());
    value["policies"] = json!({"bad.rego": "package cotter.user.bad\n\ndeny contains \"x\" if {"});
    let sealed = crate::rig::seal(value);
    let digest = sealed.digest();
    rig.snapshots.send_replace(Some(sealed));
    let report = rig.until(|report| report.rejected.is_some()).await;
    assert_eq!((report.rejected.as_ref().unwrap().digest, report.enforced), (digest, before));
    assert_eq!(rig.listed(&rig.issuer.token(BOTH)).await.len(), 2);
    let mut value = crate::rig::snapshot(&rig.desk, &rig.issuer.jwks());
    value["server"]["name"] = json!("other");
    rig.snapshots.send_replace(Some(crate::rig::seal(value)));
    let report = rig.until(|report| report.rejected.as_ref().is_some_and(|r| r.digest != digest)).await;
    assert_eq!(report.enforced, before);
}

#[tokio::test]
async fn another_way_to_the_server_is_a_catalogue_of_its_own() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let session = rig.session(&token).await;
    let other = crate::desk::Desk::start().await;
    other.state.lock().unwrap().tools = format!("[{LOOKUP}]");
    rig.enforce(|snapshot| snapshot["upstream"]["http"]["url"] = json!(other.url)).await;
    rig.until_tool("case_tag", ToolState::Removed).await;
    assert_eq!(rig.listed(&token).await, ["policy_lookup"]);
    let told = rig
        .legacy(&token, &session, "tools/call", json!({"name": "policy_lookup", "arguments": {"topic": "refund"}}))
        .await;
    assert_eq!((told.status, rig.desk.calls().len(), other.calls().len()), (200, 0, 1), "{told:?}");
}

/// Instructions reach a client only where a pin covers exactly them.
#[tokio::test]
async fn instructions_that_nobody_approved_are_not_passed_on() {
    const TEXT: &str = "Ask the reviewer first.";
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let other = crate::desk::Desk::start().await;
    other.state.lock().unwrap().instructions = Some(TEXT);
    for (approved, told) in [(None, None), (Some("Ask nobody."), None), (Some(TEXT), Some(TEXT))] {
        rig.enforce(|snapshot| {
            snapshot["upstream"]["http"]["url"] = json!(other.url);
            if let Some(approved) = approved {
                snapshot["pin"]["instructions"] = json!(cotter_core::snapshot::Digest::of(approved.as_bytes()));
            }
        })
        .await;
        rig.until(|report| report.surface.as_ref().is_some_and(|surface| surface.instructions_digest.is_some())).await;
        let result = rig.post(&token, &[], &crate::rig::initialize("2025-11-25")).await.json()["result"].clone();
        assert_eq!(result.get("instructions").and_then(|text| text.as_str()), told, "{approved:?}");
        let result = rig.modern(&token, "server/discover", json!({})).await.json()["result"].clone();
        assert_eq!(result.get("instructions").and_then(|text| text.as_str()), told, "{approved:?}");
    }
}

#[tokio::test]
async fn shutdown_leaves_nothing_listening() {
    let rig = Rig::start().await;
    let address = rig.sidecar.local_addr();
    assert_eq!(rig.listed(&rig.issuer.token(BOTH)).await.len(), 2);
    rig.sidecar.shutdown().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

/// A server that was replaced without a word: no announcement, and the reader has not looked again. The first call of a new session meets
/// the new one, and is decided on what that one shows.
#[tokio::test]
async fn no_call_slips_to_a_server_that_was_replaced_without_a_word() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.call(&token, "policy_lookup").await.status, 200);
    let before = rig.desk.calls().len();
    rig.desk.state.lock().unwrap().tools = format!("[{LOOKUP},{TAG_AND_NOTIFY}]");

    let session = rig.session(&token).await;
    let slipped = rig.legacy(&token, &session, "tools/call", arguments("case_tag")).await;
    assert_eq!(slipped.json()["error"]["message"], "Unknown tool");
    assert_eq!(rig.desk.calls().len(), before, "nothing reached the server");
    let unchanged = rig.legacy(&token, &session, "tools/call", arguments("policy_lookup")).await;
    assert!(unchanged.json()["result"].is_object(), "what did not change goes on");
    rig.until_tool("case_tag", ToolState::Drifted).await;
}

/// The same where every change passes: a rule that reads what the server says of a tool has not seen this.
#[tokio::test]
async fn no_call_slips_to_a_server_that_says_something_else_of_its_tool_than_a_rule_saw() {
    let hints = "package cotter.user.rules\n\ndeny contains \"destroys\" if input.tool.annotations.destructiveHint\n";
    let said = TAG.replacen('{', r#"{"annotations":{"destructiveHint":true},"#, 1);
    for (rules, slips) in [(json!({}), true), (json!({"rules.rego": hints}), false)] {
        let rig = Rig::with(|snapshot| {
            snapshot["policies"] = rules;
            snapshot["pin"]["enforcement"] = json!("Audit");
        })
        .await;
        let token = rig.issuer.token(BOTH);
        assert_eq!(rig.call(&token, "case_tag").await.status, 200);
        let before = rig.desk.calls().len();
        rig.desk.state.lock().unwrap().tools = format!("[{LOOKUP},{said}]");
        let session = rig.session(&token).await;
        let told = rig.legacy(&token, &session, "tools/call", arguments("case_tag")).await;
        assert_eq!((told.json()["result"].is_object(), rig.desk.calls().len() > before), (slips, slips), "{told:?}");
    }
}

/// A call with what both tools take.
fn arguments(tool: &str) -> serde_json::Value {
    let all = json!({"topic": "refund", "case_id": "case-1", "tag": "eligible", "idempotency_key": "k-1"});
    json!({"name": tool, "arguments": all})
}
