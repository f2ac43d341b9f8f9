//! Makes of a schema as it was sent one that the library compiles: what cannot be enforced is left out, where leaving it out only makes
//! the check weaker, and told.

use cotter_core::pointer::{Pointer, join};
use serde_json::{Map, Value};

use crate::{
    keyword::{self, Holds},
    survey::{Document, Why},
};

/// Keywords under which a weaker schema makes a stricter one: nothing is left out of a schema that has one of them.
const TURNING: [&str; 7] =
    ["not", "oneOf", "if", "contains", "maxContains", "unevaluatedItems", "unevaluatedProperties"];

/// Keywords that hold for what others leave over, and those others: without the others they would hold for more.
const LEFT_OVER: [&str; 3] = ["additionalProperties", "additionalItems", "items"];
const NAMING: [&str; 4] = ["properties", "patternProperties", "prefixItems", "items"];

/// A schema that depends on nothing but itself.
pub(crate) struct Mended {
    /// The schema.
    pub(crate) schema: Value,
    /// Where something was left out.
    pub(crate) gaps: Vec<String>,
}

/// What is found in a schema that has to go.
#[derive(Default)]
struct Found {
    /// Says nothing about a value.
    idle: Vec<String>,
    /// Would have said something.
    foreign: Vec<String>,
}

impl Mended {
    /// Of a schema as sent. References that lead out of it are left out.
    pub(crate) fn new(sent: &Value) -> Result<Self, Why> {
        let mut mended = Self { gaps: Vec::new(), schema: sent.clone() };
        if let Value::Object(members) = &mut mended.schema {
            members.retain(|name, _| !["$schema", "$id", "id"].contains(&name.as_str()));
        }
        let mut found = Found::default();
        look(&Document::new(&mended.schema), &mended.schema, "", &mut found)?;
        for place in &found.idle {
            cut(&mut mended.schema, &segments(place), None);
        }
        found.foreign.iter().try_for_each(|place| mended.leave_out(place))?;
        Ok(mended)
    }

    /// Leaves out the innermost keyword or named schema at a place of the schema.
    pub(crate) fn leave_out(&mut self, place: &str) -> Result<(), Why> {
        if has_turning(&self.schema) {
            return Err("part of the schema cannot be checked, and other parts turn on it");
        }
        if !cut(&mut self.schema, &segments(place), None) {
            return Err("the schema is not one");
        }
        self.gaps.push(place.to_owned());
        Ok(())
    }
}

fn segments(place: &str) -> Vec<String> {
    place.parse().map(|pointer: Pointer| pointer.segments().collect()).unwrap_or_default()
}

fn look(document: &Document<'_>, schema: &Value, place: &str, found: &mut Found) -> Result<(), Why> {
    let Value::Object(members) = schema else { return Ok(()) };
    if members.get("$id").is_some_and(Value::is_string) {
        return Err("a part of the schema has an identifier of its own");
    }
    if members.contains_key("$schema") {
        found.idle.push(join(place, "$schema"));
    }
    for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
        let Some(at) = members.get(name) else { continue };
        let within = name == "$ref" && at.as_str().is_some_and(|at| document.resolve(at).is_some());
        if !within {
            found.foreign.push(join(place, name));
        }
    }
    keyword::inner(members).into_iter().try_for_each(|inner| {
        let place = format!("{place}{}", inner.place);
        look(document, inner.schema, &place, found)
    })
}

/// Anywhere in the document, also where it is no keyword: better nothing is left out than the wrong thing.
fn has_turning(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_turning),
        Value::Object(members) => {
            TURNING.iter().any(|name| members.contains_key(*name)) || members.values().any(has_turning)
        }
        _ => false,
    }
}

/// Cuts out what is at the end of a path, or the innermost part around it that can be: a keyword goes, and a schema in a list or under
/// a name becomes `true`. `held` is what the value is held as; absent for one schema.
fn cut(value: &mut Value, path: &[String], held: Option<Holds>) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    match (value, held) {
        (Value::Object(members), None) => {
            let holds = keyword::holds(first);
            let Some(inner) = members.get_mut(first) else { return false };
            let bad_name = first == "patternProperties" && rest.len() < 2;
            let single = inner.is_object() && !holds.by_name();
            if holds == Holds::Nothing || bad_name || !cut(inner, rest, (!single).then_some(holds)) {
                remove(members, first);
            }
            true
        }
        (Value::Object(members), Some(holds)) if holds.by_name() => {
            members.get_mut(first).is_some_and(|inner| lift(inner, rest))
        }
        (Value::Array(items), Some(holds)) if !holds.by_name() => {
            first.parse().ok().and_then(|index: usize| items.get_mut(index)).is_some_and(|inner| lift(inner, rest))
        }
        _ => false,
    }
}

fn lift(schema: &mut Value, path: &[String]) -> bool {
    if !cut(schema, path, None) {
        *schema = Value::Bool(true);
    }
    true
}

fn remove(members: &mut Map<String, Value>, keyword: &str) {
    members.remove(keyword);
    if NAMING.contains(&keyword) {
        members.retain(|name, _| !LEFT_OVER.contains(&name.as_str()));
    }
}
