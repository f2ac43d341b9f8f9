//! `tools/list` and `tools/call`, the same for both eras: limits, verified catalogue, decision, forwarding.

use std::{collections::BTreeMap, sync::LazyLock, time::Duration};

use cotter_core::{
    catalogue::{Catalogue, Entry, Lookup, Observed},
    decision::Era,
    reason::DenyReason,
    strict::{self, Limits},
};
use hyper::body::Bytes;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    audit::Trail,
    authorize::{Permit, Question},
    conversation::Slot,
    envelope::{self, Params},
    exchange::{Exchange, VERSION},
    limit,
    reader::ReadError,
    respond::Refusal,
    spending,
    upstream::{Answer, Call, CallError, Conversation},
};

/// Characters of a server's error message, and bytes of its error data, that are passed on.
const ERROR_MESSAGE: usize = 4096;
const ERROR_DATA: usize = 64 * 1024;

/// How many sessions one call may meet: a server that forgets each at once is not one that can be used.
const SESSIONS: usize = 3;

/// What the server answered, ready to go into an envelope.
#[derive(Debug)]
pub enum Outcome {
    /// A result object.
    Result(Bytes),
    /// An error object.
    Error(Vec<u8>),
}

/// The tools that the caller may see, as `[…]` of exactly the verified objects, sorted by name.
///
/// # Errors
/// `InvalidParams` for a cursor that was never given out, and every reason of the limits and the decision.
pub fn list(exchange: &Exchange, era: Era, params: &Params<'_>, trail: &mut Trail) -> Result<String, Refusal> {
    if params.cursor.is_some() {
        return Err(Refusal::because(DenyReason::InvalidParams, "the list has one page"));
    }
    let _place = admit(exchange)?;
    let question = question(exchange, era, trail);
    let entries = question.list()?;
    let bytes: usize = entries.iter().map(|entry| entry.served.raw.len() + 1).sum();
    let mut tools = String::with_capacity(bytes + 2);
    tools.push('[');
    for (place, entry) in entries.iter().enumerate() {
        if place > 0 {
            tools.push(',');
        }
        tools.push_str(&entry.served.raw);
    }
    tools.push(']');
    Ok(tools)
}

/// Calls a tool, if the caller may, in the conversation of its session or else in its own.
///
/// # Errors
/// Every reason from `InvalidParams` on.
pub async fn call(
    exchange: &Exchange,
    era: Era,
    params: &Params<'_>,
    session: Option<&Slot>,
    trail: &mut Trail,
) -> Result<Outcome, Refusal> {
    let tool = name(params)?;
    trail.names(&tool);
    let arguments = params.arguments;
    if arguments.is_some_and(|arguments| !envelope::is_object(arguments)) {
        return Err(Refusal::because(DenyReason::InvalidParams, "arguments have to be an object"));
    }
    let _place = admit(exchange)?;
    let question = question(exchange, era, trail);
    let decided = question.call(&tool, arguments.map(RawValue::get));
    let (permit, entry) = decided.inspect_err(|_| exchange.count_denied(trail.now))?;
    trail.fingerprint = permit.fingerprint().map(ToString::to_string);
    trail.delegation = permit.delegations().first().cloned();
    tool_rate(exchange, entry)?;
    let stated = (era, exchange.header(&VERSION)?);
    exchange.enforced.schemas.check(entry, arguments.map(RawValue::get), stated)?;
    trail.delegation = spending::charge(exchange, &permit).inspect_err(|_| exchange.count_denied(trail.now))?;
    if let Some(delegation) = &trail.delegation {
        exchange.shared.uses.allowed(delegation, trail.now);
    }
    let limits = &exchange.enforced.snapshot().limits;
    let smaller =
        |own: Option<u64>, asked: Option<u64>, general: u64| own.unwrap_or(general).min(asked.unwrap_or(u64::MAX));
    let meta = params.meta.and_then(passed_on);
    let call = Call {
        arguments,
        meta: meta.as_deref(),
        deadline: Duration::from_millis(smaller(
            entry.rule.timeout_ms,
            permit.obligations().timeout_ms,
            limits.timeout_ms,
        )),
        result_bytes: smaller(entry.rule.result_bytes, permit.obligations().result_bytes, limits.result_bytes),
    };
    let conversation = converse(exchange, session).await?;
    match dispatch(exchange, &conversation, &permit, call).await? {
        Answer::Result(result) => checked(result, era).map(Outcome::Result),
        Answer::Error(error) => Ok(Outcome::Error(disowned(&error)?)),
    }
}

