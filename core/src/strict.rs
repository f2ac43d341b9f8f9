//! Strict JSON (RFC 8259 with I-JSON's unique names): what two parsers could read differently is refused.
//!
//! UTF-8 without a byte order mark, no name twice in one object at any depth, no lone surrogate, no number that is not
//! finite, nothing after the value, and a bounded depth. The checker and the builder of the value are one piece of
//! code over one parser, so what was checked is what is used. `serde_json::from_slice::<Value>` must not be used on
//! foreign bytes: it keeps the last of two equal names, and it reads an object whose only name is the crate's private
//! marker for raw values as the JSON text inside it.

mod node;
mod visit;

use std::ops::Not as _;

use serde_json::Value;

use crate::pointer::push;

/// Depth used where nothing else is said: real tool lists nest at most 22 levels.
pub const DEFAULT_DEPTH: u8 = 64;

/// The parser's own limit is 128 levels; a limit beyond this one could not be kept.
pub const MAX_DEPTH: u8 = 127;

/// What is accepted. Bytes are bounded by whoever read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    depth: u8,
}

impl Limits {
    /// At most `depth` objects and arrays inside each other, and never more than [`MAX_DEPTH`].
    #[must_use]
    pub const fn depth(depth: u8) -> Self {
        Self { depth: if depth > MAX_DEPTH { MAX_DEPTH } else { depth } }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::depth(DEFAULT_DEPTH)
    }
}

/// Where in the text, counted from 1; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Byte of the line.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} column {}", self.line, self.column)
    }
}

/// Why bytes are not strict JSON. `pointer` is the JSON pointer to the member or element that is wrong, empty for the
/// whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    /// Not UTF-8.
    #[error("not UTF-8 from byte {offset} on")]
    NotUtf8 {
        /// First byte that is wrong, counted from 0.
        offset: usize,
    },
    /// A byte order mark, which RFC 8259 forbids to send.
    #[error("a byte order mark before the JSON text")]
    ByteOrderMark,
    /// One object names a member twice.
    #[error("the name `{pointer}` occurs twice in one object, again at {at}")]
    DuplicateKey {
        /// The member.
        pointer: String,
        /// Just behind the second occurrence.
        at: Position,
    },
    /// More levels than the limit.
    #[error("nested deeper than {limit} levels at `{pointer}`, {at}")]
    TooDeep {
        /// The limit.
        limit: u8,
        /// The first object or array beyond it.
        pointer: String,
        /// Where that begins.
        at: Position,
    },
    /// A number that no double holds, such as `1e999`.
    #[error("the number at `{pointer}`, {at}, is not finite")]
    NotFinite {
        /// The number.
        pointer: String,
        /// Where it is.
        at: Position,
    },
    /// An escaped surrogate without its other half.
    #[error("a lone surrogate in the string at `{pointer}`, {at}")]
    LoneSurrogate {
        /// The string, or the object one of whose names it is.
        pointer: String,
        /// Where it is.
        at: Position,
    },
    /// A member whose name a parser takes for a sign to itself: what is a plain object here is a number or any other value there.
    #[error("the name `{pointer}` is reserved by a JSON library, {at}")]
    Reserved {
        /// The member.
        pointer: String,
        /// Just behind its name.
        at: Position,
    },
    /// Something after the value.
    #[error("more text after the end of the value, at {at}")]
    TrailingData {
        /// The first byte after it.
        at: Position,
    },
    /// Not JSON at all.
    #[error("not JSON: {reason} (in `{pointer}`)")]
    Syntax {
        /// What the parser says, with line and column.
        reason: String,
        /// The innermost member or element begun.
        pointer: String,
    },
}

/// Checks that `bytes` are strict JSON, building nothing.
///
/// # Errors
/// The first fault, with its place.
pub fn check(bytes: &[u8], limits: Limits) -> Result<(), StrictError> {
    visit::read::<()>(bytes, limits).map(drop)
}

/// The same, and the bytes as the text that was checked: whoever reads on need not look for UTF-8 again.
///
/// # Errors
/// As [`check`].
pub fn text(bytes: &[u8], limits: Limits) -> Result<&str, StrictError> {
    visit::read::<()>(bytes, limits).map(|(text, ())| text)
}

/// Checks that `bytes` are strict JSON and builds the value in the same pass.
///
/// # Errors
/// The first fault, with its place: exactly what [`check`] says.
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Value, StrictError> {
    visit::read::<Value>(bytes, limits).map(|(_, value)| value)
}

/// The pointer to the first number that not every reader takes for the same one: an integer beyond ±(2^53−1), where
/// neighbours share one double and RFC 8785 would give two schemas one form.
///
/// A double up to 1e21 counts as well, however it was spelt: RFC 8785 and every ECMAScript printer write it with all
/// its digits, so that `1e20` has become such an integer behind the next hop. Integers of more digits are no integers
/// any more in a parsed value: [`unsafe_literal`] finds them in the text.
#[must_use]
pub fn unsafe_integer(value: &Value) -> Option<String> {
    find(value, &mut String::new())
}

/// The first integer in a text of strict JSON that is written with all its digits and lies beyond ±(2^53−1).
#[must_use]
pub fn unsafe_literal(text: &str) -> Option<&str> {
    let mut quoted = text.split('"');
    let mut outside = quoted.next();
    while let Some(plain) = outside {
        let mut tokens =
            plain.split(|char: char| matches!(char, '[' | ']' | '{' | '}' | ',' | ':') || char.is_whitespace());
        if let Some(literal) = tokens.find(|token| is_unsafe_literal(token)) {
            return Some(literal);
        }
        // The string ends at the first quote that an even number of backslashes precedes.
        while quoted.next().is_some_and(|part| part.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1) {}
        outside = quoted.next();
    }
    None
}

fn is_unsafe_literal(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    whole && digits.parse::<u64>().is_ok_and(|number| number <= MAX_SAFE).not()
}

const MAX_SAFE: u64 = (1 << 53) - 1;

fn find(value: &Value, path: &mut String) -> Option<String> {
    match value {
        Value::Number(number) => is_unsafe(number).then(|| path.clone()),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| at(item, path, &index.to_string())),
        Value::Object(members) => members.iter().find_map(|(name, member)| at(member, path, name)),
        _ => None,
    }
}

fn at(value: &Value, path: &mut String, segment: &str) -> Option<String> {
    let before = path.len();
    push(path, segment);
    let found = find(value, path);
    path.truncate(before);
    found
}

fn is_unsafe(number: &serde_json::Number) -> bool {
    if let Some(whole) = number.as_i64() {
        return whole.unsigned_abs() > MAX_SAFE;
    }
    number.is_u64() || number.as_f64().is_none_or(|double| (9_007_199_254_740_992.0..1e21).contains(&double.abs()))
}
