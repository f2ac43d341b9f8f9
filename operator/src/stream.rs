//! The snapshot stream: HTTPS for the sidecars, one long answer down and short reports up.
//!
//! # Flow
//! `GET /v1/namespaces/{namespace}/servers/{name}/snapshots` answers with lines of JSON: `{"digest","snapshot"}` at once
//! where there is a snapshot, again for each new one, and `{}` every [`KEEP_ALIVE`]. `{"budgets"}` says what was charged elsewhere to
//! the budgets in the snapshot: before it, and whenever that changes. `POST …/reports` takes a `Report`, `POST …/charges` what a run
//! charged. All carry the sidecar's projected token as bearer.
//!
//! # Guarantees
//! Who is not the server's own sidecar gets nothing, and the same answer whether the server exists or not. A reader
//! that is slow gets the newest snapshot next, never a queue of old ones.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use cotter_core::{
    budget::{Charges, RUN_HEADER},
    report::Report,
    strict,
};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, watch};

use crate::{
    auth::{AuthError, Authenticator, Identity},
    fleet::{Fleet, FleetError},
    key::ServerKey,
    metrics::Metrics,
    publish::Publisher,
    spending::Spending,
};

mod lines;
mod listen;

use lines::Lines;
pub use listen::{ListenError, Listener, serve};

/// Sidecars take a silent stream for broken after a while, and so do load balancers in between.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A report holds the definitions of up to 10,000 tools; the largest real server's are below 1 MiB.
const MAX_REPORT: usize = 8 * 1024 * 1024;
/// Counts of budgets: a line of 60 bytes for each.
const MAX_CHARGES: usize = 1024 * 1024;
/// Reports that are read at the same time, so that 8 MiB each stay within memory.
const READING: usize = 16;

/// Whose account the sidecars of a server run as; `None` where there is no such server.
pub trait Accounts: Send + Sync + 'static {
    /// The ServiceAccount's name.
    fn account(&self, server: &ServerKey) -> Option<String>;
}

/// What the stream needs.
pub struct Desk {
    /// Checks tokens.
    pub authenticator: Authenticator,
    /// Knows which account guards which server.
    pub accounts: Box<dyn Accounts>,
    /// Snapshots.
    pub publisher: Arc<Publisher>,
    /// Sidecars.
    pub fleet: Arc<Fleet>,
    /// What was charged to budgets.
    pub spending: Arc<Spending>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    reading: Semaphore,
    stopping: watch::Receiver<bool>,
}

impl Desk {
    /// A desk that ends its streams when `stopping` turns true.
    #[must_use]
    pub fn new(
        (authenticator, accounts): (Authenticator, Box<dyn Accounts>),
        publisher: Arc<Publisher>,
        (fleet, spending): (Arc<Fleet>, Arc<Spending>),
        metrics: Arc<Metrics>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            authenticator,
            accounts,
            publisher,
            fleet,
            spending,
            metrics,
            reading: Semaphore::new(READING),
            stopping,
        }
    }

    /// The sidecar that asks, where it guards this server.
    async fn sidecar(&self, key: &ServerKey, headers: &HeaderMap) -> Result<Identity, Refusal> {
        let identity = self.authenticator.identify(bearer(headers)?).await?;
        // The same answer for a server that does not exist: what exists is none of a stranger's business.
        let account = self.accounts.account(key).unwrap_or_default();
        identity.guards(key, &account)?;
        Ok(identity)
    }
}

/// The routes.
pub fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/v1/namespaces/{namespace}/servers/{name}/snapshots", get(snapshots))
        .route("/v1/namespaces/{namespace}/servers/{name}/reports", post(reports))
        .route("/v1/namespaces/{namespace}/servers/{name}/charges", post(charges))
        .layer(DefaultBodyLimit::max(MAX_REPORT))
        .with_state(desk)
}

async fn snapshots(
    State(desk): State<Arc<Desk>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = ServerKey::new(namespace, name);
    let who = desk.sidecar(&key, &headers).await.inspect_err(|refusal| refusal.note(&desk, &key))?;
    let connection = desk.fleet.connect(&key, &who)?;
    desk.metrics.streams.add();
    tracing::info!(server = %key, pod = who.pod, "a sidecar opened its stream");
    let run = run(&headers).filter(|run| desk.spending.connect(&key, &who.pod_uid, run));
    let body = Body::from_stream(Lines::new(&desk, key, run, connection).stream());
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, body).into_response())
}

