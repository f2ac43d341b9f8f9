//! One request, in the order of the checks. Each step either hands on or refuses; a refusal becomes an answer in one place.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::BytesMut;
use cotter_core::{decision::Era, name::Tenant, reason::DenyReason, snapshot::Access};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};

use crate::{
    audit::Trail,
    envelope::{self, Message},
    exchange::{Exchange, SESSION, VERSION},
    hygiene::{self, Route},
    legacy::{self, Answer},
    limit, metadata, modern,
    respond::{self, Asked, DECISION, Refusal, Reply, With},
    revision,
    state::{Enforced, Shared},
    tools::{self, Outcome},
};

/// How long a body may take to arrive.
const BODY: Duration = Duration::from_secs(30);

/// How long a browser may remember what it may send, in seconds.
const PREFLIGHT: &str = "600";

/// What a request whose head is in order wants.
enum Wanted {
    Message(Box<Exchange>),
    EndSession(Box<Exchange>),
    Told(Reply),
}

/// A refusal before a message was read. What asks for a token says where to learn about tokens.
struct Refused {
    refusal: Refusal,
    metadata: Option<String>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, metadata: None }
    }
}

/// Answers one request. Total: whatever goes wrong is an answer.
pub async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Reply {
    let mut trail = Trail::begin(Arc::clone(&shared));
    let (parts, body) = request.into_parts();
    let (closes, enforced) = (hygiene::closes(&parts.headers), shared.enforced.load_full());
    trail.snapshot = enforced.as_ref().map(|enforced| enforced.digest());
    let origin = enforced.as_ref().and_then(|enforced| allowed_origin(&parts.headers, &enforced.snapshot().access));
    let mut reply = match before_body(shared, enforced.as_ref(), parts, &mut trail) {
        Ok(Wanted::Told(reply)) => {
            trail.forget();
            reply
        }
        Ok(Wanted::EndSession(exchange)) => match end(&exchange, &trail).await {
            Ok(()) => respond::empty(StatusCode::OK),
            Err(refusal) => exchange.refuse(&refusal, None, Some(Era::Legacy), &mut trail),
        },
        Ok(Wanted::Message(exchange)) => match read_body(body, &exchange).await {
            Ok(body) => answer(&exchange, &body, &mut trail).await,
            Err(refusal) => exchange.refuse(&metered(&exchange, refusal), None, None, &mut trail),
        },
        Err(Refused { refusal, metadata }) => {
            trail.refuses(&refusal);
            let advertised = enforced.as_ref().map(|enforced| enforced.snapshot().access.advertised_scopes.as_slice());
            let (snapshot, advertised) = (trail.snapshot, advertised.unwrap_or_default());
            respond::refuse(&refusal, &Asked { snapshot, metadata, advertised, ..Asked::default() })
        }
    };
    trail.end(reply.status().as_u16()).await;
    finish(reply.headers_mut(), &trail.id, origin);
    if closes {
        reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

/// Method, path, Host, Origin, head, media types, announced size; then the token and its tenant.
fn before_body(
    shared: Arc<Shared>,
    enforced: Option<&Arc<Enforced>>,
    parts: Parts,
    trail: &mut Trail,
) -> Result<Wanted, Refused> {
    let public_url = enforced.and_then(|enforced| enforced.snapshot().access.public_url.as_deref());
    let route = hygiene::route(&parts.method, &parts.uri, public_url)?;
    let enforced = enforced.ok_or_else(|| Refusal::because(DenyReason::NotReady, "no snapshot yet"))?;
    let (snapshot, access) = (enforced.snapshot(), &enforced.snapshot().access);
    if route == Route::EndSession && !has_sessions(&parts.headers, &snapshot.protocol.revisions) {
        return Err(Refusal::new(DenyReason::MethodNotAllowed).with(With::Allow("POST, OPTIONS")).into());
    }
    let host = hygiene::host(&parts, access)?;
    let origin = hygiene::origin(&parts.headers, access)?;
    hygiene::head(&parts.headers)?;
    hygiene::framing(&parts.headers)?;
    match route {
        Route::Metadata => return Ok(Wanted::Told(metadata::document(access, host))),
        Route::Preflight => return preflight(origin).map(Wanted::Told).map_err(Refused::from),
        Route::Message => hygiene::content(&parts.headers, snapshot.limits.request_bytes)?,
        Route::EndSession => {}
    }
    let caller = bearer(&parts.headers)
        .and_then(|token| enforced.tokens.caller(token, snapshot, &enforced.policy, &shared.buckets, trail.now))
        .map_err(|refusal| Refused { refusal, metadata: Some(metadata::url(access, host)) })?;
    trail.principal = Some(Arc::clone(&caller.principal));
    admit(access, caller.principal.tenant.as_ref())?;
    shared.check_fresh(snapshot)?;
    let (enforced, host) = (Arc::clone(enforced), host.to_owned());
    let exchange = Box::new(Exchange { shared, enforced, caller, headers: parts.headers, host });
    Ok(if route == Route::Message { Wanted::Message(exchange) } else { Wanted::EndSession(exchange) })
}

/// Whether there can be a session to end: not in the modern era.
fn has_sessions(headers: &HeaderMap, revisions: &BTreeSet<String>) -> bool {
    let stated = hygiene::single(headers, &VERSION).flatten();
    let is_modern = stated.is_some_and(|stated| revision::era(stated) == Some(Era::Modern));
    !is_modern && revision::LEGACY.iter().any(|legacy| revisions.contains(*legacy))
}

fn allowed_origin(headers: &HeaderMap, access: &Access) -> Option<HeaderValue> {
    hygiene::origin(headers, access).ok().flatten().cloned()
}

/// The bearer token (RFC 6750 section 2.1): in this header and nowhere else.
fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let value = match hygiene::single(headers, &header::AUTHORIZATION) {
        None => return Err(Refusal::new(DenyReason::TokenMissing)),
        Some(None) => return Err(Refusal::because(DenyReason::TokenMalformed, "authorization is repeated")),
        Some(Some(value)) => value,
    };
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim_start_matches(' ')),
        _ => Err(Refusal::because(DenyReason::TokenMissing, "authorization is not Bearer")),
    }
}

