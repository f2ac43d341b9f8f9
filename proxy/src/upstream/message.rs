//! JSON-RPC messages to and from the server: built here, with ids of the sidecar's own, and read strictly.

use std::borrow::Cow;

use bytes::Bytes;
use cotter_core::strict::{self, Limits};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::Fault;
use super::{Answer, Call};

/// The newest revision of the stateless line that is spoken here.
pub(super) const MODERN: &str = "2026-07-28";
/// Revisions with an `initialize` handshake, the newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What a server of either era says when its tool list changed.
pub(super) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Which line of the protocol a conversation speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// `initialize` and, over HTTP, sessions.
    Legacy,
    /// Stateless: each request carries its own `_meta`.
    Modern,
}

/// Members of `_meta` that belong to the sidecar: whatever a caller put there stays behind.
const OWN_PREFIX: &str = "io.modelcontextprotocol/";

/// A tool call. The arguments are copied byte for byte.
pub(super) fn call(id: u64, era: Era, tool: &str, call: &Call<'_>) -> Vec<u8> {
    let room = call.arguments.map_or(0, |raw| raw.get().len()) + call.meta.map_or(0, |raw| raw.get().len());
    let mut out = Vec::with_capacity(room + tool.len() + 320);
    open(&mut out, id, "tools/call");
    out.extend_from_slice(b"{\"name\":");
    string(&mut out, tool);
    if let Some(arguments) = call.arguments {
        out.extend_from_slice(b",\"arguments\":");
        out.extend_from_slice(arguments.get().as_bytes());
    }
    meta(&mut out, era, call.meta, b",");
    out.extend_from_slice(b"}}");
    out
}

/// One page of `tools/list`.
pub(super) fn list(id: u64, era: Era, cursor: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    open(&mut out, id, "tools/list");
    out.push(b'{');
    if let Some(cursor) = cursor {
        out.extend_from_slice(b"\"cursor\":");
        string(&mut out, cursor);
    }
    meta(&mut out, era, None, if cursor.is_some() { b"," } else { b"" });
    out.extend_from_slice(b"}}");
    out
}

/// The legacy handshake's first message. Nothing is declared, so that the server has nothing to ask for.
pub(super) fn initialize(id: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    open(&mut out, id, "initialize");
    out.extend_from_slice(b"{\"protocolVersion\":");
    string(&mut out, LEGACY[0]);
    out.extend_from_slice(b",\"capabilities\":{},\"clientInfo\":");
    out.extend_from_slice(CLIENT.as_bytes());
    out.extend_from_slice(b"}}");
    out
}

/// The legacy handshake's last message.
pub(super) fn initialized() -> Vec<u8> {
    br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec()
}

/// What a modern server is and speaks.
pub(super) fn discover(id: u64) -> Vec<u8> {
    modern(id, "server/discover", b"")
}

/// The modern subscription to changes of the tool list.
pub(super) fn listen(id: u64) -> Vec<u8> {
    modern(id, "subscriptions/listen", br#""notifications":{"toolsListChanged":true},"#)
}

fn modern(id: u64, method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    open(&mut out, id, method);
    out.push(b'{');
    out.extend_from_slice(params);
    meta(&mut out, Era::Modern, None, b"");
    out.extend_from_slice(b"}}");
    out
}

/// Tells a server that nobody waits any more.
pub(super) fn cancelled(id: u64) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#).into_bytes()
}

