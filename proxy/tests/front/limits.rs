//! Bounds: rates, requests in flight, sizes, time, sessions; and what the platform sees.

use std::{net::SocketAddr, time::Duration};

use cotter_core::reason::DenyReason;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    hygiene::{raw, status},
    issuer::claims,
    rig::Rig,
};

const BOTH: &str = "policy:read case:write";

pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[tokio::test]
async fn a_principal_has_a_rate_of_its_own() {
    let slow = json!({"tokens": 1, "perMs": 60000, "burst": 2});
    let rig = Rig::with(|snapshot| snapshot["limits"]["ratePerPrincipal"] = slow).await;
    let token = rig.issuer.token(BOTH);
    for _ in 0..2 {
        assert_eq!(rig.modern(&token, "tools/list", json!({})).await.status, 200);
    }
    let told = rig.call(&rig.issuer.token("policy:read"), "policy_lookup").await;
    assert_eq!(
        (told.status, &told.json()["error"]["code"]),
        (429, &json!(42901)),
        "another token of the same principal"
    );
    assert_eq!(told.json()["error"]["data"]["reason"], "RateLimited");
    let wait: u64 = told.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let other = {
        let mut claims = claims(BOTH);
        claims["sub"] = json!("bob");
        rig.issuer.sign(&claims)
    };
    assert_eq!(rig.modern(&other, "tools/list", json!({})).await.status, 200);
}

