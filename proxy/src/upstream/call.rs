//! What is sent with a call, and what comes back.

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    error::{CallError, UpstreamError},
    message,
};

/// One tool call, beside the permit that names the tool.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The arguments, which reach the server byte for byte.
    pub arguments: Option<&'a RawValue>,
    /// What of the caller's `_meta` is passed on, as a JSON object. Members of the protocol's own prefix are left out for a
    /// modern server, where they are the sidecar's.
    pub meta: Option<&'a RawValue>,
    /// How long the answer may take.
    pub deadline: Duration,
    /// How large the result may be.
    pub result_bytes: u64,
}

/// The server's answer: exact bytes, strictly checked, of exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The `result` object.
    Result(Bytes),
    /// The `error` object, with an integer code and a message.
    Error(Bytes),
}

impl Answer {
    pub(super) fn within(self, limit: u64) -> Result<Self, CallError> {
        let (Self::Result(bytes) | Self::Error(bytes)) = &self;
        if bytes.len() as u64 > limit { Err(CallError::TooLarge { limit }) } else { Ok(self) }
    }

    pub(super) fn result(self, doing: &'static str) -> Result<Bytes, UpstreamError> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error(error) => {
                Err(UpstreamError::Refused { doing, code: message::code(&error).unwrap_or_default() })
            }
        }
    }
}
