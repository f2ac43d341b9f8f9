//! A client's session with one endpoint (MCP 2025-11-25, Streamable HTTP).

use cotter_core::reason::DenyReason;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    failure::{Doing as _, Failure},
    http1::{self, Answer, Ask},
};

/// The revision that this client speaks.
const REVISION: &str = "2025-11-25";

/// An open session.
pub(crate) struct Session {
    authority: String,
    path: String,
    token: String,
    id: Option<String>,
    asked: u64,
}

/// One answer, as a client sees it.
pub(crate) struct Reply {
    status: StatusCode,
    decision: Option<String>,
    session: Option<String>,
    message: Value,
}

impl Session {
    /// Opens a session; the inner error is the refusal of the endpoint.
    pub(crate) async fn open(endpoint: &str, token: &str) -> Result<Result<Self, Reply>, Failure> {
        let rest = endpoint
            .strip_prefix("http://")
            .ok_or_else(|| Failure::cannot(format!("{endpoint} is not a loopback URL")))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (authority, path) = (authority.to_owned(), format!("/{path}"));
        let mut session = Self { authority, path, token: token.to_owned(), id: None, asked: 0 };
        let client = json!({"name": "cotter", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        let reply = session.ask("initialize", params).await?;
        if reply.result().is_none() {
            return Ok(Err(reply));
        }
        session.id.clone_from(&reply.session);
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(Ok(session))
    }

    /// Asks one thing.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Reply, Failure> {
        self.asked += 1;
        let answer =
            self.send(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})).await?;
        Reply::read(answer)
    }

    /// Ends the session; whether the endpoint heard it does not matter any more.
    pub(crate) async fn close(&self) {
        let headers = self.headers();
        let ask = Ask { method: Method::DELETE, path: &self.path, headers, body: None };
        drop(http1::tcp(&self.authority, ask).await);
    }

    async fn send(&self, message: &Value) -> Result<Answer, Failure> {
        let mut headers = self.headers();
        headers.push(("accept", "application/json, text/event-stream".to_owned()));
        let ask = Ask { method: Method::POST, path: &self.path, headers, body: Some(message.to_string()) };
        http1::tcp(&self.authority, ask).await
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("authorization", format!("Bearer {}", self.token))];
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id", id.clone()));
            headers.push(("mcp-protocol-version", REVISION.to_owned()));
        }
        headers
    }
}

impl Reply {
    fn read(answer: Answer) -> Result<Self, Failure> {
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let is_stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let message = if is_stream { last_event(&answer.body) } else { serde_json::from_slice(&answer.body) };
        let message = message.doing(format!("read the answer (HTTP {})", answer.status))?;
        Ok(Self {
            status: answer.status,
            decision: header("cotter-decision"),
            session: header("mcp-session-id"),
            message,
        })
    }

    /// The result, where it is one.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.message.get("result")
    }

    /// The error, where it is one.
    pub(crate) fn error(&self) -> Option<&Value> {
        self.message.get("error")
    }

    /// The tools of a list.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Value> {
        self.message.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten()
    }

    /// The id of the decision, for the audit.
    pub(crate) fn decision(&self) -> Option<&str> {
        self.decision.as_deref()
    }

    /// A refusal of Cotter's that the revision wants as the tool's result.
    pub(crate) fn refusal(&self) -> Option<&Value> {
        self.message.pointer("/result/_meta/cotter.dev~1refusal")
    }

    /// The words of the error.
    pub(crate) fn message(&self) -> &str {
        let words = match self.refusal() {
            Some(_) => self.message.pointer("/result/content/0/text"),
            None => self.error().and_then(|error| error.get("message")),
        };
        words.and_then(Value::as_str).unwrap_or("no reason given")
    }

    /// The name of the refusal that the caller is given: Cotter's reason, else the code.
    pub(crate) fn told(&self) -> String {
        let error = self.error();
        let data = self.refusal().or_else(|| error.and_then(|error| error.get("data")));
        let reason = data.and_then(|data| data.get("reason")).and_then(Value::as_str);
        match (reason, error.and_then(|error| error.get("code"))) {
            (Some(reason), _) => reason.to_owned(),
            _ if self.message() == DenyReason::NotOffered.message() => "UnknownTool".to_owned(),
            _ if self.status == StatusCode::UNAUTHORIZED => "Unauthorized".to_owned(),
            (None, Some(code)) => format!("HTTP {} {code}", self.status.as_u16()),
            (None, None) => format!("HTTP {}", self.status.as_u16()),
        }
    }
}

fn last_event(body: &[u8]) -> serde_json::Result<Value> {
    let text = String::from_utf8_lossy(body);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).rfind(|data| !data.is_empty());
    serde_json::from_str(data.unwrap_or_default())
}
