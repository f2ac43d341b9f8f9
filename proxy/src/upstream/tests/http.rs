use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use cotter_core::reason::DenyReason;
use serde_json::json;

use super::super::fake::{self, BOUNDS, Fake, Reply, events, http, initialized, json as json_reply, open_stream};
use super::super::message::MODERN;
use super::*;

/// Opens a legacy session with a server that answers calls in this way, and calls.
async fn called(handler: impl Fn(&fake::Seen) -> Reply + Send + Sync + 'static) -> Result<Answer, CallError> {
    let fake = Fake::legacy(handler).await;
    let conversation = fake.upstream().open().await.unwrap();
    call(&conversation, r#"{"a":1}"#).await
}

#[tokio::test]
async fn a_session_has_headers_of_its_own_and_keeps_its_connection() {
    let fake = Fake::legacy(|seen| json_reply(&seen.result(&json!({"content": []})))).await;
    let conversation = fake.upstream().open().await.unwrap();
    for _ in 0..3 {
        assert_eq!(result(call(&conversation, r#"{"a": 1.0}"#).await), json!({"content": []}));
    }
    let surface = conversation.surface();
    assert_eq!((surface.protocol.as_str(), surface.server_name.as_str()), ("2025-11-25", "fake"));
    assert_eq!(conversation.instructions().as_deref(), Some("be kind"));
    let calls = fake.asked("tools/call");
    let names: BTreeSet<_> = calls[0].headers.keys().map(String::as_str).collect();
    let expected =
        ["accept", "content-length", "content-type", "host", "mcp-protocol-version", "mcp-session-id", "user-agent"];
    assert_eq!(names, BTreeSet::from(expected));
    assert_eq!(calls[0].headers["mcp-session-id"], "s-1");
    assert_eq!(calls[0].headers["mcp-protocol-version"], "2025-11-25");
    assert!(calls[0].body.contains(r#""arguments":{"a": 1.0}"#), "{}", calls[0].body);
    assert!(fake.seen().iter().all(|seen| seen.connection == 0));
    conversation.close().await;
    assert_eq!(fake.seen().last().unwrap().method, "DELETE");
}

#[tokio::test]
async fn an_answer_in_a_stream_is_found_behind_whatever_comes_first() {
    let fake = Fake::legacy(|seen| {
        if seen.rpc() != "tools/call" {
            return http(202, "", "");
        }
        let answer = seen.result(&json!({"ok": true}));
        events(&format!(
            "id: 1\nretry: 3000\ndata:\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}}\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"sampling/createMessage\"}}\n\n\
             event: message\ndata: {answer}\n\n"
        ))
    })
    .await;
    let upstream = fake.upstream();
    let changes = upstream.changes();
    let conversation = upstream.open().await.unwrap();
    assert_eq!(result(call(&conversation, "{}").await), json!({"ok": true}));
    assert_eq!(*changes.borrow(), 1);
    assert_eq!(result(call(&conversation, "{}").await), json!({"ok": true}));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let replies: Vec<_> = fake.seen().into_iter().filter(|seen| seen.json["id"] == "q").collect();
    assert_eq!(replies[0].json["error"]["code"], -32601);
}

#[tokio::test]
async fn an_error_of_the_server_is_an_answer() {
    let answer = called(|seen| {
        let id = &seen.json["id"];
        json_reply(
            &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "Unknown tool"}}).to_string(),
        )
    });
    let Ok(Answer::Error(error)) = answer.await else { panic!() };
    assert_eq!(&*error, br#"{"code":-32602,"message":"Unknown tool"}"#);
}

#[tokio::test]
async fn an_answer_out_of_protocol_is_malformed_and_says_how() {
    let fault = |outcome| match outcome {
        Err(CallError::Malformed(fault)) => fault,
        other => panic!("{other:?}"),
    };
    let html = called(|_| http(200, "content-type: text/html\r\n", "<p>hello</p>")).await;
    assert_eq!(fault(html), Fault::MediaType);
    let coded = called(|_| http(200, "content-type: application/json\r\ncontent-encoding: gzip\r\n", "{}")).await;
    assert_eq!(fault(coded), Fault::MediaType);
    assert_eq!(fault(called(|_| http(202, "", "")).await), Fault::Empty);
    assert!(matches!(fault(called(|_| json_reply("garbage")).await), Fault::Json(_)));
    assert_eq!(fault(called(|_| json_reply("[]")).await), Fault::Batch);
    let foreign = |_: &fake::Seen| json_reply(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    assert_eq!(fault(called(foreign).await), Fault::ForeignId);
    let foreign = |_: &fake::Seen| events("data: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n");
    assert_eq!(fault(called(foreign).await), Fault::ForeignId);
    let unfinished = |_: &fake::Seen| events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n");
    assert_eq!(fault(called(unfinished).await), Fault::Truncated);
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"jsonrpc\":";
    assert_eq!(fault(called(|_| Reply::Last(half.to_vec())).await), Fault::Truncated);
}

#[tokio::test]
async fn an_answer_at_the_bound_passes_and_one_beyond_it_does_not() {
    let sized = |size: usize| called(move |seen| json_reply(&seen.result(&json!({"x": "x".repeat(size - 8)}))));
    assert!(sized(64 * 1024).await.is_ok());
    assert_eq!(sized(64 * 1024 + 1).await, Err(CallError::TooLarge { limit: 64 * 1024 }));
}

#[tokio::test]
async fn a_huge_answer_is_left_at_the_bound_however_it_comes() {
    let too_large = Err(CallError::TooLarge { limit: 64 * 1024 });
    let declared = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000000\r\n\r\n";
    assert_eq!(called(|_| Reply::Hang(declared.to_vec())).await, too_large);
    let chunk = format!("{:x}\r\n{}\r\n", 8192, "x".repeat(8192)).into_bytes();
    for kind in ["application/json", "text/event-stream"] {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        let (head, chunk) = (head.into_bytes(), chunk.clone());
        assert_eq!(called(move |_| Reply::Endless(head.clone(), chunk.clone())).await, too_large, "{kind}");
    }
    let events = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n".repeat(100);
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let chunk = format!("{:x}\r\n{events}\r\n", events.len()).into_bytes();
    assert_eq!(called(move |_| Reply::Endless(head.clone(), chunk.clone())).await, too_large);
}

#[tokio::test]
async fn a_server_that_says_nothing_runs_into_the_deadline_and_is_told() {
    let fake =
        Fake::legacy(|seen| if seen.rpc() == "tools/call" { Reply::Hang(vec![]) } else { http(202, "", "") }).await;
    let conversation = fake.upstream().open().await.unwrap();
    let outcome = call_within(&conversation, "{}", Duration::from_millis(200)).await;
    assert_eq!(outcome, Err(CallError::Timeout { dispatched: true }));
    assert_eq!(DenyReason::from(&outcome.unwrap_err()), DenyReason::UpstreamTimeout);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let cancelled = fake.asked("notifications/cancelled");
    assert_eq!(cancelled[0].json["params"]["requestId"], fake.asked("tools/call")[0].json["id"]);
}

#[tokio::test]
async fn a_server_that_is_not_there_was_certainly_not_asked() {
    let fake = Fake::legacy(|_| Reply::Last(vec![])).await;
    let conversation = fake.upstream().open().await.unwrap();
    let lost = call(&conversation, "{}").await.unwrap_err();
    assert!(matches!(lost, CallError::Unreachable { .. }) && lost.dispatched(), "{lost}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let config = snapshot::Upstream::Http { url, credentials: None, ca_file: None };
    let error = Upstream::new(&config, BOUNDS, None).unwrap().open().await.unwrap_err();
    assert!(!error.exchange().unwrap().dispatched(), "{error}");
    assert_eq!(DenyReason::from(&error), DenyReason::UpstreamUnreachable);
}

/// Forgets the session once, with this status, and counts sessions.
async fn forgetful(status: u16, body: &'static str) -> Fake {
    let (opened, forgot) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Fake::serve(move |seen| match (seen.method.as_str(), seen.rpc()) {
        (_, "initialize") => {
            let session = opened.fetch_add(1, Ordering::SeqCst) + 1;
            let headers = format!("content-type: application/json\r\nmcp-session-id: s-{session}\r\n");
            http(200, &headers, &seen.result(&initialized()))
        }
        (_, "tools/call") if seen.headers["mcp-session-id"] == "s-1" => {
            forgot.fetch_add(1, Ordering::SeqCst);
            http(status, "content-type: application/json\r\n", body)
        }
        (_, "tools/call") => json_reply(&seen.result(&json!({"session": seen.headers["mcp-session-id"]}))),
        _ => http(202, "", ""),
    })
    .await
}

#[tokio::test]
async fn a_forgotten_session_is_opened_anew_once_for_all_and_counts_as_a_change() {
    let no_session = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#;
    for (status, body) in [(404, ""), (404, no_session), (400, no_session)] {
        let fake = forgetful(status, body).await;
        let upstream = fake.upstream();
        let conversation = upstream.open().await.unwrap();
        let all = futures::future::join_all((0..8).map(|_| call(&conversation, "{}"))).await;
        for outcome in all {
            assert_eq!(result(outcome), json!({"session": "s-2"}), "{status}");
        }
        assert_eq!(fake.asked("initialize").len(), 2);
        assert_eq!(*upstream.changes().borrow(), 1);
    }
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_not_asked_for_ever() {
    let fake = Fake::legacy(|_| http(404, "", "")).await;
    let conversation = fake.upstream().open().await.unwrap();
    assert_eq!(call(&conversation, "{}").await, Err(CallError::Refused { status: 404 }));
    assert_eq!(fake.asked("tools/call").len(), 2);
}

#[tokio::test]
async fn a_server_that_became_a_modern_one_is_asked_again_what_it_is() {
    let fake = Fake::serve(|seen| {
        let modern = seen.json["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN;
        match (seen.connection, seen.rpc()) {
            (0, "initialize") => json_reply(&seen.result(&initialized())),
            (0, "notifications/initialized") => Reply::Last(b"HTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n".to_vec()),
            (_, "server/discover") => {
                json_reply(&seen.result(&json!({"supportedVersions": [MODERN], "capabilities": {}})))
            }
            (_, "tools/call") if modern => json_reply(&seen.result(&json!({"modern": true}))),
            _ => {
                let error = json!({"jsonrpc": "2.0", "id": seen.json["id"], "error": {"code": -32022, "message": "v"}});
                http(400, "content-type: application/json\r\n", &error.to_string())
            }
        }
    })
    .await;
    let conversation = fake.upstream().open().await.unwrap();
    assert_eq!(conversation.surface().protocol, "2025-11-25");
    assert_eq!(result(call(&conversation, "{}").await), json!({"modern": true}));
    assert_eq!(conversation.surface().protocol, MODERN);
}

#[tokio::test]
async fn a_failure_with_an_answer_is_the_answer_and_one_without_is_a_refusal() {
    let answered = called(|seen| {
        let error = json!({"jsonrpc": "2.0", "id": seen.json["id"], "error": {"code": -32601, "message": "no"}});
        http(404, "content-type: application/json\r\n", &error.to_string())
    });
    assert!(matches!(answered.await, Ok(Answer::Error(_))));
    let broken = called(|_| http(500, "content-type: text/plain\r\n", "oops")).await.unwrap_err();
    assert_eq!((&broken, broken.dispatched()), (&CallError::Refused { status: 500 }, true));
    let refused = called(|_| http(401, "", "")).await.unwrap_err();
    assert_eq!((&refused, refused.dispatched()), (&CallError::Refused { status: 401 }, false));
    let moved = called(|_| http(307, "location: http://127.0.0.1:1/\r\n", "")).await.unwrap_err();
    assert_eq!(moved, CallError::Refused { status: 307 });
}

#[tokio::test]
async fn a_server_without_a_handshake_is_spoken_to_in_the_modern_way() {
    let fake = Fake::serve(|seen| match seen.rpc() {
        "server/discover" => json_reply(&seen.result(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "3"}},
        }))),
        "tools/call" => json_reply(&seen.result(&json!({"resultType": "complete"}))),
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": seen.json["id"], "error": {"code": -32022, "message": "version"}});
            http(400, "content-type: application/json\r\n", &error.to_string())
        }
    })
    .await;
    let conversation = fake.upstream().open().await.unwrap();
    assert_eq!(conversation.surface().protocol, MODERN);
    assert_eq!(conversation.surface().server_name, "new");
    assert_eq!(result(call(&conversation, "{}").await), json!({"resultType": "complete"}));
    let seen = &fake.asked("tools/call")[0];
    assert_eq!(seen.headers["mcp-method"], "tools/call");
    assert_eq!(seen.headers["mcp-name"], "case_tag");
    assert_eq!(seen.headers["mcp-protocol-version"], MODERN);
    assert_eq!(seen.headers.get("mcp-session-id"), None);
    assert_eq!(seen.json["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], MODERN);
}

#[tokio::test]
async fn a_handshake_that_fails_says_what_failed() {
    async fn said(reply: impl Fn(&fake::Seen) -> Reply + Send + Sync + 'static) -> String {
        Fake::serve(reply).await.upstream().open().await.unwrap_err().to_string()
    }
    assert!(said(|_| http(401, "", "")).await.contains("HTTP status 401"));
    let unknown = |seen: &fake::Seen| {
        json_reply(&seen.result(&json!({"protocolVersion": "1999-01-01\u{1b}", "capabilities": {}})))
    };
    assert!(said(unknown).await.contains(r"revision 1999-01-01\u{1b}"));
    assert!(
        said(|seen| json_reply(&seen.result(&json!({"hello": 1})))).await.contains("is not what `initialize` gives")
    );
    assert!(said(|_| json_reply("<html>")).await.contains("not JSON"));
    let bad_session = |seen: &fake::Seen| {
        http(200, "content-type: application/json\r\nmcp-session-id: a b\r\n", &seen.result(&initialized()))
    };
    assert!(said(bad_session).await.contains("session id"));
    let neither = |seen: &fake::Seen| {
        let error = json!({"jsonrpc": "2.0", "id": seen.json["id"], "error": {"code": -32601, "message": "no"}});
        json_reply(&error.to_string())
    };
    assert!(said(neither).await.contains("`initialize`: the server refused with error -32601"));
}

#[tokio::test]
async fn announcements_come_over_the_get_stream() {
    let fake = Fake::legacy(|seen| match seen.method.as_str() {
        "GET" => open_stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"),
        _ => http(202, "", ""),
    })
    .await;
    let upstream = fake.upstream();
    let mut changes = upstream.changes();
    let conversation = upstream.open().await.unwrap();
    conversation.follow();
    tokio::time::timeout(PATIENT, changes.changed()).await.unwrap().unwrap();
    let get = fake.seen().into_iter().find(|seen| seen.method == "GET").unwrap();
    assert_eq!((get.headers["accept"].as_str(), get.headers["mcp-session-id"].as_str()), ("text/event-stream", "s-1"));
}

#[tokio::test]
async fn a_credential_is_sent_with_every_request_and_a_missing_one_sends_nothing() {
    let fake = Fake::legacy(|seen| json_reply(&seen.result(&json!({})))).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let credentials = snapshot::Credentials {
        file: file.to_str().unwrap().to_owned(),
        header: "Authorization".to_owned(),
        prefix: "Bearer ".to_owned(),
    };
    let config = snapshot::Upstream::Http { url: fake.url.clone(), credentials: Some(credentials), ca_file: None };
    let upstream = Upstream::new(&config, BOUNDS, None).unwrap();
    assert!(upstream.open().await.is_err());
    assert_eq!(fake.seen().len(), 0);
    std::fs::write(&file, "s3cret").unwrap();
    let conversation = upstream.open().await.unwrap();
    call(&conversation, "{}").await.unwrap();
    assert!(fake.seen().iter().all(|seen| seen.headers["authorization"] == "Bearer s3cret"));
}
