//! What a tool does to the world, as its owner declares it. A server's own hints inform a proposal and never decide.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The declared effect of a tool. By itself it refuses nobody: approval, policy and delegations act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Changes something of the tenant's own, and the change can be undone.
    Write,
    /// Changes something of the tenant's own, and the change cannot be undone.
    Destructive,
    /// Leaves the tenant's own systems: mail, payment, another party.
    External,
}

impl Effect {
    /// All effects, from the least consequential.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Destructive, Self::External];

    /// The name as resources write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Destructive => "Destructive",
            Self::External => "External",
        }
    }

    /// Whether a repeated or lost call matters: everything but [`Effect::Read`].
    #[must_use]
    pub const fn is_consequential(self) -> bool {
        !matches!(self, Self::Read)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Effect {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|effect| effect.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not an effect: write Read, Write, Destructive or External"))
    }
}
