//! The legacy era, up to 2025-11-25: a handshake, and sessions that belong to their principal.

use std::sync::Arc;

use cotter_core::{decision::Era, reason::DenyReason};
use serde::Serialize;

use crate::{
    audit::Trail,
    envelope::{self, Message, Params},
    exchange::{Exchange, SESSION, VERSION},
    respond::Refusal,
    revision,
    server_info::ServerInfo,
    session::Session,
    tools::{self, Outcome},
};

/// The revision of a request that states none (2025-06-18, transports, protocol version header).
const UNSTATED: &str = "2025-03-26";

/// What a message is answered with.
#[derive(Debug)]
pub enum Answer {
    /// A response.
    Response(Outcome),
    /// A response that opens a session.
    Opened {
        /// The result.
        result: Vec<u8>,
        /// The session's id.
        session: String,
    },
    /// Nothing: it was a notification.
    Accepted,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialized<'a> {
    protocol_version: &'a str,
    capabilities: Capabilities,
    server_info: ServerInfo<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

/// Tools and nothing else: what is not declared here a client does not ask for, and what it asks for anyway does not exist.
#[derive(Debug, Default, Serialize)]
pub struct Capabilities {
    tools: Tools,
}

#[derive(Debug, Default, Serialize)]
struct Tools {}

/// Answers one message: revision, session, method.
///
/// # Errors
/// Every reason from `UnsupportedRevision` on.
pub async fn serve(exchange: &Exchange, message: &Message<'_>, trail: &mut Trail) -> Result<Answer, Refusal> {
    check_revision(exchange)?;
    if let Message::Request { method, params, .. } = message
        && method == "initialize"
    {
        return initialize(exchange, params);
    }
    let session = session(exchange)?;
    let Message::Request { method, params, .. } = message else { return Ok(Answer::Accepted) };
    match &**method {
        "ping" => Ok(Answer::Response(Outcome::Result("{}".into()))),
        "tools/list" => {
            let tools = tools::list(exchange, Era::Legacy, params, trail)?;
            Ok(Answer::Response(Outcome::Result(format!("{{\"tools\":{tools}}}").into())))
        }
        "tools/call" => {
            tools::call(exchange, Era::Legacy, params, Some(&session.slot), trail).await.map(Answer::Response)
        }
        _ => Err(Refusal::new(DenyReason::MethodNotFound)),
    }
}

/// Ends a session.
///
/// # Errors
/// `UnsupportedRevision`, `SessionRequired`, `SessionUnknown`.
pub async fn end(exchange: &Exchange) -> Result<(), Refusal> {
    check_revision(exchange)?;
    let id = session_id(exchange)?;
    let session = exchange.shared.sessions.close(id, &exchange.caller.owner)?;
    session.slot.close().await;
    Ok(())
}

/// A revision that a header names has to be one that may be spoken. Without the header the session knows.
fn check_revision(exchange: &Exchange) -> Result<(), Refusal> {
    match exchange.header(&VERSION)? {
        Some(stated) if !revision::allowed(stated, Era::Legacy, &exchange.enforced.snapshot().protocol.revisions) => {
            Err(exchange.unsupported(stated))
        }
        _ => Ok(()),
    }
}

fn session_id(exchange: &Exchange) -> Result<&str, Refusal> {
    let revisions = &exchange.enforced.snapshot().protocol.revisions;
    if !revision::LEGACY.iter().any(|legacy| revisions.contains(*legacy)) {
        // A client that knows both eras has to learn which one is spoken here, not that it lacks a session.
        return Err(exchange.unsupported(UNSTATED));
    }
    exchange.header(&SESSION)?.ok_or_else(|| Refusal::new(DenyReason::SessionRequired))
}

fn session(exchange: &Exchange) -> Result<Arc<Session>, Refusal> {
    let session = exchange.shared.sessions.find(session_id(exchange)?, &exchange.caller.owner)?;
    // The rules may have changed since the handshake.
    if revision::allowed(session.revision, Era::Legacy, &exchange.enforced.snapshot().protocol.revisions) {
        return Ok(session);
    }
    Err(exchange.unsupported(session.revision))
}

fn initialize(exchange: &Exchange, params: &Params<'_>) -> Result<Answer, Refusal> {
    let wanted = params.protocol_version.and_then(envelope::text);
    let wanted =
        wanted.ok_or_else(|| Refusal::because(DenyReason::InvalidParams, "protocolVersion has to be a string"))?;
    let snapshot = exchange.enforced.snapshot();
    let agreed = revision::negotiate(&wanted, &snapshot.protocol.revisions);
    let agreed = agreed.ok_or_else(|| exchange.unsupported(&wanted))?;
    let initialized = Initialized {
        protocol_version: agreed,
        capabilities: Capabilities::default(),
        server_info: ServerInfo::of(&exchange.enforced),
        instructions: exchange.enforced.instructions.as_deref(),
    };
    let result =
        serde_json::to_vec(&initialized).map_err(|error| Refusal::because(DenyReason::Internal, error.to_string()))?;
    let session = exchange.shared.sessions.open(&exchange.caller.owner, agreed, exchange.enforced.most_sessions())?;
    Ok(Answer::Opened { result, session })
}
