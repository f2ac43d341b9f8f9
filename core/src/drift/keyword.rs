//! Single keywords of a schema whose change has a direction.

use std::collections::BTreeSet;

use serde_json::{Number, Value};

use super::Why;

/// Which way a keyword moved what is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// Only the order of an enum.
    Order,
    /// More is accepted.
    Wider(Why),
    /// Less is accepted.
    Narrower(Why),
    /// Neither can be said.
    Unclear(Why),
}

/// Dialects that `$schema` may name; each also with `http` and with an empty fragment.
const DIALECTS: [&str; 6] = ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12", "draft-03"];

/// Whether a `$schema` names a published dialect of JSON Schema.
pub(super) fn is_dialect(uri: &str) -> bool {
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    let host = uri.strip_prefix("https://json-schema.org/").or_else(|| uri.strip_prefix("http://json-schema.org/"));
    host.and_then(|path| path.strip_suffix("/schema")).is_some_and(|draft| DIALECTS.contains(&draft))
}

/// How an `enum` moved.
pub(super) fn enumeration(before: Option<&Value>, after: Option<&Value>) -> Vec<Move> {
    let (before, after) = match (before, after) {
        (Some(Value::Array(before)), Some(Value::Array(after))) => (before, after),
        (None, Some(Value::Array(_))) => return vec![Move::Narrower(Why::EnumChanged)],
        (Some(Value::Array(_)), None) => return vec![Move::Wider(Why::EnumChanged)],
        _ => return vec![Move::Unclear(Why::EnumChanged)],
    };
    // Names of members are sorted and numbers have one form, so that equal values have equal texts.
    let texts = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
    let (before, after) = (texts(before), texts(after));
    let sets = (before.iter().collect::<BTreeSet<_>>(), after.iter().collect::<BTreeSet<_>>());
    if sets.0.len() != before.len() || sets.1.len() != after.len() {
        return vec![Move::Unclear(Why::EnumChanged)];
    }
    let mut moves = Vec::new();
    if !sets.1.is_subset(&sets.0) {
        moves.push(Move::Wider(Why::EnumGrew));
    }
    if !sets.0.is_subset(&sets.1) {
        moves.push(Move::Narrower(Why::EnumShrank));
    }
    let kept = before.iter().filter(|text| sets.1.contains(text));
    if !kept.eq(after.iter().filter(|text| sets.0.contains(text))) {
        moves.push(Move::Order);
    }
    moves
}

/// How a bound moved: `Some` for the keywords that are bounds.
pub(super) fn bound(keyword: &str, before: Option<&Value>, after: Option<&Value>) -> Option<Move> {
    let lower = match keyword {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => true,
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => false,
        _ => return None,
    };
    let number = |value: &Value| value.as_number().and_then(Number::as_f64);
    let tighter = match (before.map(number), after.map(number)) {
        (None, Some(Some(_))) => true,
        (Some(Some(_)), None) => false,
        (Some(Some(before)), Some(Some(after))) => (after > before) == lower,
        _ => return Some(Move::Unclear(Why::NotNamed)),
    };
    Some(if tighter { Move::Narrower(Why::BoundTightened) } else { Move::Wider(Why::BoundLoosened) })
}

/// How `type` moved. Without it every type is accepted, and every integer is a number.
pub(super) fn types(before: Option<&Value>, after: Option<&Value>) -> Move {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(_)) => return Move::Narrower(Why::TypeNarrowed),
        _ => return Move::Wider(Why::TypeWidened),
    };
    let (Some(before), Some(after)) = (names(before), names(after)) else { return Move::Unclear(Why::TypeChanged) };
    let within = |few: &[&str], many: &[&str]| {
        few.iter().all(|name| many.contains(name) || (*name == "integer" && many.contains(&"number")))
    };
    match (within(&before, &after), within(&after, &before)) {
        (true, false) => Move::Wider(Why::TypeWidened),
        (false, true) => Move::Narrower(Why::TypeNarrowed),
        _ => Move::Unclear(Why::TypeChanged),
    }
}

fn names(types: &Value) -> Option<Vec<&str>> {
    match types {
        Value::String(one) => Some(vec![one]),
        Value::Array(many) => many.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// How `additionalProperties` moved, for anything but two schemas, which are compared as such.
pub(super) fn additional(before: Option<&Value>, after: Option<&Value>) -> Move {
    match (openness(before), openness(after)) {
        (Some(before), Some(after)) if before < after => Move::Wider(Why::Opened),
        (Some(before), Some(after)) if before > after => Move::Narrower(Why::Closed),
        _ => Move::Unclear(Why::NotNamed),
    }
}

fn openness(value: Option<&Value>) -> Option<u8> {
    match value {
        Some(Value::Bool(false)) => Some(0),
        Some(Value::Object(members)) if !members.is_empty() => Some(1),
        None | Some(Value::Bool(true) | Value::Object(_)) => Some(2),
        Some(_) => None,
    }
}

/// How a keyword moved that only ever takes values away: present or not is a direction, another value is none.
pub(super) fn constraint(before: Option<&Value>, after: Option<&Value>) -> Move {
    match (before, after) {
        (None, Some(_)) => Move::Narrower(Why::ConstraintAdded),
        (Some(_), None) => Move::Wider(Why::ConstraintRemoved),
        _ => Move::Unclear(Why::NotNamed),
    }
}
