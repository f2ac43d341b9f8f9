//! JSON pointers (RFC 6901) to the members of an object, as a pin and a report write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest pointer accepted, in bytes. The deepest real tool measured nests 22 levels; names of members are short.
pub const MAX_BYTES: usize = 1024;

/// A JSON pointer that names a member: never the empty pointer, which is the whole document.
///
/// Whether a segment such as `0` is the name of a member or the index of an element is known only where the pointer is
/// applied, and it is refused there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

/// Why a text is not a pointer to a member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The empty pointer, or one without the leading slash.
    #[error("failed to read {0:?} as a JSON pointer: it has to start with `/`, for example `/inputSchema/title`")]
    NoSlash(String),
    /// A `~` that is neither `~0` nor `~1`.
    #[error("failed to read {0:?} as a JSON pointer: write `~` as `~0` and `/` inside a name as `~1`")]
    Escape(String),
    /// Longer than [`MAX_BYTES`].
    #[error("failed to read a JSON pointer of {0} bytes: the limit is {MAX_BYTES}")]
    TooLong(usize),
}

impl Pointer {
    /// The pointer as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names on the way down, unescaped.
    pub fn segments(&self) -> impl Iterator<Item = String> + '_ {
        self.0.split('/').skip(1).map(unescape)
    }
}

/// The pointer to the member `name` of what `parent` points to; the empty `parent` is the whole document.
#[must_use]
pub fn join(parent: &str, name: &str) -> String {
    let mut out = String::with_capacity(parent.len() + name.len() + 1);
    out.push_str(parent);
    push(&mut out, name);
    out
}

/// Makes a pointer one to its member `name`.
pub(crate) fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    for char in name.chars() {
        match char {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        if text.len() > MAX_BYTES {
            return Err(PointerError::TooLong(text.len()));
        }
        if !text.starts_with('/') {
            return Err(PointerError::NoSlash(text.to_owned()));
        }
        let escaped = text.split('~').skip(1).all(|rest| rest.starts_with('0') || rest.starts_with('1'));
        if escaped { Ok(Self(text.to_owned())) } else { Err(PointerError::Escape(text.to_owned())) }
    }
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        text.parse()
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_named_and_unescaped() {
        let pointer: Pointer = "/a~1b/c~0d/~01".parse().unwrap();
        assert_eq!(pointer.segments().collect::<Vec<_>>(), ["a/b", "c~d", "~1"]);
        assert_eq!(join("/x", "a/b~c"), "/x/a~1b~0c");
    }

    #[test]
    fn what_names_no_member_is_refused() {
        assert!(matches!("".parse::<Pointer>(), Err(PointerError::NoSlash(_))));
        assert!(matches!("description".parse::<Pointer>(), Err(PointerError::NoSlash(_))));
        assert!(matches!("/a~2".parse::<Pointer>(), Err(PointerError::Escape(_))));
        assert!(matches!("/a~".parse::<Pointer>(), Err(PointerError::Escape(_))));
        assert!(matches!("/".repeat(2000).parse::<Pointer>(), Err(PointerError::TooLong(2000))));
        assert!(serde_json::from_str::<Pointer>("\"x\"").is_err());
    }
}
