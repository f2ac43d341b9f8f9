//! The modern era, from 2026-07-28 on: every request stands alone and says what it is, in its body and, for those who only look at
//! headers, a second time there. The two have to agree; what is decided is decided on the body.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cotter_core::{decision::Era, reason::DenyReason};
use http::HeaderName;
use serde::Serialize;

use crate::{
    audit::Trail,
    envelope::{self, Message, Params},
    exchange::{Exchange, VERSION},
    legacy::{Answer, Capabilities},
    respond::Refusal,
    revision,
    server_info::ServerInfo,
    tools::{self, Outcome},
};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How long a client may keep a list that was filtered for it, in milliseconds: a revocation reaches it after that.
const LIST_TTL: u32 = 5_000;

/// How long a client may keep what `server/discover` says.
const DISCOVER_TTL: u32 = 60_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Discovered<'a> {
    result_type: &'static str,
    supported_versions: Vec<&'a str>,
    capabilities: Capabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    ttl_ms: u32,
    cache_scope: &'static str,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: ServerInfo<'a>,
}

/// Answers one message: revision, capabilities, headers, method.
///
/// # Errors
/// Every reason from `UnsupportedRevision` on.
pub async fn serve(exchange: &Exchange, message: &Message<'_>, trail: &mut Trail) -> Result<Answer, Refusal> {
    let (method, params) = match message {
        Message::Request { method, params, .. } => (method, params),
        Message::Notification { params, .. } => {
            check_revision(exchange, params, false)?;
            return Ok(Answer::Accepted);
        }
        Message::Response => {
            return Err(Refusal::because(DenyReason::InvalidRequest, "nothing was asked that could be answered"));
        }
    };
    let stated = check_revision(exchange, params, true)?;
    check_headers(exchange, &stated, method, params)?;
    match &**method {
        "server/discover" => discover(exchange).map(|result| Answer::Response(Outcome::Result(result.into()))),
        "tools/list" => {
            let tools = tools::list(exchange, Era::Modern, params, trail)?;
            let result = format!(
                "{{\"resultType\":\"complete\",\"tools\":{tools},\"ttlMs\":{LIST_TTL},\"cacheScope\":\"private\"}}"
            );
            Ok(Answer::Response(Outcome::Result(result.into())))
        }
        "tools/call" => tools::call(exchange, Era::Modern, params, None, trail).await.map(Answer::Response),
        _ => Err(Refusal::new(DenyReason::MethodNotFound)),
    }
}

/// The revision that the body states, and what the client says that it can do.
fn check_revision<'a>(exchange: &Exchange, params: &Params<'a>, whole: bool) -> Result<Cow<'a, str>, Refusal> {
    let invalid = |what: &str| Refusal::because(DenyReason::InvalidParams, format!("_meta has no {what}"));
    let meta = &params.stated;
    let stated = match meta.version.map(envelope::text) {
        Some(Some(stated)) => stated,
        None if !whole => return Ok(Cow::Borrowed("")),
        _ => return Err(invalid(envelope::META_VERSION)),
    };
    if !revision::allowed(&stated, Era::Modern, &exchange.enforced.snapshot().protocol.revisions) {
        return Err(exchange.unsupported(&stated));
    }
    if whole && !meta.capabilities.is_some_and(envelope::is_object) {
        return Err(invalid("io.modelcontextprotocol/clientCapabilities"));
    }
    Ok(stated)
}

/// The headers that repeat the body. A name is compared where the method has one; elsewhere the header means nothing.
fn check_headers(exchange: &Exchange, stated: &str, method: &str, params: &Params<'_>) -> Result<(), Refusal> {
    let agree = |name: &HeaderName, body: &str| match exchange.header(name)? {
        Some(value) if value == body => Ok(()),
        Some(_) => Err(mismatch(&format!("{name} differs from the body"))),
        None => Err(mismatch(&format!("{name} is missing"))),
    };
    agree(&VERSION, stated)?;
    agree(&METHOD, method)?;
    // A header that is repeated is refused even where it means nothing.
    let named = exchange.header(&NAME)?;
    if method != "tools/call" {
        return Ok(());
    }
    let body = params.name.and_then(envelope::text);
    let header = named.map(decoded).ok_or_else(|| mismatch("mcp-name is missing"))?;
    match (header, body) {
        // What the body says instead of a name is refused with the parameters.
        (Some(_), None) => Ok(()),
        (Some(header), Some(body)) if header == body => Ok(()),
        _ => Err(mismatch("mcp-name differs from the body")),
    }
}

fn mismatch(why: &str) -> Refusal {
    Refusal::because(DenyReason::HeaderMismatch, why)
}

/// A header's text, or what its `=?base64?…?=` form holds; `None` where that form holds no text.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(STANDARD.decode(inner).ok()?).ok().map(Cow::Owned)
}

fn discover(exchange: &Exchange) -> Result<Vec<u8>, Refusal> {
    let enforced = &exchange.enforced;
    let discovered = Discovered {
        result_type: "complete",
        supported_versions: enforced.snapshot().protocol.revisions.iter().map(String::as_str).collect(),
        capabilities: Capabilities::default(),
        instructions: enforced.instructions.as_deref(),
        ttl_ms: DISCOVER_TTL,
        cache_scope: "private",
        meta: Meta { server_info: ServerInfo::of(enforced) },
    };
    serde_json::to_vec(&discovered).map_err(|error| Refusal::because(DenyReason::Internal, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_come_in_base64() {
        assert_eq!(decoded("case_tag").as_deref(), Some("case_tag"));
        assert_eq!(decoded("=?base64?Y2FzZV90YWc=?=").as_deref(), Some("case_tag"));
        assert_eq!(decoded("=?BASE64?Y2FzZV90YWc=?=").as_deref(), Some("=?BASE64?Y2FzZV90YWc=?="));
        for bad in ["=?base64?***?=", "=?base64?/w==?="] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
