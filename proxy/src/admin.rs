//! What the platform asks of a sidecar, on a port of its own: alive, ready, and its numbers.

use std::sync::Arc;

use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};

use crate::{
    metrics::Metrics,
    respond::{self, Reply},
    state::Shared,
};

/// Answers one request of the platform.
pub async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Reply {
    if request.method() != Method::GET {
        return respond::empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => match ready(&shared) {
            Ok(()) => text(StatusCode::OK, "ready\n".to_owned()),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        },
        "/metrics" => text(StatusCode::OK, Metrics::page(&shared)),
        _ => respond::empty(StatusCode::NOT_FOUND),
    }
}

/// Ready is: has a snapshot, the server answered, its catalogue was verified.
fn ready(shared: &Shared) -> Result<(), String> {
    let enforced = shared.enforced.load_full().ok_or_else(|| "no snapshot yet".to_owned())?;
    let why = |refusal: respond::Refusal| {
        let detail = refusal.reasons.into_iter().find_map(|reason| reason.detail);
        detail.unwrap_or_else(|| refusal.reason.message().to_owned())
    };
    enforced.catalogue().map_err(why)?;
    shared.check_fresh(enforced.snapshot()).map_err(why)
}

fn text(status: StatusCode, body: String) -> Reply {
    let mut reply = Reply::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    reply.headers_mut().insert(header::CONTENT_TYPE, media);
    reply
}