/// Sends a call through a session whose list was looked at. A session that is newer than the catalogue may be another server's: then
/// the tool has to stand the same comparison on the session's own list.
async fn dispatch(
    exchange: &Exchange,
    conversation: &Conversation,
    permit: &Permit,
    call: Call<'_>,
) -> Result<Answer, Refusal> {
    for _ in 0..SESSIONS {
        let session = conversation.session();
        let list = conversation.own_list(session).await;
        if let Some(list) = list.map_err(|error| unread(&error))? {
            stands(exchange, permit, &list)?;
        }
        match conversation.call(permit, call, session).await {
            Err(CallError::Renewed) => {}
            answered => return answered.map_err(|error| failed(&error)),
        }
    }
    Err(failed(&CallError::Renewed))
}

/// Whether a tool that may be called stands on another list too.
fn stands(exchange: &Exchange, permit: &Permit, list: &Observed) -> Result<(), Refusal> {
    let enforced = &exchange.enforced;
    let catalogue = Catalogue::verify(enforced.snapshot(), list);
    match catalogue.lookup(permit.tool().as_str()) {
        Lookup::Refused(reason) => {
            Err(Refusal::because(reason, "the session shows another list than the one that was verified"))
        }
        Lookup::Callable(own) if enforced.policy.reads_annotations() && !permit.was_decided_on(own) => {
            let why = "the session says something else of the tool than what was decided on";
            Err(Refusal::because(DenyReason::Quarantined, why))
        }
        Lookup::Callable(_) => Ok(()),
    }
}

fn unread(error: &ReadError) -> Refusal {
    let reason = match error {
        ReadError::Open(source) | ReadError::Page { source, .. } => DenyReason::from(source),
        _ => DenyReason::UpstreamMalformed,
    };
    Refusal::because(reason, error.to_string())
}

async fn converse(exchange: &Exchange, session: Option<&Slot>) -> Result<Conversation, Refusal> {
    let (server, owner) = (&exchange.enforced.server, &exchange.caller.owner);
    match session {
        Some(slot) => slot.converse(server, owner).await,
        None => {
            let kept = exchange.shared.conversations.of(owner, exchange.enforced.most_sessions())?;
            kept.slot.converse(server, owner).await
        }
    }
}

fn question<'a>(exchange: &'a Exchange, era: Era, trail: &Trail) -> Question<'a> {
    Question { enforced: &exchange.enforced, caller: &exchange.caller, era, now: trail.now }
}

/// The tool's name.
///
/// # Errors
/// `InvalidParams` where it is not a string.
pub fn name<'a>(params: &Params<'a>) -> Result<std::borrow::Cow<'a, str>, Refusal> {
    let name = params.name.and_then(envelope::text);
    name.ok_or_else(|| Refusal::because(DenyReason::InvalidParams, "name has to be a string"))
}

/// A place among the requests in flight.
fn admit(exchange: &Exchange) -> Result<limit::Place<'_>, Refusal> {
    // A request whose decision does not end never gives its place back: it is not one of those that somebody waits for.
    let limit = exchange.enforced.snapshot().limits.concurrent;
    let place = exchange.shared.in_flight.enter(limit, cotter_policies::stuck);
    place.ok_or_else(|| Refusal::new(DenyReason::TooManyRequests))
}

fn tool_rate(exchange: &Exchange, entry: &Entry) -> Result<(), Refusal> {
    let Some(rate) = entry.rule.rate else { return Ok(()) };
    let buckets = &exchange.shared.buckets;
    buckets.tool(&entry.name).take(rate, buckets.now()).map_err(|wait| limit::exceeded("tool", wait))
}

fn failed(error: &CallError) -> Refusal {
    let outcome = if error.dispatched() { "outcome unknown" } else { "not dispatched" };
    Refusal::because(DenyReason::from(error), format!("{error}; {outcome}"))
}

/// What of `_meta` reaches the server: not the members of the protocol, which are the sidecar's own there, and no token for progress,
/// since progress is not passed back.
fn passed_on(meta: &RawValue) -> Option<Box<RawValue>> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(meta.get()).ok()?;
    members.retain(|name, _| name != "progressToken" && !name.starts_with("io.modelcontextprotocol/"));
    if members.is_empty() { None } else { serde_json::value::to_raw_value(&members).ok() }
}

/// A result has to be complete: what asks for more or promises more is not passed on yet. A modern client is told so.
fn checked(result: Bytes, era: Era) -> Result<Bytes, Refusal> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "resultType", borrow, default, deserialize_with = "envelope::present")]
        result_type: Option<&'a RawValue>,
    }
    let malformed = |why: &str| Refusal::because(DenyReason::UpstreamMalformed, format!("{why}; outcome unknown"));
    // The text between the braces is searched before it is read: results are large and hardly ever state their type.
    static HINTS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new("resultType"), Finder::new("\\u")]);
    if HINTS.iter().all(|hint| hint.find(&result).is_none()) {
        return Ok(if era == Era::Modern { completed(&result) } else { result });
    }
    let head: Head<'_> = serde_json::from_slice(&result).map_err(|_| malformed("the result is not an object"))?;
    match head.result_type.map(RawValue::get) {
        None if era == Era::Modern => Ok(completed(&result)),
        None | Some("\"complete\"") => Ok(result),
        Some(_) => Err(malformed("the result is of a type that is not passed on")),
    }
}

