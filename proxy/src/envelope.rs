//! One JSON-RPC message, read strictly and without copying: what a second parser could read differently never gets past here.

use std::{borrow::Cow, fmt, marker::PhantomData};

use cotter_core::{
    reason::DenyReason,
    strict::{self, Limits},
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use crate::respond::Refusal;

/// Objects and arrays inside each other, at most.
const DEPTH: u8 = 64;

/// Largest integer that every JSON reader takes for the same one (2^53−1); ids beyond it are refused.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Where a modern request states its revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// One message of a client.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants an answer.
    Request {
        /// The id, exactly as it came.
        id: &'a str,
        /// The method.
        method: Cow<'a, str>,
        /// The parameters.
        params: Params<'a>,
    },
    /// Wants none.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The parameters.
        params: Params<'a>,
    },
    /// Answers something that the server asked. Nothing is ever asked here, so nothing can be answered.
    Response,
}

/// The parameters that are read here, each as its exact text. Everything else stays unread and is not passed on.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    /// `_meta`.
    #[serde(rename = "_meta", borrow, default, deserialize_with = "present")]
    pub meta: Option<&'a RawValue>,
    /// The name of a tool.
    #[serde(borrow, default, deserialize_with = "present")]
    pub name: Option<&'a RawValue>,
    /// The arguments of a call.
    #[serde(borrow, default, deserialize_with = "present")]
    pub arguments: Option<&'a RawValue>,
    /// Where a list goes on.
    #[serde(borrow, default, deserialize_with = "present")]
    pub cursor: Option<&'a RawValue>,
    /// The revision that `initialize` asks for.
    #[serde(borrow, default, deserialize_with = "present")]
    pub protocol_version: Option<&'a RawValue>,
    /// What `_meta` states, where it is an object.
    #[serde(skip)]
    pub stated: Meta<'a>,
}

/// What a modern request states in `_meta`.
#[derive(Debug, Default, Deserialize)]
pub struct Meta<'a> {
    /// The revision.
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default, deserialize_with = "present")]
    pub version: Option<&'a RawValue>,
    /// What the client can do.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default, deserialize_with = "present")]
    pub capabilities: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "object")]
    params: Option<Params<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there keeps its text, also where that text is `null`.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// An object and nothing else: a derived reader would take an array for the members in their order.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(members))
        }
    }
    deserializer.deserialize_map(Object(PhantomData)).map(Some)
}

/// Reads the one message of a body.
///
/// # Errors
/// `ParseError` for what is not strict JSON, `InvalidRequest` for what is not one JSON-RPC 2.0 message.
pub fn read(body: &[u8]) -> Result<Message<'_>, Refusal> {
    let json = strict::text(body, Limits::depth(DEPTH))
        .map_err(|fault| Refusal::because(DenyReason::ParseError, fault.to_string()))?;
    let invalid = |why: &str| Refusal::because(DenyReason::InvalidRequest, why);
    let wire: Wire<'_> = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => serde_json::from_str(json).map_err(|fault| invalid(&fault.to_string()))?,
        Some(b'[') => return Err(invalid("batches are not accepted: send one message")),
        _ => return Err(invalid("not a JSON object")),
    };
    if wire.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(invalid("jsonrpc has to be \"2.0\""));
    }
    match wire {
        Wire { method: Some(method), id, params, result: None, error: None, .. } => {
            let method = text(method).ok_or_else(|| invalid("method has to be a string"))?;
            let mut params = params.unwrap_or_default();
            let stated = params.meta.filter(|meta| is_object(meta)).map(|meta| serde_json::from_str(meta.get()));
            params.stated = stated.and_then(Result::ok).unwrap_or_default();
            match id {
                None => Ok(Message::Notification { method, params }),
                Some(id) if is_id(id.get()) => Ok(Message::Request { id: id.get(), method, params }),
                Some(_) => Err(invalid("id has to be a string or an integer within ±(2^53−1)")),
            }
        }
        Wire { method: None, id: Some(id), result, error, .. }
            if result.is_some() != error.is_some() && is_id(id.get()) =>
        {
            Ok(Message::Response)
        }
        _ => Err(invalid("neither a request, a notification nor a response")),
    }
}

fn is_id(raw: &str) -> bool {
    raw.starts_with('"') || raw.parse::<i64>().is_ok_and(|id| id.unsigned_abs() <= MAX_SAFE)
}

/// The text of a JSON string, borrowed where it holds no escape; `None` where the value is not a string.
#[must_use]
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw.get()).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// Whether the value is an object.
#[must_use]
pub fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_string_or_an_integer_that_everybody_reads_alike() {
        for good in ["\"\"", "\"a\"", "0", "-7", "9007199254740991", "-9007199254740991"] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["null", "1.0", "1e3", "true", "{}", "[]", "9007199254740992", "-9007199254740992", "1e400"] {
            assert!(!is_id(bad), "{bad}");
        }
    }

    #[test]
    fn a_request_keeps_the_exact_text_of_what_matters() {
        let body = br#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","arguments":{"n": 1.0}}}"#;
        let Message::Request { id, method, params } = read(body).unwrap() else { panic!("a request") };
        assert_eq!((id, &*method), ("\"x\"", "tools/call"));
        assert_eq!(params.arguments.map(RawValue::get), Some(r#"{"n": 1.0}"#));
    }

    #[test]
    fn an_escaped_method_is_the_method_that_it_spells() {
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools\/call"}"#;
        assert!(matches!(read(body).unwrap(), Message::Request { method, .. } if method == "tools/call"));
    }
}
