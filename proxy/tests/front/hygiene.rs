//! What is checked before anybody is asked who they are, and in which order.

use cotter_core::reason::DenyReason;
use http::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::rig::{Rig, request, stated};

/// Sends bytes as they are and gives the status line and headers of the answer.
pub(crate) async fn raw(rig: &Rig, text: &str) -> String {
    let mut stream = TcpStream::connect(rig.sidecar.local_addr()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap_or("0").parse().unwrap_or_default()
}

type Step<'a> = (Method, &'a str, Vec<(&'a str, &'a str)>, &'a str, DenyReason);

/// Each request is wrong in this and in everything after it, so what it is told is the first thing that is checked.
#[tokio::test]
async fn checks_are_made_in_their_order() {
    let mut rig = Rig::start().await;
    let good = [
        ("host", "localhost"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ];
    let bad = [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("content-type", "text/plain"),
        ("accept", "text/html"),
    ];
    let huge = "x".repeat(100_000);
    let big: Vec<(String, String)> = (0..40).map(|n| (format!("x-{n}"), "v".repeat(900))).collect();
    let big: Vec<(&str, &str)> = big.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let token = format!("Bearer {}", rig.issuer.token("policy:read"));
    let steps: Vec<Step<'_>> = vec![
        (Method::PUT, "/nothing", bad.to_vec(), &huge, DenyReason::MethodNotAllowed),
        (Method::GET, "/mcp", bad.to_vec(), &huge, DenyReason::MethodNotAllowed),
        (Method::POST, "/nothing", bad.to_vec(), &huge, DenyReason::PathNotFound),
        (Method::POST, "/mcp/", bad.to_vec(), &huge, DenyReason::PathNotFound),
        (Method::POST, "/mcp", [&bad[..], &big[..]].concat(), &huge, DenyReason::HostNotAllowed),
        (Method::POST, "/mcp", [&good[..1], &bad[1..], &big[..]].concat(), &huge, DenyReason::OriginNotAllowed),
        (Method::POST, "/mcp", [&good[..1], &bad[2..], &big[..]].concat(), &huge, DenyReason::HeadersTooLarge),
        (Method::POST, "/mcp", [&good[..1], &bad[2..]].concat(), &huge, DenyReason::UnsupportedMediaType),
        (Method::POST, "/mcp", [&good[..1], &good[2..], &bad[3..]].concat(), &huge, DenyReason::NotAcceptable),
        (Method::POST, "/mcp", good.to_vec(), &huge, DenyReason::TooLarge),
        (Method::POST, "/mcp", good.to_vec(), "not json", DenyReason::TokenMissing),
        (
            Method::POST,
            "/mcp",
            [&good[..], &[("authorization", "Bearer x")]].concat(),
            "not json",
            DenyReason::TokenMalformed,
        ),
        (Method::POST, "/mcp", [&good[..], &[("authorization", &token)]].concat(), "not json", DenyReason::ParseError),
    ];
    for (method, path, headers, body, reason) in steps {
        let told = rig.send(method, path, &headers, body).await;
        let record = rig.record(&told).await;
        assert_eq!((record.reasons[0].code, told.status), (reason, reason.status()), "{path}: {told:?}");
        assert!(told.json()["error"]["code"].is_i64() && told.json().get("id").is_none(), "{told:?}");
    }
}

/// After the body: revision before headers before session before method.
#[tokio::test]
async fn checks_of_a_message_are_made_in_their_order() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let unknown = |version: &str| {
        let mut body = request("nothing/here", stated(json!({})));
        body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        body
    };
    let mut no_capabilities = request("nothing/here", stated(json!({})));
    no_capabilities["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let agreed = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "nothing/here")];
    let legacy = request("nothing/here", json!({}));
    let steps = [
        (unknown("2099-01-01"), vec![], DenyReason::UnsupportedRevision, 400),
        (no_capabilities, vec![], DenyReason::InvalidParams, 400),
        (unknown("2026-07-28"), vec![], DenyReason::HeaderMismatch, 400),
        (unknown("2026-07-28"), agreed.to_vec(), DenyReason::MethodNotFound, 404),
        (legacy.clone(), vec![("mcp-protocol-version", "2099-01-01")], DenyReason::UnsupportedRevision, 400),
        (legacy.clone(), vec![], DenyReason::SessionRequired, 400),
        (legacy.clone(), vec![("mcp-session-id", "x")], DenyReason::SessionUnknown, 404),
    ];
    for (body, headers, reason, status) in steps {
        let told = rig.post(&token, &headers, &body).await;
        assert_eq!((rig.record(&told).await.reasons[0].code, told.status), (reason, status), "{told:?}");
    }
    let session = rig.session(&token).await;
    let told = rig.legacy(&token, &session, "nothing/here", json!({})).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (200, &json!(-32601)));
}