/// Whatever a message asks for, and also where it cannot be read.
#[tokio::test]
async fn every_request_of_a_principal_is_counted_once() {
    let rig = Rig::with(|snapshot| {
        snapshot["limits"]["ratePerPrincipal"] = json!({"tokens": 1, "perMs": 3_600_000, "burst": 10});
    })
    .await;
    let person = |name: &str| {
        let mut claims = claims(BOTH);
        claims["sub"] = json!(name);
        rig.issuer.sign(&claims)
    };
    let kinds = ["initialize", "ping", "note", "unknown", "discover", "list", "call", "broken", "end"];
    for kind in kinds {
        let token = person(kind);
        let session = rig.session(&token).await;
        let ask = async || {
            let (bearer, tags) = (format!("Bearer {token}"), [("mcp-session-id", session.as_str())]);
            let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            match kind {
                "initialize" => rig.post(&token, &[], &crate::rig::initialize("2025-11-25")).await,
                "ping" => rig.legacy(&token, &session, "ping", json!({})).await,
                "note" => rig.post(&token, &tags, &note).await,
                "unknown" => rig.modern(&token, "nothing/here", json!({})).await,
                "discover" => rig.modern(&token, "server/discover", json!({})).await,
                "list" => rig.legacy(&token, &session, "tools/list", json!({})).await,
                "call" => rig.call(&token, "policy_lookup").await,
                "broken" => rig.post_text(Some(&token), &[], "not json").await,
                _ => {
                    let head = [("authorization", bearer.as_str()), ("mcp-session-id", "unknown")];
                    rig.send(http::Method::DELETE, "/mcp", &head, "").await
                }
            }
        };
        // One of ten opened the session.
        for count in 1..10 {
            assert_ne!(ask().await.status, 429, "{kind} {count}");
        }
        let told = ask().await;
        assert_eq!((told.status, &told.json()["error"]["code"]), (429, &json!(42901)), "{kind}: {told:?}");
        assert!(told.header("retry-after").unwrap().parse::<u64>().unwrap() > 60, "{kind}: {told:?}");
    }
    let chunk = format!("{:x}\r\n{}\r\n", 40_000, " ".repeat(40_000));
    let large = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\naccept: */*\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{chunk}{chunk}0\r\n\r\n",
        person("large")
    );
    for _ in 0..10 {
        assert_eq!(status(&raw(&rig, &large).await), 413, "what is too large costs as much");
    }
    assert_eq!(status(&raw(&rig, &large).await), 429);
}

#[tokio::test]
async fn a_tool_has_a_rate_for_all() {
    let rig = Rig::with(|snapshot| {
        snapshot["tools"]["policy_lookup"]["rate"] = json!({"tokens": 1, "perMs": 60000, "burst": 1});
    })
    .await;
    let token = rig.issuer.token(BOTH);
    assert_eq!(rig.call(&token, "policy_lookup").await.status, 200);
    assert_eq!(rig.call(&token, "policy_lookup").await.status, 429);
    assert_eq!(rig.call(&token, "case_tag").await.status, 200);
    assert_eq!(rig.desk.calls().len(), 2);
    // Who may not use the tool does not learn that it has a rate.
    let none = rig.issuer.token("none");
    assert_eq!(rig.call(&none, "policy_lookup").await.face(), rig.call(&none, "no_such_tool").await.face());
}

#[tokio::test]
async fn requests_in_flight_are_bounded() {
    let rig = Rig::with(|snapshot| snapshot["limits"]["concurrent"] = json!(1)).await;
    let token = rig.issuer.token(BOTH);
    rig.call(&token, "policy_lookup").await;
    rig.desk.state.lock().unwrap().delay = Duration::from_millis(600);
    let (one, two) = tokio::join!(rig.call(&token, "policy_lookup"), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        rig.call(&token, "policy_lookup").await
    });
    assert_eq!((one.status, two.status, &two.json()["error"]["code"]), (200, 503, &json!(50304)));
    assert_eq!(two.json()["error"]["data"]["reason"], "TooManyRequests");
    rig.desk.state.lock().unwrap().delay = Duration::ZERO;
    assert_eq!(rig.call(&token, "policy_lookup").await.status, 200);
}

/// Asks until there is an answer that fits: a connection or a body is counted a moment after it was sent.
async fn until<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            match ask().await {
                Some(answer) => return answer,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.expect("it happens")
}

/// 16 MiB of bodies that are announced and never sent: they keep out who sends them, and nobody else.
#[tokio::test]
async fn bodies_that_are_announced_and_not_sent_keep_nobody_else_out() {
    let mut rig = Rig::start().await;
    let (alice, mut bob) = (rig.issuer.token(BOTH), claims(BOTH));
    bob["sub"] = json!("bob");
    let bob = rig.issuer.sign(&bob);
    let announced = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {alice}\r\naccept: */*\r\n\
         content-type: application/json\r\ncontent-length: 65536\r\n\r\n"
    );
    let mut waiting = Vec::new();
    for _ in 0..255 {
        let mut stream = TcpStream::connect(rig.sidecar.local_addr()).await.unwrap();
        stream.write_all(announced.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    assert_eq!(rig.listed(&alice).await.len(), 2, "there is room for one more");
    let mut stream = TcpStream::connect(rig.sidecar.local_addr()).await.unwrap();
    stream.write_all(announced.as_bytes()).await.unwrap();
    waiting.push(stream);
    let refused =
        until(async || Some(rig.modern(&alice, "tools/list", json!({})).await).filter(|told| told.status != 200)).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!(50304)));
    assert_eq!(rig.record(&refused).await.reasons[0].code, DenyReason::TooManyRequests);
    assert_eq!(rig.listed(&bob).await.len(), 2);
    drop(waiting);
    until(async || Some(rig.modern(&alice, "tools/list", json!({})).await).filter(|told| told.status == 200)).await;
}

/// A peer that opens connections and says nothing: what is beyond its places is closed, and another address is served.
#[tokio::test]
async fn connections_of_one_address_are_bounded() {
    let rig = Rig::start().await;
    let from = |address: &'static str| {
        let to = rig.sidecar.local_addr();
        async move {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
            socket.connect(to).await.unwrap()
        }
    };
    let mut open = Vec::new();
    for _ in 0..1024 {
        open.push(from("127.0.0.2").await);
    }
    let ask = "GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = |mut stream: TcpStream| async move {
        let mut answer = String::new();
        let _reset = stream.write_all(ask.as_bytes()).await;
        let _reset = stream.read_to_string(&mut answer).await;
        answer
    };
    assert_eq!(answer(from("127.0.0.2").await).await, "", "one too many");
    assert_eq!(status(&answer(from("127.0.0.3").await).await), 405);
    drop(open);
    let told = until(async || Some(answer(from("127.0.0.2").await).await).filter(|told| !told.is_empty())).await;
    assert_eq!(status(&told), 405);
}

