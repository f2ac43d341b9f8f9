//! A support desk that a test can make say anything, over plain HTTP with the legacy handshake.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What it says and what it heard.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The tools as one text: `[…]`.
    pub(crate) tools: String,
    /// Where set, the whole text of `result` or `error` of the next calls, with the member's name.
    pub(crate) answer: Option<(&'static str, String)>,
    /// What it tells every client to do.
    pub(crate) instructions: Option<&'static str>,
    /// Where set, the list is answered with this status and nothing.
    pub(crate) broken: bool,
    /// How long a call takes.
    pub(crate) delay: Duration,
    /// Every request, head and body.
    pub(crate) heard: Vec<(HeaderMap, Value)>,
    /// Sessions that were opened.
    pub(crate) sessions: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) url: String,
}

pub(crate) const LOOKUP: &str = r#"{"name":"policy_lookup","description":"Look up the current refund policy.","inputSchema":{"type":"object","properties":{"topic":{"type":"string"}},"required":["topic"]}}"#;
pub(crate) const TAG: &str = r#"{"name":"case_tag","description":"Apply a reviewed routing tag to a support case.","inputSchema":{"type":"object","properties":{"case_id":{"type":"string"},"tag":{"enum":["manual_review","eligible"]},"idempotency_key":{"type":"string"}},"required":["case_id","tag","idempotency_key"]}}"#;
pub(crate) const TAG_AND_NOTIFY: &str = r#"{"name":"case_tag","description":"Apply a reviewed routing tag to a support case.","inputSchema":{"type":"object","properties":{"case_id":{"type":"string"},"tag":{"enum":["manual_review","eligible"]},"idempotency_key":{"type":"string"},"notify_customer":{"type":"boolean"}},"required":["case_id","tag","idempotency_key"]}}"#;
/// Offered, and never declared.
pub(crate) const WIPE: &str = r#"{"name":"wipe_all","inputSchema":{"type":"object"}}"#;

impl Desk {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let state = State { tools: format!("[{LOOKUP},{TAG},{WIPE}]"), ..State::default() };
        let desk = Self { state: Arc::new(Mutex::new(state)), url };
        let served = desk.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let desk = served.clone();
                let service = service_fn(move |request| {
                    let desk = desk.clone();
                    async move { Ok::<_, Infallible>(desk.serve(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        desk
    }

    /// Bodies of the calls that arrived.
    pub(crate) fn calls(&self) -> Vec<Value> {
        let heard = &self.state.lock().unwrap().heard;
        heard.iter().map(|(_, body)| body.clone()).filter(|body| body["method"] == "tools/call").collect()
    }

    /// Everything that arrived, as text.
    pub(crate) fn everything(&self) -> String {
        format!("{:?}", self.state.lock().unwrap().heard)
    }

    async fn serve(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or_default();
        let delay = {
            let mut state = self.state.lock().unwrap();
            state.heard.push((head.headers.clone(), body.clone()));
            state.delay
        };
        if body["method"] == "tools/call" {
            tokio::time::sleep(delay).await;
        }
        self.answer(&head, &body)
    }

    fn answer(&self, head: &http::request::Parts, body: &Value) -> Response<Full<Bytes>> {
        let mut state = self.state.lock().unwrap();
        let bare = |status| Response::builder().status(status).body(Full::default()).unwrap();
        if head.method != http::Method::POST {
            return bare(StatusCode::METHOD_NOT_ALLOWED);
        }
        let (member, result) = match body["method"].as_str().unwrap_or_default() {
            "initialize" => {
                state.sessions += 1;
                let info = json!({"name": "support-contracts", "version": "1.0.0"});
                let capabilities = json!({"tools": {}});
                let revision = &body["params"]["protocolVersion"];
                let mut result = json!({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info});
                if let Some(instructions) = state.instructions {
                    result["instructions"] = json!(instructions);
                }
                ("result", result.to_string())
            }
            "tools/list" if state.broken => return bare(StatusCode::INTERNAL_SERVER_ERROR),
            "tools/list" => ("result", format!(r#"{{"tools":{}}}"#, state.tools)),
            "tools/call" => state.answer.clone().unwrap_or_else(|| {
                let said = json!({"content": [{"type": "text", "text": body["params"].to_string()}]});
                ("result", said.to_string())
            }),
            method if method.starts_with("notifications/") => return bare(StatusCode::ACCEPTED),
            _ => ("error", r#"{"code":-32601,"message":"Method not found"}"#.to_owned()),
        };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{result}}}"#, body["id"]);
        let reply = Response::builder().header("content-type", "application/json");
        let reply = reply.header("mcp-session-id", format!("desk-{}", state.sessions));
        reply.body(Full::new(answer.into())).unwrap()
    }
}