/// The same object with `resultType: complete` put first.
fn completed(result: &Bytes) -> Bytes {
    const TYPE: &[u8] = b"\"resultType\":\"complete\"";
    let Some(open) = memchr::memchr(b'{', result) else { return result.clone() };
    let rest = result.get(open + 1..).unwrap_or_default();
    let is_empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let mut whole = Vec::with_capacity(result.len() + TYPE.len() + 2);
    whole.push(b'{');
    whole.extend_from_slice(TYPE);
    if !is_empty {
        whole.push(b',');
    }
    whole.extend_from_slice(rest);
    whole.into()
}

/// The server's own error, bounded, and without the member by which a caller knows Cotter's.
fn disowned(error: &[u8]) -> Result<Vec<u8>, Refusal> {
    let malformed = || Refusal::because(DenyReason::UpstreamMalformed, "the error is not one; outcome unknown");
    let Ok(Value::Object(members)) = strict::parse(error, Limits::default()) else { return Err(malformed()) };
    let code = members.get("code").and_then(Value::as_i64).ok_or_else(malformed)?;
    let message = members.get("message").and_then(Value::as_str).ok_or_else(malformed)?;
    let message: String = message.chars().take(ERROR_MESSAGE).collect();
    let mut told = Map::from_iter([("code".to_owned(), code.into()), ("message".to_owned(), message.into())]);
    let mut data = members.get("data").cloned();
    if let Some(Value::Object(members)) = &mut data {
        members.remove("source");
    }
    let fits = |data: &Value| serde_json::to_vec(data).is_ok_and(|bytes| bytes.len() <= ERROR_DATA);
    if let Some(data) = data.filter(fits) {
        told.insert("data".to_owned(), data);
    }
    serde_json::to_vec(&told).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn a_modern_client_is_told_that_a_legacy_result_is_complete() {
        let told = |text: &'static str| super::tests::text(&checked(Bytes::from(text), Era::Modern).unwrap());
        assert_eq!(told("{}"), r#"{"resultType":"complete"}"#);
        assert_eq!(told(r#"{ "content":[]}"#), r#"{"resultType":"complete", "content":[]}"#);
        assert_eq!(told(r#"{"resultType":"complete"}"#), r#"{"resultType":"complete"}"#);
        assert_eq!(text(&checked(Bytes::from("{}"), Era::Legacy).unwrap()), "{}");
    }

    #[test]
    fn a_result_that_is_not_complete_is_refused_in_both_eras() {
        for unknown in [r#"{"resultType":"input_required"}"#, r#"{"\u0072esultType":"task"}"#, r#"{"resultType":null}"#]
        {
            for era in [Era::Legacy, Era::Modern] {
                let refusal = checked(Bytes::from(unknown), era).unwrap_err();
                assert_eq!(refusal.reason, DenyReason::UpstreamMalformed, "{unknown}");
            }
        }
    }

    #[test]
    fn nothing_upstream_can_speak_as_cotter() {
        let error = br#"{"code":40301,"message":"no","data":{"source":"cotter","reason":"PolicyDenied"}}"#;
        assert_eq!(
            text(&disowned(error).unwrap()),
            r#"{"code":40301,"data":{"reason":"PolicyDenied"},"message":"no"}"#
        );
    }

    #[test]
    fn an_error_is_bounded() {
        let error = format!(r#"{{"code":1,"message":"{}","data":"{}"}}"#, "m".repeat(10_000), "d".repeat(100_000));
        let told: Value = serde_json::from_slice(&disowned(error.as_bytes()).unwrap()).unwrap();
        assert_eq!((told["message"].as_str().unwrap().len(), told.get("data")), (ERROR_MESSAGE, None));
    }

    #[test]
    fn the_protocols_own_meta_stays_here() {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":1,"traceparent":"00-1"}"#;
        let meta: &RawValue = serde_json::from_str(meta).unwrap();
        assert_eq!(passed_on(meta).unwrap().get(), r#"{"traceparent":"00-1"}"#);
        let nothing: &RawValue = serde_json::from_str(r#"{"progressToken":1}"#).unwrap();
        assert!(passed_on(nothing).is_none());
    }
}
