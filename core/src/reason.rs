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
    ($($(#[doc = $doc:literal])+ $name:ident => $status:literal, $code:literal, $disclosure:ident, $message:literal, $remedy:literal;)+) => {
        /// Why a request was refused. Names are stable: they are in the audit, in metrics and in `docs/reasons.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum DenyReason {
            $($(#[doc = $doc])+ $name,)+
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
            /// What happened, in words for a person.
            #[must_use]
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)+ }
            }
            /// What to do about it.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
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
    MethodNotAllowed => 405, -32600, Http, "method not allowed",
        "Send POST to the endpoint; DELETE ends a legacy session.";
    /// No endpoint has this path.
    PathNotFound => 404, -32600, Http, "no such path",
        "Use the path of the endpoint in `status.endpoint`.";
    /// The Host header is not one that this server answers to (DNS rebinding).
    HostNotAllowed => 421, -32600, Http, "host not allowed",
        "Use a name of the Service, or add the host to `access.hosts` or `access.publicUrl`.";
    /// The Origin header is not in `access.origins`.
    OriginNotAllowed => 403, -32600, Http, "origin not allowed",
        "Add the origin to `access.origins`, if a page there may call.";
    /// The head is larger than 32 KiB or has more than 100 headers.
    HeadersTooLarge => 431, -32600, Http, "headers too large",
        "Send fewer or shorter headers.";
    /// The head or the body did not arrive in time.
    RequestTimeout => 408, -32600, Http, "request timeout",
        "Send the head within 10 s and the body within 30 s.";
    /// The body is not `application/json` in UTF-8, or it is encoded.
    UnsupportedMediaType => 415, -32600, Http, "content type has to be application/json, without content encoding",
        "Send `Content-Type: application/json` and no `Content-Encoding`.";
    /// The client does not accept `application/json` and `text/event-stream`.
    NotAcceptable => 406, -32600, Http, "accept has to list application/json and text/event-stream",
        "Send `Accept: application/json, text/event-stream`.";
    /// The body is larger than `limits.requestBytes`.
    TooLarge => 413, 41301, Named, "request too large",
        "Send less, or raise `limits.requestBytes`.";

    /// No bearer token was presented.
    TokenMissing => 401, 40101, Unauthorized, "unauthorized",
        "Send `Authorization: Bearer TOKEN`.";
    /// The token is not a signed JWT of an accepted form, or has a header that is not understood.
    TokenMalformed => 401, 40101, Unauthorized, "unauthorized",
        "Send a signed JWT (RFC 7519) without critical headers.";
    /// The token's algorithm is not one that its key allows; `none` never is.
    TokenAlgorithm => 401, 40101, Unauthorized, "unauthorized",
        "Have the issuer sign with the algorithm of its published key.";
    /// No key of the issuer fits the token's `kid`.
    TokenKeyUnknown => 401, 40101, Unauthorized, "unauthorized",
        "Check that the issuer publishes the key that signs; `KeysReady` says what is known.";
    /// The signature does not verify.
    TokenSignature => 401, 40101, Unauthorized, "unauthorized",
        "Have the token minted by the declared issuer.";
    /// The issuer is not declared.
    TokenIssuer => 401, 40101, Unauthorized, "unauthorized",
        "Add the issuer to `access.issuers`, if it may mint tokens for this server.";
    /// The token was not minted for this server.
    TokenAudience => 401, 40101, Unauthorized, "unauthorized",
        "Have the token minted for `spec.audience` (RFC 8707 `resource`).";
    /// The token has expired.
    TokenExpired => 401, 40101, Unauthorized, "unauthorized",
        "Get a fresh token.";
    /// The token is not valid yet.
    TokenNotYetValid => 401, 40101, Unauthorized, "unauthorized",
        "Check the clocks; 30 s of difference are allowed.";
    /// A required claim is missing or has the wrong type.
    TokenClaims => 401, 40101, Unauthorized, "unauthorized",
        "Have `sub`, `exp`, `iss` and `aud` in the token, each once and of its type.";
    /// The token's tenant is absent or not in `access.tenants`.
    TenantNotAdmitted => 403, 40302, Named, "tenant not admitted",
        "Add the tenant to `access.tenants`; for a service account the tenant is its namespace, or what `serviceAccounts.tenants` maps it to.";

    /// The body is not strict JSON (RFC 8259 with unique keys, bounded depth, finite numbers).
    ParseError => 400, -32700, Protocol, "parse error",
        "Send JSON that every parser reads alike: unique names, at most 64 levels, finite numbers.";
    /// The body is JSON but not one JSON-RPC 2.0 request, notification or response.
    InvalidRequest => 400, -32600, Protocol, "invalid request",
        "Send one JSON-RPC 2.0 message; arrays are refused.";
    /// The revision is unknown or not in `protocol.revisions`.
    UnsupportedRevision => 400, -32022, Protocol, "unsupported protocol version",
        "Speak one of `protocol.revisions`; the answer lists them.";
    /// A header and the body disagree, or a required header is missing or repeated.
    HeaderMismatch => 400, -32020, Protocol, "header mismatch",
        "Send each of `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name` once, as in the body.";
    /// A legacy request carries no session id where one is needed.
    SessionRequired => 400, -32600, Protocol, "session id required",
        "Send the `Mcp-Session-Id` that `initialize` gave.";
    /// The session is unknown, expired, or somebody else's.
    SessionUnknown => 404, -32600, Protocol, "session not found",
        "Begin again with `initialize`.";
    /// More than `limits.sessions` sessions are open, or as many processes as a server with a process for each session may have.
    TooManySessions => 503, 50303, Named, "too many sessions",
        "End sessions with DELETE, raise `limits.sessions`, or set `sessions: Shared` where the server can serve all in one process.";
    /// The method is unknown, or a declared policy does not let it pass.
    MethodNotFound => 404, -32601, Protocol, "method not found",
        "Use a method that the server has and `protocol.allow` lets pass.";
    /// The parameters are not what the method takes.
    InvalidParams => 400, -32602, Protocol, "invalid params",
        "Send the parameters that the method takes.";

    /// The server does not offer the tool.
    NotOffered => 200, -32602, UnknownTool, "Unknown tool",
        "Check the name. If the server should offer it, look at the server.";
    /// The server offers the tool and the McpServer does not declare it.
    Unlisted => 200, -32602, UnknownTool, "Unknown tool",
        "Declare the tool in `spec.tools`, if it may be used.";
    /// The tool is not what was approved, or was never approved.
    Quarantined => 200, -32602, UnknownTool, "Unknown tool",
        "Review what changed (`status.drift` of the ToolPin) and pin it, or put the old release back.";
    /// Two tools have this name or look alike, or the definition cannot be hashed.
    Ambiguous => 200, -32602, UnknownTool, "Unknown tool",
        "Have the server name its tools apart, and keep numbers within ±(2^53−1).";
    /// The caller lacks the tool's scope.
    MissingScope => 200, -32602, UnknownTool, "Unknown tool",
        "Get a token with the tool's scope.";
    /// No delegation of the caller covers the tool.
    ToolNotDelegated => 200, -32602, UnknownTool, "Unknown tool",
        "Name the tool in `tools` of an AgentDelegation to the caller.";
    /// No delegation of the caller covers the tool's effect.
    EffectNotDelegated => 200, -32602, UnknownTool, "Unknown tool",
        "Name the effect in `effects` of an AgentDelegation to the caller.";
    /// No delegation of the caller holds in its tenant.
    TenantNotDelegated => 200, -32602, UnknownTool, "Unknown tool",
        "Name the tenant in `tenants` of an AgentDelegation to the caller.";
    /// No delegation of the caller covers the tool's scope.
    ScopeNotDelegated => 200, -32602, UnknownTool, "Unknown tool",
        "Name the scope in `scopes` of an AgentDelegation to the caller.";

    /// The caller acts under delegations and none is active.
    NoDelegation => 403, 40303, Named, "no active delegation",
        "Create an AgentDelegation to the caller, or look why the existing one is not Active.";
    /// A rule of a policy module refused it.
    PolicyDenied => 403, 40301, Named, "denied by policy",
        "The record has the rule's own words, and `cotter why` its place. What a rule looks at may be the caller, the tool, the time or the arguments: change that, or the module.";
    /// The policy gave no decision.
    PolicyUndefined => 403, 40305, Named, "denied: policy gave no decision",
        "A fault of the policy: `cotter-operator` and `cotter up` show it under `PoliciesReady`.";
    /// The policy failed to evaluate.
    PolicyError => 403, 40306, Named, "denied: policy failed",
        "A rule failed on this input; the record has the engine's words.";
    /// The policy did not finish within its budget.
    PolicyTimeout => 403, 40307, Named, "denied: policy took too long",
        "Make the rule cheaper: it has 20 ms.";
    /// A policy reads the arguments, and a number in them is not exactly what the policy would see, or has no canonical form.
    ArgumentsNotExact => 403, 40308, Named, "denied: a number in the arguments is not exact",
        "The record has the JSON pointer. Send whole numbers within ±(2^53−1) and decimals of at most 15 digits, or send the number as text.";
    /// The caller lacks a scope, and `access.insufficientScope` is `Challenge`.
    InsufficientScope => 403, 40304, Named, "insufficient scope",
        "Get a token with the scopes that the challenge names.";
    /// The call waits for a person.
    ApprovalRequired => 428, 42801, Named, "approval required",
        "The call waits for a person; approvals come with a later release.";
    /// The arguments are not what the tool's schema takes, or checking them takes too much.
    InvalidArguments => 400, -32602, Protocol, "invalid arguments",
        "Send what the tool's `inputSchema` takes; the answer names the first arguments that break it.";
    /// The caller, or the tool, is called too often.
    RateLimited => 429, 42901, Named, "rate limited",
        "Wait as `Retry-After` says, or raise `limits.rate` or the tool's `limits.rate`.";
    /// The budget of the delegation, or of one above it, is used up.
    BudgetExhausted => 429, 42902, Named, "budget exhausted",
        "Wait as `Retry-After` says, where the answer has one; else raise the `budget` of the AgentDelegation that the record names.";
    /// More than `limits.concurrent` requests are in flight.
    TooManyRequests => 503, 50304, Named, "too many requests in flight",
        "Wait, or raise `limits.concurrent`.";
    /// No snapshot, no keys, no verified catalogue.
    NotReady => 503, 50301, Named, "not ready",
        "Wait; the conditions of the McpServer say for what.";
    /// The snapshot is stale and `stale.action` is `Refuse`.
    SnapshotStale => 503, 50302, Named, "policy is stale",
        "Bring the operator back, or set `stale.action: Report`.";
    /// The server cannot be reached, or it went away. A call that was dispatched has an unknown outcome.
    UpstreamUnreachable => 502, 50203, Named, "server unreachable",
        "Look at the server. Do not repeat a consequential call blindly.";
    /// The server's answer is not one that can be passed on.
    UpstreamMalformed => 502, 50201, Named, "server answered out of protocol",
        "The server broke the protocol; the record says how.";
    /// The server's answer is larger than `limits.resultBytes`.
    ResultTooLarge => 502, 50202, Named, "result too large",
        "Ask for less, or raise `limits.resultBytes`.";
    /// The server did not answer within the deadline. A call that was dispatched has an unknown outcome.
    UpstreamTimeout => 504, 50401, Named, "server took too long",
        "Raise `limits.timeout`, or look at the server. Do not repeat a consequential call blindly.";
    /// A fault of Cotter's own; the log has the decision id.
    Internal => 500, 50001, Named, "internal error",
        "Look for the decision id in the log, and report it.";
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
