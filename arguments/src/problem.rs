//! What is wrong with arguments, in words that repeat nothing of them but names.

use cotter_core::{pointer::join, scan::visible};
use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

/// Problems that are told; the first ones are what a caller corrects first.
pub const MOST: usize = 3;

/// Characters of a pointer that are told: names in it may be the caller's own.
const POINTER: usize = 128;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The argument, as a JSON pointer into the arguments, bounded and printable.
    pub pointer: String,
    /// The keyword of the schema that it breaks.
    pub keyword: &'static str,
}

impl Problem {
    pub(crate) fn of(error: &ValidationError<'_>) -> Self {
        let place = error.instance_path().as_str();
        let (name, keyword) = match error.kind() {
            Kind::Required { property } => (property.as_str(), "required"),
            Kind::AdditionalProperties { unexpected } => {
                (unexpected.first().map(String::as_str), "additionalProperties")
            }
            Kind::UnevaluatedProperties { unexpected } => {
                (unexpected.first().map(String::as_str), "unevaluatedProperties")
            }
            other => (None, keyword(other)),
        };
        let pointer = name.map_or_else(|| place.to_owned(), |name| join(place, name));
        Self { pointer: bounded(&pointer), keyword }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.pointer.is_empty() { "the arguments" } else { self.pointer.as_str() };
        write!(f, "{place} ({})", self.keyword)
    }
}

fn bounded(pointer: &str) -> String {
    let shown = visible(pointer);
    let mut chars = shown.chars();
    let start: String = chars.by_ref().take(POINTER).collect();
    if chars.next().is_some() { format!("{start}…") } else { start }
}

/// The keyword by its own name: the library's has the lifetime of the error.
fn keyword(kind: &Kind) -> &'static str {
    match kind {
        Kind::AdditionalItems { .. } => "additionalItems",
        Kind::AnyOf { .. } => "anyOf",
        Kind::Constant { .. } => "const",
        Kind::Contains => "contains",
        Kind::Enum { .. } => "enum",
        Kind::ExclusiveMaximum { .. } => "exclusiveMaximum",
        Kind::ExclusiveMinimum { .. } => "exclusiveMinimum",
        Kind::FalseSchema => "false",
        Kind::MaxItems { .. } => "maxItems",
        Kind::Maximum { .. } => "maximum",
        Kind::MaxLength { .. } => "maxLength",
        Kind::MaxProperties { .. } => "maxProperties",
        Kind::MinItems { .. } => "minItems",
        Kind::Minimum { .. } => "minimum",
        Kind::MinLength { .. } => "minLength",
        Kind::MinProperties { .. } => "minProperties",
        Kind::MultipleOf { .. } => "multipleOf",
        Kind::Not { .. } => "not",
        Kind::OneOfMultipleValid { .. } | Kind::OneOfNotValid { .. } => "oneOf",
        Kind::Pattern { .. } => "pattern",
        Kind::PropertyNames { .. } => "propertyNames",
        Kind::Type { .. } => "type",
        Kind::UnevaluatedItems { .. } => "unevaluatedItems",
        Kind::UniqueItems => "uniqueItems",
        _ => "schema",
    }
}
