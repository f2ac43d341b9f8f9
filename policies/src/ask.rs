//! What a caller of this crate asks and what it gets.

use std::{collections::BTreeMap, sync::Arc};

use cotter_core::{
    decision::{Decision, Era, Kind},
    name::ToolName,
    principal::Principal,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::authority::Authority;

/// How a tool's definition compares with what was approved, by the names that status and audit use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PinFacts {
    /// `Matched`, `Drifted`, `Added`, `Unpinned`, …
    pub state: &'static str,
    /// The class of the difference, where there is one.
    pub class: Option<&'static str>,
}

impl PinFacts {
    /// Exactly what was approved.
    pub const MATCHED: Self = Self { state: "Matched", class: None };
    /// There is no pin and the server's owner lets unpinned tools pass.
    pub const UNPINNED: Self = Self { state: "Unpinned", class: None };
}

/// One question: may this principal see, or call, this tool?
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Who asks.
    pub principal: &'a Principal,
    /// [`crate::Policy::authority`] of the same principal, made once for a token. It is made anew where it is absent, was made by
    /// another policy, or is no longer valid.
    pub authority: Option<&'a Authority>,
    /// The line of the protocol.
    pub era: Era,
    /// The JSON-RPC method.
    pub method: &'a str,
    /// Seen or used.
    pub kind: Kind,
    /// The tool.
    pub tool: &'a ToolName,
    /// How its definition compares with what was approved.
    pub pin: PinFacts,
    /// The `annotations` of the definition that is served, as the server states them; absent where it states none or they are not known.
    pub annotations: Option<&'a Value>,
    /// The arguments, exactly as they came and already strictly checked; absent where the caller sent none, and when listing.
    pub arguments: Option<&'a str>,
    /// The time of the question.
    pub now: Timestamp,
}

/// One tool of a list.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    /// As in [`Ask::pin`].
    pub pin: PinFacts,
    /// As in [`Ask::annotations`].
    pub annotations: Option<&'a Value>,
}

impl From<PinFacts> for Listed<'_> {
    fn from(pin: PinFacts) -> Self {
        Self { pin, annotations: None }
    }
}

/// The same question on many tools at once: which of them may this principal see?
#[derive(Debug, Clone, Copy)]
pub struct ListAsk<'a> {
    /// Who asks.
    pub principal: &'a Principal,
    /// As in [`Ask::authority`].
    pub authority: Option<&'a Authority>,
    /// The line of the protocol.
    pub era: Era,
    /// The JSON-RPC method.
    pub method: &'a str,
    /// The tools in question: those that can be served now.
    pub tools: &'a BTreeMap<ToolName, Listed<'a>>,
    /// The time of the question.
    pub now: Timestamp,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Arc<Decision>,
    /// The delegations that permit it, each by itself, sorted; none where the principal does not act under delegations.
    pub delegations: Arc<[Arc<str>]>,
    /// Whether the same principal would see the tool in a list. A refused call of a tool that is not visible has to be answered as if
    /// the tool did not exist, whatever the reason; a tool that is not visible cannot be called.
    pub visible: bool,
}

impl Verdict {
    /// The first of the delegations that permit it.
    #[must_use]
    pub fn delegation(&self) -> Option<&Arc<str>> {
        self.delegations.first()
    }

    /// Whether it may happen.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.decision.allow
    }
}