#[tokio::test]
async fn only_known_hosts_are_answered() {
    let rig = Rig::start().await;
    let get =
        |hosts: &str| format!("GET /.well-known/oauth-protected-resource HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
    for good in
        ["localhost", "127.0.0.1:7801", "[::1]:1", "LOCALHOST:80", "support.support.svc", "Support.Support.SVC:8080"]
    {
        let answer = raw(&rig, &get(&format!("host: {good}\r\n"))).await;
        assert_eq!(status(&answer), 200, "{good}: {answer}");
    }
    for bad in [
        "evil.example",
        "localhost.evil.example",
        "support.support.svc.evil",
        "evil@localhost",
        "127.0.0.1.nip.io",
        "127.0.0.1:+80",
        "127.0.0.1:",
        "localhost:80:80",
        "localhost:65536",
        "0",
        "",
    ] {
        let answer = raw(&rig, &get(&format!("host: {bad}\r\n"))).await;
        assert_eq!(status(&answer), 421, "{bad}: {answer}");
    }
    assert_eq!(status(&raw(&rig, &get("host: localhost\r\nhost: localhost\r\n")).await), 421);
    let absolute = "GET http://evil.example/.well-known/oauth-protected-resource HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(status(&raw(&rig, absolute).await), 421);
    assert_eq!(status(&raw(&rig, "GET /mcp HTTP/1.0\r\n\r\n").await), 405);
    assert_eq!(status(&raw(&rig, "POST /mcp HTTP/1.0\r\n\r\n").await), 421);
}

#[tokio::test]
async fn a_browser_is_answered_only_on_allowed_pages() {
    let rig = Rig::start().await;
    let preflight = |origin: &'static str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        let rig = &rig;
        async move { rig.send(Method::OPTIONS, "/mcp", &headers, "").await }
    };
    let told = preflight("https://app.example").await;
    assert_eq!((told.status, told.header("access-control-allow-origin")), (204, Some("https://app.example")));
    assert!(told.header("access-control-allow-headers").unwrap().contains("authorization"));
    for bad in ["https://evil.example", "null", "https://app.example.evil", "http://app.example"] {
        let told = preflight(bad).await;
        assert_eq!((told.status, told.header("access-control-allow-origin")), (403, None), "{bad}");
    }
    let token = rig.issuer.token("policy:read");
    let headers =
        [("origin", "https://app.example"), ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let told = rig.post(&token, &headers, &request("tools/list", stated(json!({})))).await;
    assert_eq!((told.status, told.header("access-control-allow-origin")), (200, Some("https://app.example")));
    assert_eq!(rig.send(Method::OPTIONS, "/mcp", &[], "").await.status, 405);
}

#[tokio::test]
async fn a_body_without_an_announced_size_is_bounded_too() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let chunk = format!("{:x}\r\n{}\r\n", 40_000, " ".repeat(40_000));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\naccept: */*\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    );
    let answer = raw(&rig, &format!("{head}{chunk}{chunk}0\r\n\r\n")).await;
    assert!(status(&answer) == 413 && answer.contains("41301"), "{answer}");
    let answer = raw(&rig, &format!("{head}{chunk}0\r\n\r\n")).await;
    assert_eq!(status(&answer), 400, "{answer}");
}

/// Two proxies that read a message's length in two ways make two requests of one: whatever could be read so ends its connection.
#[tokio::test]
async fn what_could_be_framed_in_two_ways_is_the_last_of_its_connection() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let body = request("tools/list", stated(json!({}))).to_string();
    let post = |framing: &str, body: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\naccept: */*\r\n\
             content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n{framing}\r\n\r\n{body}"
        )
    };
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = format!("content-length: {}", body.len());
    let answers = |text: &str| text.matches("HTTP/1.1 ").count();
    let next = post(&length, &body);

    let whole = raw(&rig, &format!("{}{}", post(&length, &body), next)).await;
    assert_eq!((status(&whole), answers(&whole)), (200, 2), "two requests after each other: {whole}");
    for framing in ["transfer-encoding: chunked", "Transfer-Encoding: Chunked"] {
        let alone = raw(&rig, &format!("{}{next}", post(framing, &chunked))).await;
        assert_eq!((status(&alone), answers(&alone)), (200, 1), "{framing}: {alone}");
        assert!(alone.contains("connection: close"), "{alone}");
    }
    for framing in
        ["content-length: 4\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 4"]
    {
        let smuggled = raw(&rig, &format!("{}{next}", post(framing, &chunked))).await;
        assert_eq!(answers(&smuggled), 1, "{framing}: {smuggled}");
    }
    for framing in [
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding:",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: +5",
        "content-length: 5, 5",
    ] {
        let refused = raw(&rig, &format!("{}{next}", post(framing, &chunked))).await;
        assert_eq!((status(&refused), answers(&refused)), (400, 1), "{framing}: {refused}");
    }
}

#[tokio::test]
async fn a_head_beyond_all_bounds_is_cut() {
    let rig = Rig::start().await;
    let huge = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "v".repeat(200_000));
    let mut stream = TcpStream::connect(rig.sidecar.local_addr()).await.unwrap();
    let _ = stream.write_all(huge.as_bytes()).await;
    let mut answer = vec![0; 64];
    let read = stream.read(&mut answer).await.unwrap_or_default();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.is_empty() || status(&answer) == 431, "{answer}");
    let many: String = (0..120).map(|n| format!("x-{n}: v\r\n")).collect();
    let answer = raw(&rig, &format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{many}connection: close\r\n\r\n")).await;
    assert_eq!(status(&answer), 431, "{answer}");
}

/// Thirty seconds for a body.
#[tokio::test]
async fn a_body_that_does_not_end_is_told_so_after_a_while() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{{"
    );
    let mut stream = TcpStream::connect(rig.sidecar.local_addr()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(status(&answer), 408, "{answer}");
    assert!(answer.contains(DenyReason::RequestTimeout.message()), "{answer}");
}

/// Ten seconds for a head; whoever sent none of it is not told anything.
#[tokio::test]
async fn a_head_that_does_not_end_is_told_so_after_a_while() {
    let rig = Rig::start().await;
    let answer = |sent: &'static str| {
        let address = rig.sidecar.local_addr();
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }
    };
    let (half, nothing) = tokio::join!(answer("POST /mcp HTTP/1.1\r\nhost: local"), answer(""));
    assert_eq!((status(&half), nothing.as_str()), (408, ""), "{half}");
}
