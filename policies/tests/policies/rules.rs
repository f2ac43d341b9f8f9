//! Modules whose meaning is plain enough to say it a second time without Rego.

use crate::plain::{Caller, Tool, seconds};

/// What a module says, in both tongues: [`Rule::rego`] and [`Rule::says`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    NothingAbroad,
    NoDrift,
    NothingReworded,
    NothingThatSaysItDestroys,
    ModernOnly,
    NotAtNight,
    OnlyInTheMorning,
    NothingLarge,
    LookButDoNotPurge,
    OnlyUnderSecond,
    AskForWrites,
    AskForDelegates,
    AskForLarge,
}

/// What a rule adds to a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adds {
    Nothing,
    Refusal,
    Approval,
}

/// The question that a rule is asked.
pub(crate) struct Deed<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) tool: &'a Tool,
    pub(crate) call: bool,
    /// Whether the caller acts under delegations.
    pub(crate) bound: bool,
    /// The delegations that are the caller's now.
    pub(crate) grants: &'a [&'a str],
}

impl Rule {
    /// Whoever asks, when and with what makes no difference to the first ones.
    pub(crate) const STABLE: [Self; 10] = [
        Self::NothingAbroad,
        Self::NoDrift,
        Self::NothingReworded,
        Self::NothingThatSaysItDestroys,
        Self::ModernOnly,
        Self::NotAtNight,
        Self::LookButDoNotPurge,
        Self::OnlyUnderSecond,
        Self::AskForWrites,
        Self::AskForDelegates,
    ];
    /// Those that look at the clock or at arguments.
    pub(crate) const FRESH: [Self; 3] = [Self::OnlyInTheMorning, Self::NothingLarge, Self::AskForLarge];

    pub(crate) fn rego(self) -> String {
        let text = match self {
            Self::NothingAbroad => "deny contains \"abroad\" if input.tool.effect == \"External\"",
            Self::NoDrift => "import data.cotter.pins\n\ndeny contains \"drift\" if pins.drifted(input.tool)",
            Self::NothingReworded => "deny contains \"text\" if input.tool.pin.class == \"Text\"",
            Self::NothingThatSaysItDestroys => "deny contains \"says\" if input.tool.annotations.destructiveHint",
            Self::ModernOnly => "deny contains input.era if input.era == \"legacy\"",
            Self::NotAtNight => "deny contains \"night\" if \"night\" in input.principal.groups",
            Self::OnlyInTheMorning => {
                return format!(
                    "deny contains \"late\" if time.parse_rfc3339_ns(input.now) >= time.parse_rfc3339_ns(\"{}\")",
                    seconds(0)
                );
            }
            Self::NothingLarge => "deny contains \"large\" if input.args.amount > 10",
            Self::LookButDoNotPurge => {
                "deny contains \"purge\" if { input.operation.kind == \"call\"; input.tool.effect == \"Destructive\" }"
            }
            Self::OnlyUnderSecond => "deny contains \"second\" if { input.principal.delegated; not input.grants.g1 }",
            Self::AskForWrites => "require_approval contains \"write\" if input.tool.scope == \"case:write\"",
            Self::AskForDelegates => "require_approval contains \"delegate\" if input.principal.delegated",
            Self::AskForLarge => "require_approval contains \"large\" if input.args.amount > 10",
        };
        text.to_owned()
    }

    pub(crate) fn says(self, deed: &Deed<'_>) -> Adds {
        let Deed { caller, tool, call, bound, grants } = deed;
        let large = *call && caller.amount.is_some_and(|amount| amount > 10);
        let (adds, holds) = match self {
            Self::NothingAbroad => (Adds::Refusal, tool.effect == "External"),
            Self::NoDrift => (Adds::Refusal, tool.pin.0 == "Drifted"),
            Self::NothingReworded => (Adds::Refusal, tool.pin.1 == Some("Text")),
            Self::NothingThatSaysItDestroys => (Adds::Refusal, tool.destroys == Some(true)),
            Self::ModernOnly => (Adds::Refusal, caller.legacy),
            Self::NotAtNight => (Adds::Refusal, caller.groups.contains(&"night")),
            Self::OnlyInTheMorning => (Adds::Refusal, caller.at >= 0),
            Self::NothingLarge => (Adds::Refusal, large),
            Self::LookButDoNotPurge => (Adds::Refusal, *call && tool.effect == "Destructive"),
            Self::OnlyUnderSecond => (Adds::Refusal, *bound && !grants.contains(&"g1")),
            Self::AskForWrites => (Adds::Approval, tool.scope == "case:write"),
            Self::AskForDelegates => (Adds::Approval, *bound),
            Self::AskForLarge => (Adds::Approval, large),
        };
        if holds { adds } else { Adds::Nothing }
    }
}
