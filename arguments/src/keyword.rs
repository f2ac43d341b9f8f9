//! Where a schema holds other schemas (JSON Schema 2020-12, and the older drafts where they differ).

use cotter_core::pointer;
use serde_json::{Map, Value};

/// What the value of a keyword is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// One schema, or an array of them, for the same value.
    InPlace,
    /// One schema, or an array of them, for members or elements of the value.
    Inside,
    /// Schemas by name, for the same value.
    InPlaceByName,
    /// Schemas by name, for members of the value.
    InsideByName,
    /// Schemas by name, which others refer to.
    Definitions,
    /// No schema.
    Nothing,
}

/// A schema within another one.
pub(crate) struct Inner<'s> {
    /// What it is held as.
    pub(crate) holds: Holds,
    /// The pointer from the schema that holds it.
    pub(crate) place: String,
    /// The schema.
    pub(crate) schema: &'s Value,
}

impl Holds {
    /// Whether the schemas have names.
    pub(crate) const fn by_name(self) -> bool {
        matches!(self, Self::InPlaceByName | Self::InsideByName | Self::Definitions)
    }

    /// Whether they are for the same value as the schema that holds them.
    pub(crate) const fn in_place(self) -> bool {
        matches!(self, Self::InPlace | Self::InPlaceByName)
    }
}

/// What a keyword's value is.
pub(crate) fn holds(keyword: &str) -> Holds {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => Holds::InPlace,
        "items"
        | "prefixItems"
        | "additionalItems"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Inside,
        "dependentSchemas" | "dependencies" => Holds::InPlaceByName,
        "properties" | "patternProperties" => Holds::InsideByName,
        "$defs" | "definitions" => Holds::Definitions,
        _ => Holds::Nothing,
    }
}

/// The schemas that one schema holds.
pub(crate) fn inner(schema: &Map<String, Value>) -> Vec<Inner<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let holds = holds(keyword);
        let mut add = |place: String, schema| found.push(Inner { holds, place, schema });
        let place = pointer::join("", keyword);
        match value {
            _ if holds == Holds::Nothing => {}
            Value::Object(members) if holds.by_name() => {
                members.iter().for_each(|(name, schema)| add(pointer::join(&place, name), schema));
            }
            Value::Array(items) if !holds.by_name() => {
                items.iter().enumerate().for_each(|(index, item)| add(format!("{place}/{index}"), item));
            }
            one if !holds.by_name() => add(place, one),
            _ => {}
        }
    }
    found
}
