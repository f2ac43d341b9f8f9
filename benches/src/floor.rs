//! The floor: axum and the client of hyper-util, one thread, looking at nothing. What a proxy costs beyond it is its own work.

use std::net::SocketAddr;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderName, StatusCode, Uri, header,
        uri::{Authority, Scheme},
    },
    response::{IntoResponse as _, Response},
    serve::ListenerExt as _,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::{error::BenchError, role::single, upstream::listener};

/// Headers that belong to one connection (RFC 9110 section 7.6.1).
const HOP: [HeaderName; 5] =
    [header::CONNECTION, header::TE, header::TRAILER, header::UPGRADE, header::PROXY_AUTHORIZATION];

#[derive(Clone)]
struct Floor {
    client: Client<HttpConnector, Body>,
    upstream: Authority,
}

/// Serves until the process ends.
///
/// # Errors
/// No port is free.
pub(crate) fn serve(upstream: SocketAddr) -> Result<(), BenchError> {
    let upstream = upstream.to_string().parse().map_err(BenchError::wrong("name the upstream"))?;
    single()?.block_on(async {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        let floor = Floor { client: Client::builder(TokioExecutor::new()).build(tcp), upstream };
        let listener = listener().await?.tap_io(|stream| drop(stream.set_nodelay(true)));
        let app = Router::new().fallback(pass).with_state(floor);
        axum::serve(listener, app).await.map_err(BenchError::system("serve"))
    })
}

async fn pass(State(floor): State<Floor>, mut request: Request) -> Response {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(floor.upstream.clone());
    let Ok(uri) = Uri::from_parts(parts) else { return StatusCode::BAD_REQUEST.into_response() };
    *request.uri_mut() = uri;
    request.headers_mut().remove(header::HOST);
    for name in &HOP {
        request.headers_mut().remove(name);
    }
    match floor.client.request(request).await {
        Ok(mut response) => {
            for name in &HOP {
                response.headers_mut().remove(name);
            }
            response.map(Body::new)
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
