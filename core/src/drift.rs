//! What changed between an approved and an observed definition, and how bad that is.
//!
//! The classes and their order are those of the design of pins. The table is read conservatively: whatever it does not
//! name is [`Class::AuthorityExpanding`], so an unknown keyword or a member of a later revision is never waved through.

mod bound;
mod fresh;
mod keyword;
mod members;
mod schema;
mod target;
mod why;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

pub use target::TARGET_WORDS;
pub use why::Why;

use self::bound::Changes;
use crate::fingerprint::{HashError, Ignore};
use crate::normalise::effective;
use crate::scan::{self, Finding, Found};
use crate::strict;

/// The class of a change, worst first: that is also the order of comparison, so the worst of several is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Class {
    /// The tool may do, or get a model or a host to do, more than was approved; or nobody can tell.
    AuthorityExpanding,
    /// Two tools nobody can tell apart, or an object that two readers read differently.
    Ambiguous,
    /// Declared and offered, but not pinned.
    Added,
    /// Only prose or order changed.
    Text,
    /// More can be said, and none of it names a target.
    Additive,
    /// Less can be said.
    Narrowing,
    /// Pinned, but not offered.
    Removed,
    /// The strict digest moved and the effective one did not.
    Cosmetic,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// The member that changed: the deepest that can be named, and an array as a whole.
    pub pointer: String,
    /// Its class, taken alone.
    pub class: Class,
    /// Which row of the table that is.
    pub why: Why,
}

/// All that changed in one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The class of the whole, at least as bad as that of each change.
    pub class: Class,
    /// The pointers of the changes, sorted, each once.
    pub fields: Vec<String>,
    /// Kinds of findings in what changed, sorted, each once.
    pub findings: Vec<Finding>,
    /// The changes, sorted.
    pub changes: Vec<Change>,
    /// The findings with their places, sorted.
    pub found: Vec<Found>,
    /// Why the whole is worse than each change alone; none where it is not.
    pub lifted: Option<Why>,
}

/// Compares an observed definition with the approved one. `None` means that the strict digests are equal.
#[must_use]
pub fn classify(approved: &Value, observed: &Value, ignore: &Ignore) -> Option<Drift> {
    let (approved, observed) = match (readable(approved, ignore), readable(observed, ignore)) {
        (Ok(approved), Ok(observed)) => (approved, observed),
        (_, Err(error)) | (Err(error), _) => return Some(unreadable(&error)),
    };
    if approved == observed {
        return None;
    }
    if !bound::is_comparable(&approved) || !bound::is_comparable(&observed) {
        return Some(Drift::alone("", Class::AuthorityExpanding, Why::TooMuch));
    }
    let mut changes = Changes::default();
    let (before, after) = (effective(&approved), effective(&observed));
    members::changes(&before, &after, &mut changes);
    if before == after {
        let mut add = |pointer| changes.add(pointer, Class::Cosmetic, Why::Cosmetic);
        members::differing(&approved, &observed, "", &mut add);
    }
    let fresh = fresh::strings(&approved, &observed);
    for (pointer, _) in fresh.iter().filter(|(pointer, text)| fresh::is_strange_dialect(pointer, text)) {
        changes.add(pointer.clone(), Class::AuthorityExpanding, Why::Dialect);
    }
    Some(Drift::of(changes.into_vec(), scan::scan_texts(fresh)))
}

/// The drift of a tool whose pin carries no definition: a change was seen and cannot be classed.
#[must_use]
pub fn without_definition() -> Drift {
    Drift::alone("", Class::AuthorityExpanding, Why::DefinitionUnknown)
}

impl Class {
    /// As written in status and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthorityExpanding => "AuthorityExpanding",
            Self::Ambiguous => "Ambiguous",
            Self::Added => "Added",
            Self::Text => "Text",
            Self::Additive => "Additive",
            Self::Narrowing => "Narrowing",
            Self::Removed => "Removed",
            Self::Cosmetic => "Cosmetic",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Drift {
    fn of(mut changes: Vec<Change>, found: Vec<Found>) -> Self {
        changes.sort();
        changes.dedup();
        let mut fields: Vec<String> = changes.iter().map(|change| change.pointer.clone()).collect();
        fields.sort();
        fields.dedup();
        let mut findings: Vec<Finding> = found.iter().map(|found| found.finding).collect();
        findings.sort();
        findings.dedup();
        let worst = changes.iter().map(|change| change.class).min().unwrap_or(Class::AuthorityExpanding);
        let lifted = lift(worst, &changes, &found);
        let class = if lifted.is_some() { Class::AuthorityExpanding } else { worst };
        Self { class, fields, findings, changes, found, lifted }
    }

    fn alone(pointer: &str, class: Class, why: Why) -> Self {
        Self::of(vec![Change { pointer: pointer.to_owned(), class, why }], Vec::new())
    }
}

/// Why changes together are worse than each alone.
fn lift(worst: Class, changes: &[Change], found: &[Found]) -> Option<Why> {
    let has = |class: Class| changes.iter().any(|change| change.class == class);
    let rewritten = changes.iter().any(|change| change.why == Why::Description);
    let reshaped = changes.iter().any(|change| change.class != Class::Text && in_schema(&change.pointer));
    if worst <= Class::Ambiguous {
        None
    } else if !found.is_empty() {
        Some(Why::Findings)
    } else if rewritten && reshaped {
        Some(Why::DescriptionWithSchema)
    } else if has(Class::Additive) && has(Class::Narrowing) {
        Some(Why::BothDirections)
    } else {
        None
    }
}

fn in_schema(pointer: &str) -> bool {
    pointer.starts_with("/inputSchema") || pointer.starts_with("/outputSchema")
}

/// The object as the strict digest sees it: without what is ignored, and each number in its one form.
fn readable(value: &Value, ignore: &Ignore) -> Result<Value, HashError> {
    if let Some(pointer) = strict::unsafe_integer(value) {
        return Err(HashError::UnsafeInteger(pointer));
    }
    let mut value = ignore.remove(value)?;
    canonical_numbers(&mut value);
    if value.is_object() { Ok(value) } else { Err(HashError::NotAnObject) }
}

fn canonical_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(canonical_numbers),
        Value::Object(members) => members.values_mut().for_each(canonical_numbers),
        _ => {}
    }
}

/// `1.0` and `-0.0` as RFC 8785 writes them. Within ±2^53 the cast is exact.
fn whole(number: &Number) -> Option<i64> {
    let double = number.as_f64().filter(|double| number.is_f64() && double.fract() == 0.0)?;
    (double.abs() < 9_007_199_254_740_992.0).then_some(double as i64)
}

fn unreadable(error: &HashError) -> Drift {
    match error {
        HashError::UnsafeInteger(pointer) => Drift::alone(pointer, Class::Ambiguous, Why::UnsafeInteger),
        HashError::IgnoresElement(pointer) => Drift::alone(pointer, Class::AuthorityExpanding, Why::IgnoresElement),
        _ => Drift::alone("", Class::Ambiguous, Why::NotHashable),
    }
}
