//! Servers for tests that do what no real server can be made to do. The replies are raw bytes, so that any of them can be
//! wrong in any way; what was asked is kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cotter_core::snapshot::{self, Sessions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Bounds, Upstream};

pub(crate) const BOUNDS: Bounds = Bounds { connect: Duration::from_secs(5), start: Duration::from_secs(5) };

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub method: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    pub json: Value,
    /// Which connection it came over, counted from 0.
    pub connection: usize,
}

impl Seen {
    pub(crate) fn rpc(&self) -> &str {
        self.json["method"].as_str().unwrap_or_default()
    }

    /// A response of success to this request.
    pub(crate) fn result(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.json["id"], "result": result}).to_string()
    }
}

/// What comes back.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// These bytes, and the connection stays open.
    Raw(Vec<u8>),
    /// These bytes, and then the end.
    Last(Vec<u8>),
    /// These bytes, and then nothing for ever.
    Hang(Vec<u8>),
    /// These bytes again and again.
    Endless(Vec<u8>, Vec<u8>),
}

pub(crate) fn http(status: u16, headers: &str, body: &str) -> Reply {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    Reply::Raw((head + body).into_bytes())
}

pub(crate) fn json(body: &str) -> Reply {
    http(200, "content-type: application/json\r\n", body)
}

pub(crate) fn events(body: &str) -> Reply {
    http(200, "content-type: text/event-stream\r\n", body)
}

/// A stream that stays open after these events.
pub(crate) fn open_stream(body: &str) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Reply::Hang(format!("{head}{:x}\r\n{body}\r\n", body.len()).into_bytes())
}

/// An HTTP server with one handler.
#[derive(Debug)]
pub(crate) struct Fake {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    pub(crate) async fn serve(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, handler) = (Arc::clone(&seen), Arc::new(handler));
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(converse(stream, connection, Arc::clone(&kept), Arc::clone(&handler)));
            }
        });
        Self { url, seen }
    }

    /// A server of the legacy era with a session, which leaves all but the handshake to the handler.
    pub(crate) async fn legacy(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(move |seen| match (seen.method.as_str(), seen.rpc()) {
            ("POST", "initialize") => {
                let body = seen.result(&initialized());
                http(200, "content-type: application/json\r\nmcp-session-id: s-1\r\n", &body)
            }
            ("POST", "notifications/initialized") | ("DELETE", _) => http(202, "", ""),
            _ => handler(seen),
        })
        .await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Requests of one JSON-RPC method.
    pub(crate) fn asked(&self, method: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.rpc() == method).collect()
    }

    pub(crate) fn upstream(&self) -> Upstream {
        let config = snapshot::Upstream::Http { url: self.url.clone(), credentials: None, ca_file: None };
        Upstream::new(&config, BOUNDS, None).unwrap()
    }
}

pub(crate) fn initialized() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "fake", "version": "1"},
        "instructions": "be kind",
    })
}

async fn converse(
    mut stream: TcpStream,
    connection: usize,
    seen: Arc<Mutex<Vec<Seen>>>,
    handler: Arc<impl Fn(&Seen) -> Reply>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = request(&mut stream, &mut buffer, connection).await {
        let reply = handler(&request);
        seen.lock().unwrap().push(request);
        // The other side may have given up.
        match reply {
            Reply::Raw(bytes) => drop(stream.write_all(&bytes).await),
            Reply::Last(bytes) => {
                drop(stream.write_all(&bytes).await);
                return;
            }
            Reply::Hang(bytes) => {
                drop(stream.write_all(&bytes).await);
                let mut rest = Vec::new();
                drop(stream.read_to_end(&mut rest).await);
                return;
            }
            Reply::Endless(head, again) => {
                drop(stream.write_all(&head).await);
                while stream.write_all(&again).await.is_ok() {}
                return;
            }
        }
    }
}

async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<Seen> {
    let head = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break buffer.drain(..at + 4).collect::<Vec<u8>>();
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let method = lines.next()?.split(' ').next()?.to_owned();
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(buffer.drain(..length).collect()).unwrap();
    let json = serde_json::from_str(&body).unwrap_or_default();
    Some(Seen { method, headers, body, json, connection })
}

/// Answers the handshake of a process.
pub(crate) const HELLO: &str = r#"
read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"2"}}}'
read -r line
"#;

/// A server that is a shell script.
pub(crate) fn script(script: &str, sessions: Sessions) -> Upstream {
    script_within(script, sessions, BOUNDS.start)
}

pub(crate) fn script_within(script: &str, sessions: Sessions, start: Duration) -> Upstream {
    let command = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
    let env = BTreeMap::from([("DECLARED".to_owned(), "yes".to_owned())]);
    let config = snapshot::Upstream::Child { command, env, sessions };
    Upstream::new(&config, Bounds { start, ..BOUNDS }, None).unwrap()
}
