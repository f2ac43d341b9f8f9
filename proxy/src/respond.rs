//! The one place where a reason becomes HTTP and JSON-RPC. Nothing else writes a refusal, so nothing else can tell more than it should.

use cotter_core::{
    decision::{Era, Reason},
    name::Scope,
    reason::{DenyReason, Disclosure},
    snapshot::Digest,
};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;

/// A whole answer.
pub type Reply = Response<Full<Bytes>>;

/// The header that every answer carries: an opaque id, for support and for the audit.
pub const DECISION: HeaderName = HeaderName::from_static("cotter-decision");

/// Why a request is refused, with what only its owner may know and what the answer needs beside the reason.
#[derive(Debug)]
pub struct Refusal {
    /// The reason that the caller's answer is made from.
    pub reason: DenyReason,
    /// All reasons, with their details, for the audit. Never told to the caller.
    pub reasons: Vec<Reason>,
    /// What else the answer holds.
    pub with: With,
}

/// What a refusal's answer holds beside its reason.
#[derive(Debug, Default)]
pub enum With {
    /// Nothing.
    #[default]
    Nothing,
    /// Revisions that may be spoken, and the one that was asked for.
    Revisions {
        /// These may.
        supported: Vec<String>,
        /// This was asked for.
        requested: String,
    },
    /// All scopes that the operation needs.
    Scopes(Vec<Scope>),
    /// Seconds until it may go better.
    RetryAfter(u64),
    /// Methods that the path has.
    Allow(&'static str),
    /// What is wrong with the arguments.
    Problems {
        /// The first problems, in words that repeat no value.
        told: Vec<String>,
        /// Whether the revision wants them told as the tool's result, for a model to read, and not as an error.
        as_result: bool,
    },
}

impl Refusal {
    /// Refused for this reason, which says everything.
    #[must_use]
    pub fn new(reason: DenyReason) -> Self {
        Self { reason, reasons: vec![Reason { code: reason, detail: None }], with: With::Nothing }
    }

    /// Refused for this reason, with a detail for the audit.
    #[must_use]
    pub fn because(reason: DenyReason, detail: impl Into<String>) -> Self {
        let reasons = vec![Reason { code: reason, detail: Some(detail.into()) }];
        Self { reason, reasons, with: With::Nothing }
    }

    /// The same, with more in the answer.
    #[must_use]
    pub fn with(self, with: With) -> Self {
        Self { with, ..self }
    }

    /// The same to the audit, and an unknown tool to the caller.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { reason: DenyReason::NotOffered, with: With::Nothing, ..self }
    }
}

/// What an answer has to know of its request.
#[derive(Debug, Default)]
pub struct Asked<'a> {
    /// The id of the request, as it came; absent where none was read.
    pub id: Option<&'a str>,
    /// The line of the protocol; absent where it is not known yet.
    pub era: Option<Era>,
    /// The snapshot that decided.
    pub snapshot: Option<Digest>,
    /// The URL of the metadata (RFC 9728), where there is one.
    pub metadata: Option<String>,
    /// Scopes that a challenge may name.
    pub advertised: &'a [Scope],
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Own {
        source: &'static str,
        reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        snapshot: Option<Digest>,
    },
    Revisions {
        supported: &'a [String],
        requested: &'a str,
    },
    Problems {
        source: &'static str,
        reason: &'a str,
        problems: &'a [String],
    },
}

/// A refusal as a tool's result (2025-11-25, tools, error handling).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolError<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text; 1],
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: ToolErrorMeta<'a>,
}

#[derive(Serialize)]
struct Text {
    r#type: &'static str,
    text: String,
}

#[derive(Serialize)]
struct ToolErrorMeta<'a> {
    #[serde(rename = "cotter.dev/refusal")]
    refusal: Data<'a>,
}