/// Whether the tenant may be here at all.
fn admit(access: &Access, tenant: Option<&Tenant>) -> Result<(), Refusal> {
    if access.tenants.contains("*") || tenant.is_some_and(|tenant| access.tenants.contains(tenant.as_str())) {
        return Ok(());
    }
    let who = tenant.map_or("the token names no tenant", |_| "the tenant is not in access.tenants");
    Err(Refusal::because(DenyReason::TenantNotAdmitted, who))
}

async fn read_body(body: Incoming, exchange: &Exchange) -> Result<Bytes, Refusal> {
    let limit = exchange.enforced.snapshot().limits.request_bytes;
    let bytes = body.size_hint().upper().unwrap_or(limit);
    let held = exchange.shared.bodies.hold(&exchange.caller.bucket, bytes);
    let _held = held.ok_or_else(|| Refusal::because(DenyReason::TooManyRequests, "bodies that are being read"))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    match tokio::time::timeout(BODY, whole(Limited::new(body, limit))).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::new(DenyReason::TooLarge)),
        Ok(Err(_)) => Err(Refusal::because(DenyReason::InvalidRequest, "the body ended early")),
        Err(_) => Err(Refusal::because(DenyReason::RequestTimeout, "the body did not arrive in 30 s")),
    }
}

/// The body in one piece. Pieces of many are copied together as they come: kept apart, a body of single bytes would take
/// thirty times its length.
async fn whole(mut body: Limited<Incoming>) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Ends a session, for whoever may be here.
async fn end(exchange: &Exchange, trail: &Trail) -> Result<(), Refusal> {
    exchange.caller.standing.check(exchange.enforced.snapshot(), trail.now)?;
    meter(exchange)?;
    legacy::end(exchange).await
}

/// Whether somebody without an active delegation who needs one asks: that is told of every operation alike, also of those that there are
/// not. Then the rate of the principal, which every message costs.
fn pass(exchange: &Exchange, message: &Message<'_>, trail: &mut Trail) -> Result<(), Refusal> {
    let standing = exchange.caller.standing.check(exchange.enforced.snapshot(), trail.now);
    if let (Err(_), Message::Request { method, params, .. }) = (&standing, message)
        && method == "tools/call"
    {
        tools::name(params).iter().for_each(|tool| trail.names(tool));
        exchange.count_denied(trail.now);
    }
    standing?;
    meter(exchange)
}

