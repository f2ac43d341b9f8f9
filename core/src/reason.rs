//! Why a request was refused: one closed list, which yields the audit field, the metric label, the JSON-RPC code and the HTTP status.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a refusal is told to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disclosure {
    /// An HTTP refusal before a message was read; the body is a JSON-RPC error without id.
    Http,
    /// The token was missing or bad: 401, the same bytes for every bad token.
    Unauthorized,
    /// A protocol error with a code that JSON-RPC or MCP owns.
    Protocol,
    /// As if the tool did not exist: `-32602`, `Unknown tool`, the same bytes for every such reason.
    UnknownTool,
    /// Told by name, with Cotter's own code and `data.source = "cotter"`.
    Named,
}

macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident => $status:literal, $code:literal, $disclosure:ident, $message:literal;)+) => {
        /// Why a request was refused. Names are stable: they are in the audit, in metrics and in `docs/reasons.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum DenyReason {
            $($(#[$doc])+ $name,)+
        }

        impl DenyReason {
            /// Every reason, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The stable name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
            /// The HTTP status of the answer. A refusal that reads as an unknown tool has the status that the revision gives one.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)+ }
            }
            /// The JSON-RPC error code of the answer.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self { $(Self::$name => $code,)+ }
            }
            /// How the caller is told.
            #[must_use]
            pub const fn disclosure(self) -> Disclosure {
                match self { $(Self::$name => Disclosure::$disclosure,)+ }
            }
            /// What the caller is told, in words.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)+ }
            }
            /// The reason of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
            }
        }
    };
}

