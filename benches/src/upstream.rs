//! A fast MCP server of revision 2025-06-18: twenty tools that return their text. About 10 µs of CPU a call, so that it is never what
//! limits a proxy on another core.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt as _,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    error::BenchError,
    role::{ready, single},
    world,
};

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Serves until the process ends.
///
/// # Errors
/// No port is free.
pub(crate) fn serve() -> Result<(), BenchError> {
    single()?.block_on(async {
        let listener = listener().await?;
        let tools: &'static str = world::definitions().join(",").leak();
        let answer = move |body: Bytes| async move { answer(&body, tools) };
        let app = Router::new().route("/mcp", post(answer).delete(|| async { StatusCode::OK }));
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, app).await.map_err(BenchError::system("serve"))
    })
}

/// A listener on a free loopback port, announced.
pub(crate) async fn listener() -> Result<tokio::net::TcpListener, BenchError> {
    let failed = "listen on a loopback port";
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.map_err(BenchError::system(failed))?;
    ready(listener.local_addr().map_err(BenchError::system(failed))?);
    Ok(listener)
}

fn answer(body: &[u8], tools: &str) -> Response {
    static SESSION: AtomicU64 = AtomicU64::new(1);
    let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (Some(id), Some(method)) = (message.id, message.method) else { return StatusCode::ACCEPTED.into_response() };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let outcome = match &*method {
        "tools/call" => called(message.params),
        "tools/list" => format!(r#""result":{{"tools":[{tools}]}}"#),
        "initialize" => {
            headers.insert("mcp-session-id", SESSION.fetch_add(1, Ordering::Relaxed).into());
            let server = r#""capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}"#;
            format!(r#""result":{{"protocolVersion":"{}",{server}}}"#, world::REVISION)
        }
        "ping" => r#""result":{}"#.to_owned(),
        _ => r#""error":{"code":-32601,"message":"Method not found"}"#.to_owned(),
    };
    (headers, format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#)).into_response()
}

fn called(params: Option<Params<'_>>) -> String {
    match params.and_then(|params| params.arguments).and_then(|arguments| arguments.text) {
        Some(text) => format!(r#""result":{{"content":[{{"type":"text","text":{text}}}],"isError":false}}"#),
        None => r#""error":{"code":-32602,"message":"text is missing"}"#.to_owned(),
    }
}