/// The answer to something that a server asked: pings are answered, and nothing else was declared.
pub(super) fn reply(id: &str, method: &str) -> Vec<u8> {
    let outcome =
        if method == "ping" { r#""result":{}"# } else { r#""error":{"code":-32601,"message":"Method not found"}"# };
    format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#).into_bytes()
}

const CLIENT: &str = concat!(r#"{"name":"cotter","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

fn open(out: &mut Vec<u8>, id: u64, method: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    number(out, id);
    out.extend_from_slice(b",\"method\":\"");
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(b"\",\"params\":");
}

fn number(out: &mut Vec<u8>, number: u64) {
    use std::io::Write as _;
    // Writing to memory cannot fail.
    let _ = write!(out, "{number}");
}

fn string(out: &mut Vec<u8>, text: &str) {
    // A string always has a JSON form, and writing to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Writes `_meta`, with `before` in front where there is anything to write.
fn meta(out: &mut Vec<u8>, era: Era, caller: Option<&RawValue>, before: &[u8]) {
    match (era, caller) {
        (Era::Legacy, None) => {}
        (Era::Legacy, Some(caller)) => {
            out.extend_from_slice(before);
            out.extend_from_slice(b"\"_meta\":");
            out.extend_from_slice(caller.get().as_bytes());
        }
        (Era::Modern, caller) => {
            out.extend_from_slice(before);
            out.extend_from_slice(b"\"_meta\":{");
            if let Some(caller) = caller {
                members(out, caller);
            }
            out.extend_from_slice(
                concat!(
                    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                    r#""io.modelcontextprotocol/clientCapabilities":{},"#,
                    r#""io.modelcontextprotocol/clientInfo":"#
                )
                .as_bytes(),
            );
            out.extend_from_slice(CLIENT.as_bytes());
            out.push(b'}');
        }
    }
}

/// The caller's members, each followed by a comma, without those that would speak for the sidecar.
fn members(out: &mut Vec<u8>, caller: &RawValue) {
    type Members<'a> = std::collections::BTreeMap<Cow<'a, str>, &'a RawValue>;
    let Ok(members) = serde_json::from_str::<Members<'_>>(caller.get()) else { return };
    for (name, value) in members.iter().filter(|(name, _)| !name.starts_with(OWN_PREFIX)) {
        string(out, name);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
        out.push(b',');
    }
}

/// A message from the server.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The answer to a request of ours.
    Response {
        /// Whose answer.
        id: u64,
        /// The answer, or what is wrong with it.
        answer: Result<Answer, Fault>,
    },
    /// A response that answers nothing of ours: the id is `null` or not one that we make.
    Stray,
    /// The server asks for something.
    Request {
        /// Its id, exact JSON.
        id: String,
        /// What for.
        method: String,
    },
    /// The server tells something.
    Notification {
        /// What.
        method: String,
    },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: &'a str,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from absence.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message: strict JSON first, then its shape. What it holds are slices of `bytes`.
///
/// # Errors
/// Not strict JSON, or not a JSON-RPC 2.0 message.
pub(super) fn read(bytes: &Bytes) -> Result<Incoming, Fault> {
    let json = strict::text(bytes, Limits::default())?;
    let envelope: Envelope<'_> = serde_json::from_str(json).map_err(|_| not_a_message(bytes))?;
    if envelope.jsonrpc != "2.0" {
        return Err(Fault::NotAMessage);
    }
    match (envelope.id, envelope.method) {
        (Some(id), Some(method)) if names_a_request(id.get()) => {
            Ok(Incoming::Request { id: id.get().to_owned(), method: method.into_owned() })
        }
        (_, Some(_)) if envelope.id.is_some() => Err(Fault::NotAMessage),
        (None, Some(method)) => Ok(Incoming::Notification { method: method.into_owned() }),
        (Some(id), None) => Ok(match id.get().parse() {
            Ok(id) => Incoming::Response { id, answer: outcome(bytes, envelope.result, envelope.error) },
            Err(_) => Incoming::Stray,
        }),
        _ => Err(Fault::NotAMessage),
    }
}

fn not_a_message(bytes: &[u8]) -> Fault {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') { Fault::Batch } else { Fault::NotAMessage }
}

/// A string or an integer, of a length that may be repeated to the server.
fn names_a_request(id: &str) -> bool {
    id.len() <= 256 && (id.starts_with('"') || id.parse::<i64>().is_ok())
}

fn outcome(bytes: &Bytes, result: Option<&RawValue>, error: Option<&RawValue>) -> Result<Answer, Fault> {
    match (result, error) {
        (Some(result), None) if result.get().starts_with('{') => {
            Ok(Answer::Result(bytes.slice_ref(result.get().as_bytes())))
        }
        (Some(_), None) => Err(Fault::ResultShape),
        (None, Some(error)) => {
            code(error.get().as_bytes()).ok_or(Fault::ErrorShape)?;
            Ok(Answer::Error(bytes.slice_ref(error.get().as_bytes())))
        }
        _ => Err(Fault::NotOneOutcome),
    }
}

/// The id of a response whose rest cannot be trusted: only good for telling one waiting request that its answer is bad.
pub(super) fn id_of(bytes: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Id {
        id: u64,
    }
    serde_json::from_slice::<Id>(bytes).ok().map(|message| message.id)
}

/// The code of a JSON-RPC error, where it has one and a message.
pub(super) fn code(error: &[u8]) -> Option<i64> {
    #[derive(Deserialize)]
    struct Error<'a> {
        code: i64,
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
    let error: Error<'_> = serde_json::from_slice(error).ok()?;
    let _ = error.message;
    Some(error.code)
}

#[cfg(test)]
mod tests;