reasons! {
    /// The HTTP method is not one that the endpoint has.
    MethodNotAllowed => 405, -32600, Http, "method not allowed";
    /// No endpoint has this path.
    PathNotFound => 404, -32600, Http, "no such path";
    /// The Host header is not one that this server answers to (DNS rebinding).
    HostNotAllowed => 421, -32600, Http, "host not allowed";
    /// The Origin header is not in `access.origins`.
    OriginNotAllowed => 403, -32600, Http, "origin not allowed";
    /// The head is larger than 32 KiB or has more than 100 headers.
    HeadersTooLarge => 431, -32600, Http, "headers too large";
    /// The head or the body did not arrive in time.
    RequestTimeout => 408, -32600, Http, "request timeout";
    /// The body is not `application/json` in UTF-8, or it is encoded.
    UnsupportedMediaType => 415, -32600, Http, "content type has to be application/json, without content encoding";
    /// The client does not accept `application/json` and `text/event-stream`.
    NotAcceptable => 406, -32600, Http, "accept has to list application/json and text/event-stream";
    /// The body is larger than `limits.requestBytes`.
    TooLarge => 413, 41301, Named, "request too large";

    /// No bearer token was presented.
    TokenMissing => 401, 40101, Unauthorized, "unauthorized";
    /// The token is not a signed JWT of an accepted form, or has a header that is not understood.
    TokenMalformed => 401, 40101, Unauthorized, "unauthorized";
    /// The token's algorithm is not one that its key allows; `none` never is.
    TokenAlgorithm => 401, 40101, Unauthorized, "unauthorized";
    /// No key of the issuer fits the token's `kid`.
    TokenKeyUnknown => 401, 40101, Unauthorized, "unauthorized";
    /// The signature does not verify.
    TokenSignature => 401, 40101, Unauthorized, "unauthorized";
    /// The issuer is not declared.
    TokenIssuer => 401, 40101, Unauthorized, "unauthorized";
    /// The token was not minted for this server.
    TokenAudience => 401, 40101, Unauthorized, "unauthorized";
    /// The token has expired.
    TokenExpired => 401, 40101, Unauthorized, "unauthorized";
    /// The token is not valid yet.
    TokenNotYetValid => 401, 40101, Unauthorized, "unauthorized";
    /// A required claim is missing or has the wrong type.
    TokenClaims => 401, 40101, Unauthorized, "unauthorized";
    /// The token's tenant is absent or not in `access.tenants`.
    TenantNotAdmitted => 403, 40302, Named, "tenant not admitted";

    /// The body is not strict JSON (RFC 8259 with unique keys, bounded depth, finite numbers).
    ParseError => 400, -32700, Protocol, "parse error";
    /// The body is JSON but not one JSON-RPC 2.0 request, notification or response.
    InvalidRequest => 400, -32600, Protocol, "invalid request";
    /// The revision is unknown or not in `protocol.revisions`.
    UnsupportedRevision => 400, -32022, Protocol, "unsupported protocol version";
    /// A header and the body disagree, or a required header is missing or repeated.
    HeaderMismatch => 400, -32020, Protocol, "header mismatch";
    /// A legacy request carries no session id where one is needed.
    SessionRequired => 400, -32600, Protocol, "session id required";
    /// The session is unknown, expired, or somebody else's.
    SessionUnknown => 404, -32600, Protocol, "session not found";
    /// More than `limits.sessions` sessions are open.
    TooManySessions => 503, 50303, Named, "too many sessions";
    /// The method is unknown, or a declared policy does not let it pass.
    MethodNotFound => 404, -32601, Protocol, "method not found";
    /// The parameters are not what the method takes.
    InvalidParams => 400, -32602, Protocol, "invalid params";

    /// The server does not offer the tool.
    NotOffered => 200, -32602, UnknownTool, "Unknown tool";
    /// The server offers the tool and the McpServer does not declare it.
    Unlisted => 200, -32602, UnknownTool, "Unknown tool";
    /// The tool is not what was approved, or was never approved.
    Quarantined => 200, -32602, UnknownTool, "Unknown tool";
    /// Two tools have this name or look alike, or the definition cannot be hashed.
    Ambiguous => 200, -32602, UnknownTool, "Unknown tool";
    /// The caller lacks the tool's scope.
    MissingScope => 200, -32602, UnknownTool, "Unknown tool";
    /// No delegation of the caller covers the tool.
    ToolNotDelegated => 200, -32602, UnknownTool, "Unknown tool";
    /// No delegation of the caller covers the tool's effect.
    EffectNotDelegated => 200, -32602, UnknownTool, "Unknown tool";
    /// No delegation of the caller holds in its tenant.
    TenantNotDelegated => 200, -32602, UnknownTool, "Unknown tool";
    /// No delegation of the caller covers the tool's scope.
    ScopeNotDelegated => 200, -32602, UnknownTool, "Unknown tool";

    /// The caller acts under delegations and none is active.
    NoDelegation => 403, 40303, Named, "no active delegation";
    /// A policy refused the arguments.
    PolicyDenied => 403, 40301, Named, "denied by policy";
    /// The policy gave no decision.
    PolicyUndefined => 403, 40304, Named, "denied: policy gave no decision";
    /// The policy failed to evaluate.
    PolicyError => 403, 40305, Named, "denied: policy failed";
    /// The policy did not finish within its budget.
    PolicyTimeout => 403, 40306, Named, "denied: policy took too long";
    /// The caller lacks a scope, and `access.insufficientScope` is `Challenge`.
    InsufficientScope => 403, 40307, Named, "insufficient scope";
    /// The call waits for a person.
    ApprovalRequired => 428, 42801, Named, "approval required";
    /// The caller, or the tool, is called too often.
    RateLimited => 429, 42901, Named, "rate limited";
    /// More than `limits.concurrent` requests are in flight.
    TooManyRequests => 503, 50304, Named, "too many requests in flight";
    /// No snapshot, no keys, no verified catalogue.
    NotReady => 503, 50301, Named, "not ready";
    /// The snapshot is stale and `stale.action` is `Refuse`.
    SnapshotStale => 503, 50302, Named, "policy is stale";
    /// The server cannot be reached, or it went away. A call that was dispatched has an unknown outcome.
    UpstreamUnreachable => 502, 50203, Named, "server unreachable";
    /// The server's answer is not one that can be passed on.
    UpstreamMalformed => 502, 50201, Named, "server answered out of protocol";
    /// The server's answer is larger than `limits.resultBytes`.
    ResultTooLarge => 502, 50202, Named, "result too large";
    /// The server did not answer within the deadline. A call that was dispatched has an unknown outcome.
    UpstreamTimeout => 504, 50401, Named, "server took too long";
    /// A fault of Cotter's own; the log has the decision id.
    Internal => 500, 50001, Named, "internal error";
}

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn own_codes_are_the_status_and_a_number() {
        for reason in DenyReason::ALL.iter().filter(|r| r.disclosure() == Disclosure::Named) {
            assert_eq!(reason.code() / 100, i32::from(reason.status()), "{reason}");
        }
    }

    #[test]
    fn one_own_code_is_one_reason() {
        let mut seen = BTreeMap::new();
        for reason in DenyReason::ALL.iter().filter(|r| r.disclosure() == Disclosure::Named) {
            assert_eq!(seen.insert(reason.code(), reason), None, "{reason}");
        }
    }

    #[test]
    fn every_invisible_reason_reads_the_same() {
        for reason in DenyReason::ALL.iter().filter(|r| r.disclosure() == Disclosure::UnknownTool) {
            assert_eq!((reason.status(), reason.code(), reason.message()), (200, -32602, "Unknown tool"), "{reason}");
        }
    }

    #[test]
    fn a_name_leads_back_to_its_reason() {
        assert_eq!(DenyReason::from_name("MissingScope"), Some(DenyReason::MissingScope));
        assert_eq!(DenyReason::from_name("missingscope"), None);
    }
}
