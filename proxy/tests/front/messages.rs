//! Bodies as data: `messages.yaml`.

use cotter_core::reason::DenyReason;
use serde::Deserialize;
use serde_json::json;

use crate::rig::Rig;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    body: String,
    /// `@` in the body stands for an array nested this deep.
    nest: Option<usize>,
    code: Option<i64>,
}

#[tokio::test]
async fn a_body_is_one_strict_message_or_refused() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("messages.yaml")).unwrap();
    assert!(cases.len() > 40 && cases.iter().any(|case| case.code.is_none()));
    for case in cases {
        let depth = case.nest.unwrap_or_default();
        let body = case.body.replace('@', &("[".repeat(depth) + &"]".repeat(depth)));
        let told = rig.post_text(Some(&token), &[], &body).await;
        let message = &told.json()["error"]["message"];
        match case.code {
            Some(code) => {
                assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(code)), "{}", case.name);
                assert!(message == "parse error" || message == "invalid request", "{}: {message}", case.name);
                let reason = if code == -32700 { DenyReason::ParseError } else { DenyReason::InvalidRequest };
                assert_eq!(rig.record(&told).await.reasons[0].code, reason, "{}", case.name);
            }
            None => assert_eq!((told.status, message), (400, &json!("session id required")), "{}", case.name),
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_utf8_is_refused() {
    let rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    let mut body = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    body.extend_from_slice(b"\"\xff\",\"method\":\"ping\"}");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\naccept: */*\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(rig.sidecar.local_addr()).await.unwrap();
    stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("-32700"), "{answer}");
}
