//! Health and metrics, on a port of their own and without TLS: for kubelet and Prometheus.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio::{net::TcpListener, sync::watch};

use crate::{metrics, operator::Operator};

/// What is asked for.
#[derive(Clone)]
struct Health {
    operator: Arc<Operator>,
    ready: watch::Receiver<bool>,
}

/// Serves until `stopping` turns true. `ready` is true once every watch was filled and the stream is served.
///
/// # Errors
/// When the port is taken or fails.
pub async fn serve(
    address: SocketAddr,
    operator: Arc<Operator>,
    ready: watch::Receiver<bool>,
    mut stopping: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Health { operator, ready });
    let stopped = async move {
        let _stopped_or_gone = stopping.wait_for(|stop| *stop).await;
    };
    axum::serve(listener, router).with_graceful_shutdown(stopped).await
}

async fn readyz(State(health): State<Health>) -> (StatusCode, &'static str) {
    match *health.ready.borrow() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the watches are not filled yet\n"),
    }
}

async fn metrics(State(health): State<Health>) -> String {
    let operator = &health.operator;
    let mut text = operator.metrics.text();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    for (name, help, value) in [
        ("cotter_operator_servers", "Servers that exist.", operator.stores.servers.len()),
        ("cotter_operator_pins", "Pins that exist.", operator.stores.pins.len()),
        ("cotter_operator_delegations", "Delegations that exist.", operator.stores.delegations.len()),
        ("cotter_operator_sidecars", "Sidecars that are connected.", operator.fleet.len()),
        ("cotter_operator_queue", "Servers that wait or are worked on.", operator.queue.len()),
        ("cotter_operator_followed_objects", "Secrets and ConfigMaps that are watched.", operator.objects.len()),
        ("cotter_operator_followed_key_sets", "Key sets that are fetched.", operator.keys.len()),
    ] {
        metrics::line(&mut text, name, "gauge", help, count(value));
    }
    text
}
