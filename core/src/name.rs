//! Names, parsed once at the edge: every one has a form and a length budget, and the same parser serves resource, file and wire.

use std::{borrow::Borrow, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::scan::is_hidden;

/// Why a text is not a name of the wanted kind. Says what is wrong and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {text:?} {problem}")]
pub struct NameError {
    kind: &'static str,
    text: String,
    problem: String,
}

/// At most this much of a refused text is repeated to the person who wrote it.
const SHOWN: usize = 64;

impl NameError {
    fn new(kind: &'static str, text: &str, problem: impl Into<String>) -> Self {
        let shown = text.chars().take(SHOWN).collect();
        Self { kind, text: shown, problem: problem.into() }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Longest accepted text, in bytes.
            pub const MAX: usize = $max;
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                if text.is_empty() {
                    return Err(NameError::new($kind, text, "is empty"));
                }
                if text.len() > $max {
                    return Err(NameError::new($kind, text, format!("is longer than {} bytes", $max)));
                }
                $check(text).map_err(|problem| NameError::new($kind, text, problem))?;
                Ok(Self(text.to_owned()))
            }
        }
        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// Name of a Kubernetes object that also names a Service: an RFC 1035 label.
    ObjectName, "object name", 63, dns_label
);
name!(
    /// A Kubernetes namespace: an RFC 1123 label.
    Namespace, "namespace", 63, dns_label
);
name!(
    /// A tool's name as a server and its manifest write it. MCP recommends `[A-Za-z0-9_.-]`; other printable ASCII is accepted
    /// because real servers use it, and nothing else, so that no two names look alike.
    ToolName, "tool name", 128, printable_ascii
);
name!(
    /// One scope: an RFC 6749 section 3.3 scope-token.
    Scope, "scope", 256, scope_token
);
name!(
    /// A tenant, as tokens name it.
    Tenant, "tenant", 128, visible_text
);
name!(
    /// A token's subject (RFC 7519 section 4.1.2). Compared byte for byte.
    Subject, "subject", 255, visible_text
);
name!(
    /// A token's issuer (RFC 7519 section 4.1.1). Compared byte for byte, as RFC 8414 demands.
    Issuer, "issuer", 512, visible_text
);
name!(
    /// A resource that tokens are minted for (RFC 8707 resource indicator). Compared byte for byte.
    Audience, "audience", 512, visible_text
);

fn dns_label(text: &str) -> Result<(), String> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(|b| *b != b'-');
    if bytes.iter().copied().all(inner) && edge(bytes.first()) && edge(bytes.last()) {
        return Ok(());
    }
    Err("is not a DNS label: use lower-case letters, digits and '-', not at either end".to_owned())
}

fn printable_ascii(text: &str) -> Result<(), String> {
    if text.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err("has a character outside printable ASCII: use A-Z a-z 0-9 _ . - /".to_owned())
}

fn scope_token(text: &str) -> Result<(), String> {
    let allowed = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    if text.bytes().all(allowed) {
        return Ok(());
    }
    Err("is not a scope-token (RFC 6749 section 3.3): printable ASCII without space, '\"' and '\\'".to_owned())
}

fn visible_text(text: &str) -> Result<(), String> {
    match text.chars().find(|c| c.is_control() || is_hidden(*c)) {
        None => Ok(()),
        Some(c) => Err(format!("has the invisible character U+{:04X}", c as u32)),
    }
}

/// A namespaced object of this cluster, or of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ServerRef {
    /// The namespace.
    pub namespace: Namespace,
    /// The McpServer's name.
    pub name: ObjectName,
}

impl fmt::Display for ServerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_is_a_scope_token() {
        assert!("case:write".parse::<Scope>().is_ok());
        for bad in ["", "a b", "a\"", "a\\", "é"] {
            assert!(bad.parse::<Scope>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_invisible_character_is_named() {
        let error = "tenant\u{200b}7".parse::<Tenant>().unwrap_err().to_string();
        assert!(error.contains("U+200B"), "{error}");
        assert!("tenant-7".parse::<Tenant>().is_ok());
    }

    #[test]
    fn a_name_has_a_length_budget() {
        assert!("a".repeat(63).parse::<ObjectName>().is_ok());
        assert!("a".repeat(64).parse::<ObjectName>().is_err());
        assert!("-a".parse::<ObjectName>().is_err());
    }

    #[test]
    fn deserialising_parses() {
        assert!(serde_json::from_str::<ToolName>("\"case_tag\"").is_ok());
        assert!(serde_json::from_str::<ToolName>("\"case tag\"").is_err());
    }
}
