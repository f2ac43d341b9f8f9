//! Two schemas, keyword by keyword.
//!
//! A direction is only followed through keywords where narrowing a part narrows the whole. Below `not`, `oneOf`, `if`,
//! definitions and their like only prose is told apart; any other change there is `AuthorityExpanding`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::bound::Changes;
use super::keyword::{self, Move};
use super::members::{arrays, differing, each, prose, texts};
use super::target::can_name_target;
use super::{Class, Why};
use crate::normalise::below;
use crate::pointer::join;

/// Whose schema it is: what a caller may send, or what a tool may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

/// Adds the changes between two schemas.
pub(super) fn changes(side: Side, before: &Value, after: &Value, pointer: &str, changes: &mut Changes) {
    Walk { side, directed: true, changes }.schema(before, after, pointer);
}

struct Walk<'c> {
    side: Side,
    /// Whether more here is more of the whole.
    directed: bool,
    changes: &'c mut Changes,
}

impl Walk<'_> {
    fn add(&mut self, pointer: String, class: Class, why: Why) {
        self.changes.add(pointer, class, why);
    }

    /// A change that the table does not name, at the deepest members that differ.
    fn not_named(&mut self, before: Option<&Value>, after: Option<&Value>, pointer: String, why: Why) {
        match (before, after) {
            (Some(before), Some(after)) => {
                differing(before, after, &pointer, &mut |pointer| self.add(pointer, Class::AuthorityExpanding, why));
            }
            _ => self.add(pointer, Class::AuthorityExpanding, why),
        }
    }

    fn moved(&mut self, pointer: &str, moved: Move) {
        let (class, why) = match (moved, self.side) {
            (Move::Order, _) => (Class::Text, Why::Order),
            (Move::Wider(why), Side::Input) => (Class::AuthorityExpanding, why),
            (Move::Wider(why), Side::Output) => (Class::Additive, why),
            (Move::Narrower(why @ (Why::EnumShrank | Why::BoundTightened)), Side::Input) => (Class::Narrowing, why),
            (Move::Narrower(why), Side::Input) => (Class::AuthorityExpanding, why),
            (Move::Narrower(why), Side::Output) => (Class::Narrowing, why),
            (Move::Unclear(why), _) => (Class::AuthorityExpanding, why),
        };
        self.add(pointer.to_owned(), class, why);
    }

    fn schema(&mut self, before: &Value, after: &Value, pointer: &str) {
        let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
            if before != after {
                self.add(pointer.to_owned(), Class::AuthorityExpanding, Why::NotNamed);
            }
            return;
        };
        if self.directed {
            self.object(old, new, pointer);
        }
        each(before, after, |keyword, before, after| {
            let pointer = join(pointer, keyword);
            match keyword {
                "description" | "title" if texts(before, after) => prose(pointer, keyword, self.changes),
                "examples" if arrays(before, after) => prose(pointer, keyword, self.changes),
                "enum" if keyword::enumeration(before, after) == [Move::Order] => self.moved(&pointer, Move::Order),
                "properties" | "required" if self.directed => {}
                _ if self.directed => self.keyword(keyword, before, after, pointer),
                _ => self.nested(keyword, before, after, pointer),
            }
        });
    }

    fn keyword(&mut self, keyword: &str, before: Option<&Value>, after: Option<&Value>, pointer: String) {
        if let Some(moved) = keyword::bound(keyword, before, after) {
            return self.moved(&pointer, moved);
        }
        let schemas = before.is_some_and(Value::is_object) && after.is_some_and(Value::is_object);
        match keyword {
            "enum" => keyword::enumeration(before, after).into_iter().for_each(|moved| self.moved(&pointer, moved)),
            "type" => self.moved(&pointer, keyword::types(before, after)),
            "additionalProperties" if !schemas => self.moved(&pointer, keyword::additional(before, after)),
            "default" => self.not_named(before, after, pointer, Why::Default),
            "pattern" if self.side == Side::Input => self.not_named(before, after, pointer, Why::Pattern),
            "pattern" | "format" | "multipleOf" | "uniqueItems" | "const" if self.side == Side::Output => {
                self.moved(&pointer, keyword::constraint(before, after));
            }
            "items" | "additionalProperties" | "allOf" | "anyOf" | "prefixItems" => {
                self.nested(keyword, before, after, pointer);
            }
            _ => {
                Walk { side: self.side, directed: false, changes: self.changes }
                    .nested(keyword, before, after, pointer);
            }
        }
    }

    /// Schemas below a keyword, each compared with the one in its place; the direction is the caller's.
    fn nested(&mut self, keyword: &str, before: Option<&Value>, after: Option<&Value>, pointer: String) {
        let below = below(keyword);
        match (before, after) {
            (Some(Value::Object(old)), Some(Value::Object(new))) if below.named => self.named(old, new, &pointer),
            (Some(Value::Array(old)), Some(Value::Array(new))) if below.many && old.len() == new.len() => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.schema(old, new, &join(&pointer, &index.to_string()));
                }
            }
            (Some(old @ Value::Object(_)), Some(new @ Value::Object(_))) if below.one => {
                self.schema(old, new, &pointer);
            }
            _ => self.not_named(before, after, pointer, Why::NotNamed),
        }
    }

    /// Schemas by name, where a name that comes or goes has no class of its own.
    fn named(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, pointer: &str) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let pointer = join(pointer, name);
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) => self.schema(old, new, &pointer),
                _ => self.add(pointer, Class::AuthorityExpanding, Why::NotNamed),
            }
        }
    }

    /// `properties` and `required`, which say one thing between them.
    fn object(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, pointer: &str) {
        let (Some(before), Some(after)) = (Object::read(old), Object::read(new)) else {
            for keyword in
                ["properties", "required"].into_iter().filter(|keyword| old.get(*keyword) != new.get(*keyword))
            {
                self.not_named(old.get(keyword), new.get(keyword), join(pointer, keyword), Why::NotNamed);
            }
            return;
        };
        let names: BTreeSet<&String> = before.names().chain(after.names()).collect();
        for name in names {
            let pointer = join(&join(pointer, "properties"), name);
            match (before.property(name), after.property(name)) {
                (Some(old), Some(new)) => self.schema(old, new, &pointer),
                (None, Some(new)) => self.new_property(name, new, &before, &after, pointer),
                (Some(_), None) if self.side == Side::Output => {
                    self.add(pointer, Class::Narrowing, Why::PropertyRemoved);
                }
                _ => self.add(pointer, Class::AuthorityExpanding, Why::PropertyRemoved),
            }
        }
        if before.properties.is_some() != after.properties.is_some() && before.names().chain(after.names()).count() == 0
        {
            self.add(join(pointer, "properties"), Class::AuthorityExpanding, Why::NotNamed);
        }
        self.required(&before, &after, &join(pointer, "required"));
    }

    fn new_property(&mut self, name: &str, schema: &Value, before: &Object<'_>, after: &Object<'_>, pointer: String) {
        let required = before.required.contains(name) || after.required.contains(name);
        let (class, why) = match self.side {
            Side::Output => (Class::Additive, Why::NewProperty),
            Side::Input if required => (Class::AuthorityExpanding, Why::NewRequired),
            Side::Input if can_name_target(name, schema) => (Class::AuthorityExpanding, Why::NewTarget),
            Side::Input => (Class::Additive, Why::NewProperty),
        };
        self.add(pointer, class, why);
    }

    /// Names that came to `required` or went from it. Where the property itself came or went, that has been said.
    fn required(&mut self, before: &Object<'_>, after: &Object<'_>, pointer: &str) {
        for name in after.required.difference(&before.required) {
            match (before.property(name), after.property(name), self.side) {
                (Some(_), Some(_), _) | (_, None, Side::Output) => {
                    self.add(pointer.to_owned(), Class::Narrowing, Why::Required);
                }
                (None, Some(_), Side::Output) => {}
                (None, Some(_), Side::Input) => {
                    self.add(pointer.to_owned(), Class::AuthorityExpanding, Why::NewRequired);
                }
                _ => self.add(pointer.to_owned(), Class::AuthorityExpanding, Why::NotNamed),
            }
        }
        for name in before.required.difference(&after.required) {
            match (before.property(name), after.property(name), self.side) {
                (_, Some(_), _) | (None, None, Side::Output) => {
                    self.add(pointer.to_owned(), Class::Additive, Why::Optional);
                }
                (Some(_), None, Side::Output) => {}
                _ => self.add(pointer.to_owned(), Class::AuthorityExpanding, Why::NotNamed),
            }
        }
        if before.required == after.required && before.listed != after.listed {
            self.add(pointer.to_owned(), Class::AuthorityExpanding, Why::NotNamed);
        }
    }
}

/// The two keywords of an object schema in readable form.
struct Object<'s> {
    properties: Option<&'s Map<String, Value>>,
    required: BTreeSet<&'s str>,
    /// How often `required` names anything, so that a repetition is not lost; none where it is absent.
    listed: Option<usize>,
}

impl<'s> Object<'s> {
    /// Nothing where one of the keywords has another shape than a schema gives it.
    fn read(schema: &'s Map<String, Value>) -> Option<Self> {
        let properties = match schema.get("properties") {
            None => None,
            Some(value) => Some(value.as_object()?),
        };
        let (required, listed) = match schema.get("required") {
            None => (BTreeSet::new(), None),
            Some(value) => {
                let names = value.as_array()?;
                (names.iter().map(Value::as_str).collect::<Option<_>>()?, Some(names.len()))
            }
        };
        Some(Self { properties, required, listed })
    }

    fn names(&self) -> impl Iterator<Item = &'s String> {
        self.properties.into_iter().flat_map(Map::keys)
    }

    fn property(&self, name: &str) -> Option<&'s Value> {
        self.properties.and_then(|properties| properties.get(name))
    }
}