/// The answer to a refused request.
#[must_use]
pub fn refuse(refusal: &Refusal, asked: &Asked<'_>) -> Reply {
    let reason = refusal.reason;
    if let With::Problems { told, as_result: true } = &refusal.with {
        return json(StatusCode::OK, envelope(asked.id, "result", &tool_error(reason, told, asked.era)));
    }
    let data = match (&refusal.with, reason.disclosure()) {
        (With::Revisions { supported, requested }, _) => Some(Data::Revisions { supported, requested }),
        (With::Problems { told, .. }, _) => Some(problems(reason, told)),
        (_, Disclosure::Named) => {
            Some(Data::Own { source: "cotter", reason: reason.as_str(), snapshot: asked.snapshot })
        }
        _ => None,
    };
    let message = match &refusal.with {
        With::Problems { told, .. } => words(reason, told),
        _ => reason.message().to_owned(),
    };
    let error = ErrorBody { code: reason.code(), message: &message, data };
    // Serialising these types cannot fail: no map has keys other than strings.
    let error = serde_json::to_string(&error).unwrap_or_else(|_| "{\"code\":-32603,\"message\":\"\"}".to_owned());
    let mut reply = json(status(reason, asked.era), envelope(asked.id, "error", error.as_bytes()));
    let headers = reply.headers_mut();
    if matches!(reason.status(), 401) || matches!(refusal.with, With::Scopes(_)) {
        headers.insert(header::WWW_AUTHENTICATE, challenge(refusal, asked));
    }
    match refusal.with {
        With::Allow(methods) => {
            headers.insert(header::ALLOW, HeaderValue::from_static(methods));
        }
        With::RetryAfter(seconds) => {
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        With::Nothing if reason.status() == 503 => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    reply
}

fn problems(reason: DenyReason, told: &[String]) -> Data<'_> {
    Data::Problems { source: "cotter", reason: reason.as_str(), problems: told }
}

fn words(reason: DenyReason, told: &[String]) -> String {
    if told.is_empty() { reason.message().to_owned() } else { format!("{}: {}", reason.message(), told.join(", ")) }
}

fn tool_error(reason: DenyReason, told: &[String], era: Option<Era>) -> Vec<u8> {
    let error = ToolError {
        result_type: (era == Some(Era::Modern)).then_some("complete"),
        content: [Text { r#type: "text", text: words(reason, told) }],
        is_error: true,
        meta: ToolErrorMeta { refusal: problems(reason, told) },
    };
    serde_json::to_vec(&error).unwrap_or_else(|_| b"{\"content\":[],\"isError\":true}".to_vec())
}

/// The legacy era answers a message that it could read with 200 and an error: there a 404 means that the session is gone.
fn status(reason: DenyReason, era: Option<Era>) -> StatusCode {
    let told_inside =
        matches!(reason, DenyReason::MethodNotFound | DenyReason::InvalidParams | DenyReason::InvalidArguments);
    if told_inside && era == Some(Era::Legacy) {
        return StatusCode::OK;
    }
    StatusCode::from_u16(reason.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// RFC 6750 section 3 and RFC 9728 section 5.1.
fn challenge(refusal: &Refusal, asked: &Asked<'_>) -> HeaderValue {
    let mut text = "Bearer".to_owned();
    let mut add = |name: &str, value: &str| {
        text.push_str(if text.len() == "Bearer".len() { " " } else { ", " });
        text.push_str(&format!("{name}=\"{value}\""));
    };
    if let With::Scopes(_) = refusal.with {
        add("error", "insufficient_scope");
    } else if refusal.reason != DenyReason::TokenMissing {
        add("error", "invalid_token");
    }
    let scopes = if let With::Scopes(scopes) = &refusal.with { scopes } else { asked.advertised };
    if !scopes.is_empty() {
        let scopes: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
        add("scope", &scopes.join(" "));
    }
    if let Some(metadata) = &asked.metadata {
        add("resource_metadata", metadata);
    }
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("Bearer"))
}

/// A JSON-RPC response: the id as it came, and one member with the given text. Where no id could be read there is none
/// (2026-07-28, basic, error responses).
#[must_use]
pub fn envelope(id: Option<&str>, member: &str, value: &[u8]) -> Bytes {
    let mut body = Vec::with_capacity(id.map_or(0, str::len) + member.len() + value.len() + 32);
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    if let Some(id) = id {
        body.extend_from_slice(b"\"id\":");
        body.extend_from_slice(id.as_bytes());
        body.push(b',');
    }
    body.push(b'"');
    body.extend_from_slice(member.as_bytes());
    body.extend_from_slice(b"\":");
    body.extend_from_slice(value);
    body.push(b'}');
    body.into()
}

/// An answer with a JSON body.
#[must_use]
pub fn json(status: StatusCode, body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// An answer without a body.
#[must_use]
pub fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = status;
    reply
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn parts(refusal: &Refusal, asked: &Asked<'_>) -> (u16, http::HeaderMap, String) {
        let (head, body) = refuse(refusal, asked).into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn every_hidden_reason_has_the_same_bytes() {
        let asked = Asked { id: Some("7"), era: Some(Era::Legacy), ..Asked::default() };
        let mut seen = Vec::new();
        for reason in DenyReason::ALL.iter().filter(|r| r.disclosure() == Disclosure::UnknownTool) {
            seen.push(parts(&Refusal::because(*reason, "detail"), &asked).await);
        }
        seen.push(parts(&Refusal::because(DenyReason::PolicyDenied, "always").hidden(), &asked).await);
        assert!(seen.len() > 5 && seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
        assert_eq!(seen[0].2, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool"}}"#);
    }

    #[tokio::test]
    async fn every_bad_token_has_the_same_bytes_and_no_token_has_no_error() {
        let asked = Asked { metadata: Some("http://h/m".to_owned()), ..Asked::default() };
        let bad = DenyReason::ALL.iter().filter(|r| r.disclosure() == Disclosure::Unauthorized);
        let mut seen = Vec::new();
        for reason in bad.filter(|r| **r != DenyReason::TokenMissing) {
            seen.push(parts(&Refusal::because(*reason, "detail"), &asked).await);
        }
        assert!(seen.len() > 5 && seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
        let challenge = seen[0].1.get("www-authenticate").unwrap();
        assert_eq!(challenge, "Bearer error=\"invalid_token\", resource_metadata=\"http://h/m\"");
        let (_, headers, _) = parts(&Refusal::new(DenyReason::TokenMissing), &asked).await;
        assert_eq!(headers.get("www-authenticate").unwrap(), "Bearer resource_metadata=\"http://h/m\"");
    }

    #[tokio::test]
    async fn a_named_reason_says_who_speaks_and_hides_its_detail() {
        let (status, _, body) = parts(&Refusal::because(DenyReason::PolicyDenied, "rule 7"), &Asked::default()).await;
        assert_eq!((status, body.contains("\"source\":\"cotter\""), body.contains("rule 7")), (403, true, false));
        assert!(body.contains("\"reason\":\"PolicyDenied\""), "{body}");
    }

    #[tokio::test]
    async fn an_unknown_method_is_told_inside_in_the_legacy_era_only() {
        let refusal = Refusal::new(DenyReason::MethodNotFound);
        let legacy = Asked { era: Some(Era::Legacy), ..Asked::default() };
        let modern = Asked { era: Some(Era::Modern), ..Asked::default() };
        assert_eq!((parts(&refusal, &legacy).await.0, parts(&refusal, &modern).await.0), (200, 404));
    }
}