/// Takes a request from the rate of its principal.
fn meter(exchange: &Exchange) -> Result<(), Refusal> {
    let rate = exchange.enforced.snapshot().limits.rate_per_principal;
    let taken = exchange.caller.bucket.take(rate, exchange.shared.buckets.now());
    taken.map_err(|wait| limit::exceeded("principal", wait))
}

/// The refusal of what could not be read, which costs as much as anything else.
fn metered(exchange: &Exchange, refusal: Refusal) -> Refusal {
    meter(exchange).err().unwrap_or(refusal)
}

/// Answers one message.
async fn answer(exchange: &Exchange, body: &[u8], trail: &mut Trail) -> Reply {
    let message = match envelope::read(body) {
        Ok(message) => message,
        Err(refusal) => return exchange.refuse(&metered(exchange, refusal), None, None, trail),
    };
    let id = match &message {
        Message::Request { id, method, .. } => {
            trail.asks(method);
            Some(*id)
        }
        Message::Notification { method, .. } => {
            trail.asks(method);
            None
        }
        Message::Response => None,
    };
    let era = era(&exchange.headers, &message);
    let answered = match (pass(exchange, &message, trail), era) {
        (Err(refusal), _) => Err(refusal),
        (Ok(()), Era::Legacy) => legacy::serve(exchange, &message, trail).await,
        (Ok(()), Era::Modern) => modern::serve(exchange, &message, trail).await,
    };
    match answered {
        Ok(Answer::Accepted) => respond::empty(StatusCode::ACCEPTED),
        Ok(Answer::Response(Outcome::Result(result))) => {
            respond::json(StatusCode::OK, respond::envelope(id, "result", &result))
        }
        Ok(Answer::Response(Outcome::Error(error))) => {
            respond::json(StatusCode::OK, respond::envelope(id, "error", &error))
        }
        Ok(Answer::Opened { result, session }) => {
            let mut reply = respond::json(StatusCode::OK, respond::envelope(id, "result", &result));
            if let Ok(session) = HeaderValue::from_str(&session) {
                reply.headers_mut().insert(SESSION, session);
            }
            reply
        }
        Err(refusal) => exchange.refuse(&refusal, id, Some(era), trail),
    }
}

/// The line of the protocol: what states its revision in `_meta` is modern, `initialize` without that is legacy. What does neither
/// is what its header says, so that a modern client that forgot `_meta` is told about `_meta` and not about sessions.
fn era(headers: &HeaderMap, message: &Message<'_>) -> Era {
    let (method, params) = match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => (&**method, Some(params)),
        Message::Response => ("", None),
    };
    if params.is_some_and(|params| params.stated.version.is_some()) {
        return Era::Modern;
    }
    let stated = hygiene::single(headers, &VERSION).flatten();
    if method != "initialize" && stated.is_some_and(|stated| revision::era(stated) == Some(Era::Modern)) {
        return Era::Modern;
    }
    Era::Legacy
}

/// What a browser may send, to one whose origin is allowed.
fn preflight(origin: Option<&HeaderValue>) -> Result<Reply, Refusal> {
    if origin.is_none() {
        return Err(Refusal::new(DenyReason::MethodNotAllowed).with(With::Allow("POST, DELETE")));
    }
    let mut reply = respond::empty(StatusCode::NO_CONTENT);
    let mut set = |name, value| reply.headers_mut().insert(name, HeaderValue::from_static(value));
    set(header::ACCESS_CONTROL_ALLOW_METHODS, "POST, DELETE, GET");
    set(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        "authorization, content-type, accept, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name",
    );
    set(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT);
    Ok(reply)
}

/// What every answer carries.
fn finish(headers: &mut HeaderMap, decision: &str, origin: Option<HeaderValue>) {
    if let Ok(decision) = HeaderValue::from_str(decision) {
        headers.insert(DECISION, decision);
    }
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        let exposed = HeaderValue::from_static("cotter-decision, mcp-session-id, www-authenticate");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}
