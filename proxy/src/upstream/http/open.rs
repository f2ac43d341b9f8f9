//! How an HTTP session begins.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::super::error::{CallError, UpstreamError};
use super::super::handshake::{self, DISCOVER, Hello, INITIALIZE, MAX_HELLO};
use super::super::message::{self, Era, MODERN};
use super::super::{Answer, Bounds};
use super::{Current, Endpoint, answer, route};

/// Ids below it are used up by the handshake.
pub(super) const FIRST_FREE_ID: u64 = 3;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Session ids are a few dozen bytes; one of more than this would be repeated with each request.
const MAX_SESSION: usize = 1024;

/// Opens a session, within the time that a server may take to start.
pub(super) async fn open(endpoint: &Endpoint, number: u64) -> Result<Current, UpstreamError> {
    let Bounds { start, .. } = *endpoint.bounds();
    let late = UpstreamError::Exchange { doing: INITIALIZE, source: CallError::Timeout { dispatched: true } };
    let opened = timeout(start, negotiate(endpoint)).await.unwrap_or(Err(late))?;
    Ok(Current { number, ..opened })
}

/// `initialize` first: servers of both eras answer it. One that refuses it is asked what it is, and where that helps no
/// further, it is told about by what it said first.
async fn negotiate(endpoint: &Endpoint) -> Result<Current, UpstreamError> {
    let refusal = match legacy(endpoint).await {
        Err(error) if says_no(&error) => error,
        outcome => return outcome,
    };
    match modern(endpoint).await {
        Err(error) if says_no(&error) => Err(refusal),
        outcome => outcome,
    }
}

/// Whether the server answered and would not, for another reason than who asked.
const fn says_no(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Refused { .. } => true,
        UpstreamError::Exchange { source: CallError::Refused { status }, .. } => {
            *status >= 400 && *status < 500 && *status != 401 && *status != 403
        }
        _ => false,
    }
}

async fn legacy(endpoint: &Endpoint) -> Result<Current, UpstreamError> {
    let failed = |source| UpstreamError::Exchange { doing: INITIALIZE, source };
    let body = message::initialize(1).into();
    let response = endpoint.send(Method::POST, endpoint.headers().clone(), body).await.map_err(failed)?;
    let session = response.headers().get(SESSION).cloned();
    let result = answer(response, 1).await.map_err(failed)?.result(INITIALIZE)?;
    let hello = handshake::initialized(&result, "http")?;
    let current = current(endpoint, hello, session)?;
    let body = message::initialized().into();
    let told = endpoint.send(Method::POST, current.headers.clone(), body).await.map_err(failed)?;
    if !told.status().is_success() {
        return Err(failed(CallError::Refused { status: told.status().as_u16() }));
    }
    Ok(current)
}

async fn modern(endpoint: &Endpoint) -> Result<Current, UpstreamError> {
    let failed = |source| UpstreamError::Exchange { doing: DISCOVER, source };
    let mut headers = versioned(endpoint.headers().clone(), MODERN);
    route(&mut headers, "server/discover", None);
    let response = endpoint.send(Method::POST, headers, message::discover(2).into()).await.map_err(failed)?;
    let result = answer(response, 2).await.map_err(failed)?.result(DISCOVER)?;
    current(endpoint, handshake::discovered(&result, "http")?, None)
}

async fn answer(response: Response<Incoming>, id: u64) -> Result<Answer, CallError> {
    if response.status().is_success() {
        answer::read_alone(response, id, MAX_HELLO).await
    } else {
        answer::refusal(response, id).await
    }
}

fn current(endpoint: &Endpoint, hello: Hello, session: Option<HeaderValue>) -> Result<Current, UpstreamError> {
    let mut headers = versioned(endpoint.headers().clone(), hello.revision);
    let session = session.filter(|_| hello.era == Era::Legacy);
    let has_session = session.is_some();
    if let Some(mut session) = session {
        let legal = session.len() <= MAX_SESSION && session.as_bytes().iter().all(u8::is_ascii_graphic);
        if !legal || session.is_empty() {
            return Err(UpstreamError::Shape {
                doing: INITIALIZE,
                problem: "has a session id that is not visible ASCII",
            });
        }
        session.set_sensitive(true);
        headers.insert(SESSION, session);
    }
    Ok(Current { hello: Arc::new(hello), headers, has_session, number: 0 })
}

fn versioned(mut headers: HeaderMap, revision: &'static str) -> HeaderMap {
    headers.insert(VERSION, HeaderValue::from_static(revision));
    headers
}
