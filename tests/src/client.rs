//! Public MCP clients, unchanged, and a bare HTTP request for what no client would send.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
};

use serde_json::{Value, json};

use crate::programs::{Said, root, tools};

/// A client that a user could have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// The TypeScript SDK, which begins with `initialize`.
    TypeScript,
    /// The Python SDK as it is by default: the stateless revision first.
    Python,
    /// The Python SDK made to begin with `initialize`.
    PythonLegacy,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TypeScript, Self::Python, Self::PythonLegacy];

    /// Takes steps, each `["tools/list"]` or `["tools/call", NAME, ARGUMENTS]`; an answer for each, `{"result"}` or `{"error"}`.
    ///
    /// # Panics
    /// If the client itself fails.
    #[must_use]
    pub fn run(self, url: &str, token: &str, steps: &Value) -> Vec<Value> {
        let clients = root().join("tests/clients");
        let mut command = match self {
            Self::TypeScript => {
                let mut command = Command::new("node");
                command.arg(clients.join("typescript.mjs"));
                command
            }
            Self::Python | Self::PythonLegacy => {
                let mut command = Command::new(tools().join("python/bin/python"));
                command.arg(clients.join("python.py"));
                command
            }
        };
        command.args([url, token, &steps.to_string()]).env("COTTER_TEST_TOOLS", tools());
        if self == Self::PythonLegacy {
            command.arg("legacy");
        }
        let said = Said::run(&mut command);
        let answers =
            said.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}: {said:?}")));
        let answers: Vec<Value> = answers.collect();
        assert!(!answers.is_empty(), "{self:?}: {said:?}");
        answers
    }

    /// The names that a list shows, in its order.
    ///
    /// # Panics
    /// If there is no list.
    #[must_use]
    pub fn names(answer: &Value) -> Vec<&str> {
        let tools =
            answer.pointer("/result/tools").and_then(Value::as_array).unwrap_or_else(|| panic!("no list: {answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
    }
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The head, as sent.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let of = |line: &'_ str| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name));
        self.head.lines().find(|line| of(line)).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }
}

/// Posts bytes to an endpoint with these headers, on a connection of its own.
///
/// # Panics
/// If there is no answer.
#[must_use]
pub fn post(url: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut head =
        format!("POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}

/// One stateless request of revision 2026-07-28.
///
/// # Panics
/// If there is no answer.
#[must_use]
pub fn modern(url: &str, token: &str, method: &str, name: Option<&str>, params: Value) -> Answer {
    let (headers, body) = request(method, name, params);
    let bearer = format!("Bearer {token}");
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain([("authorization", bearer.as_str())])
        .collect();
    post(url, &headers, body.as_bytes())
}

/// The headers, without a token, and the body of such a request.
#[must_use]
pub fn request(method: &str, name: Option<&str>, mut params: Value) -> (Vec<(&'static str, String)>, String) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "cotter-tests", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let fixed = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    let named = name.map(|name| ("mcp-name", name));
    (fixed.into_iter().chain(named).map(|(name, value)| (name, value.to_owned())).collect(), body)
}