/// The run that a sidecar names. One that names none is told that everything was charged elsewhere.
fn run(headers: &HeaderMap) -> Option<String> {
    let named = headers.get(RUN_HEADER)?.to_str().ok()?;
    let is_id = (1..=64).contains(&named.len()) && named.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then(|| named.to_owned())
}

async fn reports(
    State(desk): State<Arc<Desk>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let key = ServerKey::new(namespace, name);
    // Before the body is read: a stranger does not get to make us read 8 MiB.
    let who = desk.sidecar(&key, &headers).await.inspect_err(|refusal| refusal.note(&desk, &key))?;
    let _slot = desk.reading.acquire().await.map_err(|_| Refusal::stopping())?;
    let report = parse(&whole(body, MAX_REPORT).await?, &key)?;
    let uses = report.uses.clone();
    desk.fleet.report(&key, &who, report)?;
    desk.spending.report(&key, &who.pod_uid, &uses);
    desk.metrics.reports.add();
    Ok(StatusCode::NO_CONTENT)
}

async fn charges(
    State(desk): State<Arc<Desk>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let key = ServerKey::new(namespace, name);
    let who = desk.sidecar(&key, &headers).await.inspect_err(|refusal| refusal.note(&desk, &key))?;
    let charges: Charges = read(&whole(body, MAX_CHARGES).await?, "charges")?;
    let used_up = desk.spending.charge(&key, &who.pod_uid, &charges).ok_or(FleetError::NotConnected)?;
    desk.fleet.charged(&key, used_up);
    Ok(StatusCode::NO_CONTENT)
}

/// A body, bounded in size and time.
async fn whole(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let body = tokio::time::timeout(Duration::from_secs(30), axum::body::to_bytes(body, limit)).await;
    match body {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)),
        Err(elapsed) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, elapsed)),
    }
}

/// Reads a body strictly, as what it has to be.
fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, Refusal> {
    strict::check(body, strict::Limits::depth(strict::MAX_DEPTH)).map_err(|error| Refusal::bad(what, error))?;
    serde_json::from_slice(body).map_err(|error| Refusal::bad(what, error))
}

/// Reads a report. It has to be about the server whose sidecar sends it.
fn parse(body: &[u8], key: &ServerKey) -> Result<Report, Refusal> {
    let report: Report = read(body, "a report")?;
    if report.server.namespace.as_str() != key.namespace || report.server.name.as_str() != key.name {
        return Err(Refusal::bad("a report", format_args!("it is about {} and was sent to {key}", report.server)));
    }
    Ok(report)
}

fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    };
    let token =
        value.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token.map(|(_, token)| token.trim()).ok_or_else(|| AuthError::Refused("there is no bearer token".to_owned()))
}

/// An answer that is not what was asked for.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    fn new(status: StatusCode, why: impl std::fmt::Display) -> Self {
        Self { status, why: why.to_string() }
    }

    fn bad(what: &str, why: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("not {what}: {why}"))
    }

    fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the operator is stopping")
    }

    fn note(&self, desk: &Desk, key: &ServerKey) {
        desk.metrics.refused.add();
        tracing::warn!(server = %key, status = self.status.as_u16(), why = self.why, "stream request refused");
    }
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        let status = match error {
            AuthError::Refused(_) => StatusCode::UNAUTHORIZED,
            AuthError::Foreign { .. } => StatusCode::FORBIDDEN,
            AuthError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error)
    }
}

impl From<FleetError> for Refusal {
    fn from(error: FleetError) -> Self {
        let status = match error {
            FleetError::NotConnected => StatusCode::CONFLICT,
            FleetError::Full => StatusCode::TOO_MANY_REQUESTS,
        };
        Self::new(status, error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let why = match self.status {
            // Who is not known is not told more than that.
            StatusCode::UNAUTHORIZED => "the token is not valid here".to_owned(),
            StatusCode::FORBIDDEN => "this service account does not guard that server".to_owned(),
            _ => self.why,
        };
        (self.status, Json(serde_json::json!({ "error": why }))).into_response()
    }
}
