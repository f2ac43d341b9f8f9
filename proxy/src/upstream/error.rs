//! What can go wrong between the sidecar and the server. No message repeats the server's own text unescaped or unbounded,
//! since messages reach terminals, logs and status.

use std::io;

use cotter_core::reason::DenyReason;
use cotter_core::strict::StrictError;

use super::text::printable;

/// Why one exchange with the server gave no answer that can be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server cannot be reached, or it went away.
    #[error("the server cannot be reached: {why}")]
    Unreachable {
        /// Whether the server may have received the request.
        dispatched: bool,
        /// Why, in words.
        why: String,
    },
    /// Nothing came in time.
    #[error("the server did not answer in time")]
    Timeout {
        /// Whether the server may have received the request.
        dispatched: bool,
    },
    /// The answer is not one.
    #[error("the server answered out of protocol: {0}")]
    Malformed(Fault),
    /// The answer is larger than the bound.
    #[error("the server's answer is larger than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: u64,
    },
    /// The session had to be opened anew, and nothing was sent through the new one.
    #[error("the server forgot the session")]
    Renewed,
    /// The server answered with a status that refuses the request, and without a JSON-RPC answer to it.
    #[error("the server answered with HTTP status {status}")]
    Refused {
        /// The status.
        status: u16,
    },
}

impl CallError {
    /// Whether the server may have acted on the request. Where this is false, it certainly did not.
    #[must_use]
    pub const fn dispatched(&self) -> bool {
        match self {
            Self::Unreachable { dispatched, .. } | Self::Timeout { dispatched } => *dispatched,
            Self::Renewed => false,
            Self::Malformed(_) | Self::TooLarge { .. } => true,
            // A 4xx is a refusal before anything was done; after a 5xx nobody knows.
            Self::Refused { status } => *status >= 500,
        }
    }

    /// The same, of a request that certainly never left.
    pub(super) fn not_dispatched(self) -> Self {
        match self {
            Self::Timeout { .. } => Self::Timeout { dispatched: false },
            Self::Unreachable { why, .. } => Self::Unreachable { dispatched: false, why },
            other => Self::Unreachable { dispatched: false, why: other.to_string() },
        }
    }

    pub(super) fn unreachable(why: impl Into<String>) -> Self {
        Self::Unreachable { dispatched: false, why: why.into() }
    }

    pub(super) fn lost(why: impl Into<String>) -> Self {
        Self::Unreachable { dispatched: true, why: why.into() }
    }
}

impl From<&CallError> for DenyReason {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Unreachable { .. } | CallError::Refused { .. } | CallError::Renewed => Self::UpstreamUnreachable,
            CallError::Timeout { .. } => Self::UpstreamTimeout,
            CallError::Malformed(_) => Self::UpstreamMalformed,
            CallError::TooLarge { .. } => Self::ResultTooLarge,
        }
    }
}

/// What is wrong with bytes that the server sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not strict JSON.
    #[error("{}", printable(&.0.to_string(), 200))]
    Json(#[from] StrictError),
    /// Not a JSON-RPC 2.0 message.
    #[error("a message that is not a JSON-RPC 2.0 object")]
    NotAMessage,
    /// Several messages in one, which no revision lets a server send here.
    #[error("an array of messages")]
    Batch,
    /// Result and error, or neither.
    #[error("a response that does not have exactly one of `result` and `error`")]
    NotOneOutcome,
    /// A result that is not an object.
    #[error("a `result` that is not an object")]
    ResultShape,
    /// An error without an integer code and a message.
    #[error("an `error` without an integer `code` and a `message`")]
    ErrorShape,
    /// A response to something that was not asked.
    #[error("a response whose id is not that of the request")]
    ForeignId,
    /// The answer's media type is neither JSON nor an event stream, or it is compressed although nobody asked for that.
    #[error("a body of another type than application/json or text/event-stream")]
    MediaType,
    /// A success status without a body where there has to be one.
    #[error("a status of success and no answer")]
    Empty,
    /// The body or stream ended inside a message, or before the answer.
    #[error("the stream ended before the answer was whole")]
    Truncated,
    /// Line after line that is no message.
    #[error("more than {0} lines that are not messages")]
    Noise(u32),
}

/// Why there is no conversation with the server, or why one could not be used to read its catalogue.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The configuration names nothing that can be reached.
    #[error("failed to use the upstream {0}: {1}")]
    Config(String, String),
    /// The certificates that the endpoint is checked against could not be read.
    #[error("failed to read the certificates in {file}: {why}")]
    Certificates {
        /// The file, or where the system keeps them.
        file: String,
        /// Why not.
        why: String,
    },
    /// The program could not be started.
    #[error("failed to start {program:?}: {source}")]
    Spawn {
        /// The program, as configured.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The socket of the shim could not be opened.
    #[error("failed to connect to the server's socket {path}: {source}")]
    Socket {
        /// The socket.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// As many server processes as are allowed run already.
    #[error("failed to start another server process: {0} run already")]
    Busy(usize),
    /// A principal has as many server processes as it may.
    #[error("failed to start another server process: one principal has its share of {0}")]
    Share(usize),
    /// An exchange failed.
    #[error("failed to {doing}: {source}")]
    Exchange {
        /// What was being done.
        doing: &'static str,
        /// What happened.
        source: CallError,
    },
    /// The server refused with a JSON-RPC error.
    #[error("failed to {doing}: the server refused with error {code}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// The error's code.
        code: i64,
    },
    /// The server speaks a revision that the sidecar does not.
    #[error("failed to {doing}: the server speaks revision {revision} and none that is known here")]
    Revision {
        /// What was being done.
        doing: &'static str,
        /// The revision, bounded and printable.
        revision: String,
    },
    /// The server's answer has another shape than the protocol gives it.
    #[error("failed to {doing}: the answer {problem}")]
    Shape {
        /// What was being done.
        doing: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl UpstreamError {
    /// The exchange behind it, where there was one.
    #[must_use]
    pub const fn exchange(&self) -> Option<&CallError> {
        match self {
            Self::Exchange { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<&UpstreamError> for DenyReason {
    fn from(error: &UpstreamError) -> Self {
        match error {
            UpstreamError::Exchange { source, .. } => source.into(),
            UpstreamError::Busy(_) | UpstreamError::Share(_) => Self::TooManySessions,
            UpstreamError::Revision { .. } | UpstreamError::Shape { .. } => Self::UpstreamMalformed,
            _ => Self::UpstreamUnreachable,
        }
    }
}
