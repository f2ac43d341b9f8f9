//! YAML with places: each document as JSON, and where each of its members stands, so that a problem found later is shown where it is.

use std::{collections::BTreeMap, fmt};

use cotter_core::pointer::join;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Line.
    pub(crate) line: u64,
    /// Column.
    pub(crate) column: u64,
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self { line: location.line(), column: location.column() }
    }
}

/// One document.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// Its value.
    pub(crate) value: Value,
    places: BTreeMap<String, Place>,
}

impl Document {
    /// Where the member stands that the JSON pointer names, or the nearest one around it.
    pub(crate) fn place(&self, pointer: &str) -> Place {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.get(pointer) {
                return *place;
            }
            match pointer.rfind('/').and_then(|at| pointer.get(..at)) {
                Some(shorter) => pointer = shorter,
                None => return Place { line: 1, column: 1 },
            }
        }
    }
}

/// Why a text is not YAML.
#[derive(Debug, Clone)]
pub(crate) struct YamlError {
    /// Where, if the parser knows.
    pub(crate) place: Place,
    /// What.
    pub(crate) message: String,
}

/// Reads all documents of a text. Empty documents are left out.
///
/// # Errors
/// The first syntax error, with its place: duplicate keys are one.
pub(crate) fn read(text: &str) -> Result<Vec<Document>, YamlError> {
    let nodes: Vec<Spanned<Node>> = serde_saphyr::from_multiple(text).map_err(|error| YamlError {
        place: error.location().map_or(Place { line: 1, column: 1 }, Place::from),
        message: one_line(&error.to_string()),
    })?;
    Ok(nodes.into_iter().filter(|node| !matches!(node.value, Node::Null)).map(document).collect())
}

/// The parser's message without the picture of the source that it draws: that is drawn once, for every kind of problem.
fn one_line(message: &str) -> String {
    let first = message.lines().next().unwrap_or(message);
    let first = first.trim_start_matches("error:").trim();
    // The place is shown once, in front.
    let told = first.strip_prefix("line ").and_then(|rest| rest.split_once(": ")).map(|(_, told)| told);
    told.unwrap_or(first).to_owned()
}

fn document(node: Spanned<Node>) -> Document {
    let mut places = BTreeMap::new();
    let value = place(node, String::new(), &mut places);
    Document { value, places }
}

fn place(node: Spanned<Node>, pointer: String, places: &mut BTreeMap<String, Place>) -> Value {
    let value = match node.value {
        Node::Null => Value::Null,
        Node::Bool(value) => Value::Bool(value),
        Node::Number(value) => Value::Number(value),
        Node::Text(value) => Value::String(value),
        Node::List(items) => {
            let place = |(index, item)| place(item, format!("{pointer}/{index}"), places);
            Value::Array(items.into_iter().enumerate().map(place).collect())
        }
        Node::Object(members) => {
            let mut object = Map::new();
            for (key, member) in members {
                let below = join(&pointer, &key.value);
                let value = place(member, below.clone(), places);
                places.insert(below, key.referenced.into());
                object.insert(key.value, value);
            }
            Value::Object(object)
        }
    };
    places.entry(pointer).or_insert_with(|| node.referenced.into());
    value
}

#[derive(Debug)]
enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<Node>>),
    Object(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }
    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        Number::from_f64(value).map(Node::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Node::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_a_place() {
        let documents = read("a:\n  b: 1\n---\nc:\n  - d: x\n  - e: y\n").unwrap();
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].value, serde_json::json!({"a": {"b": 1}}));
        assert_eq!(documents[0].place("/a/b"), Place { line: 2, column: 3 });
        assert_eq!(documents[1].place("/c/1/e"), Place { line: 6, column: 5 });
        assert_eq!(documents[1].place("/c/1/absent"), Place { line: 6, column: 5 });
    }

    #[test]
    fn a_syntax_error_has_a_place() {
        let error = read("a: 1\nb: [1,\nc: 2\n").unwrap_err();
        assert!(error.place.line >= 2, "{error:?}");
        let error = read("a: 1\na: 2\n").unwrap_err();
        assert_eq!(error.place.line, 2, "{error:?}");
    }
}