#[tokio::test]
async fn a_tool_has_its_own_deadline_and_its_own_size() {
    let mut rig = Rig::with(|snapshot| {
        snapshot["tools"]["policy_lookup"]["timeoutMs"] = json!(150);
        snapshot["tools"]["case_tag"]["resultBytes"] = json!(40);
    })
    .await;
    let token = rig.issuer.token(BOTH);
    rig.call(&token, "policy_lookup").await;
    rig.desk.state.lock().unwrap().delay = Duration::from_millis(400);
    let told = rig.call(&token, "policy_lookup").await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (504, &json!(50401)));
    assert!(rig.record(&told).await.reasons[0].detail.as_deref().unwrap().contains("outcome unknown"));
    assert_eq!(rig.call(&token, "case_tag").await.status, 502, "its result is larger than 40 bytes");
    rig.desk.state.lock().unwrap().answer = Some(("result", r#"{"content":[]}"#.to_owned()));
    assert_eq!(rig.call(&token, "case_tag").await.status, 200);
    rig.desk.state.lock().unwrap().answer = Some(("result", format!(r#"{{"content":["{}"]}}"#, "x".repeat(200))));
    let told = rig.call(&token, "case_tag").await;
    assert_eq!(&told.json()["error"]["code"], &json!(50202));
    assert_eq!(rig.record(&told).await.reasons[0].code, DenyReason::ResultTooLarge);
    rig.desk.state.lock().unwrap().answer = Some(("result", r#"{"content":[],"content":[]}"#.to_owned()));
    let told = rig.call(&token, "case_tag").await;
    assert_eq!(&told.json()["error"]["code"], &json!(50201));
    assert_eq!(rig.record(&told).await.reasons[0].code, DenyReason::UpstreamMalformed);
}

#[tokio::test]
async fn sessions_are_bounded() {
    let rig = Rig::with(|snapshot| snapshot["limits"]["sessions"] = json!(2)).await;
    let token = rig.issuer.token(BOTH);
    let (one, _two) = (rig.session(&token).await, rig.session(&token).await);
    let told = rig.post(&token, &[], &crate::rig::initialize("2025-11-25")).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (503, &json!(50303)));
    assert_eq!(told.json()["error"]["data"]["reason"], "TooManySessions");
    let bearer = format!("Bearer {token}");
    let end = [("authorization", bearer.as_str()), ("mcp-session-id", one.as_str())];
    assert_eq!(rig.send(http::Method::DELETE, "/mcp", &end, "").await.status, 200);
    rig.session(&token).await;
}

#[tokio::test]
async fn the_platform_sees_health_readiness_and_numbers() {
    let rig = Rig::start().await;
    let admin = rig.sidecar.admin_addr().unwrap();
    let token = rig.issuer.token("policy:read");
    rig.call(&token, "policy_lookup").await;
    rig.call(&token, "case_tag").await;
    assert_eq!(get(admin, "/healthz").await.0, 200);
    assert_eq!(get(admin, "/readyz").await.0, 200);
    let (status, page) = get(admin, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "cotter_requests_total{outcome=\"allowed\",method=\"tools/call\"} 1",
        "cotter_requests_total{outcome=\"refused\",reason=\"MissingScope\"} 1",
        "cotter_tools_callable 2",
        "cotter_tools_unlisted 1",
        "cotter_catalogue_verified 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    assert_eq!(get(admin, "/mcp").await.0, 404);
    assert_eq!(get(rig.sidecar.local_addr(), "/metrics").await.0, 404);
}

#[tokio::test]
async fn a_record_says_who_asked_for_what_and_never_the_arguments() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let told = rig.call(&token, "policy_lookup").await;
    let record = rig.record(&told).await;
    let caller = record.principal.as_ref().unwrap();
    assert_eq!((caller.subject.as_str(), caller.tenant.as_ref().map(|t| t.as_str())), ("alice", Some("tenant-7")));
    assert_eq!((record.method.as_deref(), record.tool.as_deref()), (Some("tools/call"), Some("policy_lookup")));
    assert!(record.allow && record.fingerprint.is_some() && record.snapshot.is_some() && record.status == 200);
    let line = serde_json::to_string(&*record).unwrap();
    assert!(!line.contains("refund") && !line.contains(&token), "{line}");
}
