//! A JSON value as the schema library sees it, which costs fuel to look at: what a schema makes the library do ends when the fuel does.
//!
//! When the fuel is gone every value looks like `null` and every array and object is at its end, so the library comes to an end by
//! itself, whatever the schema says; its answer counts for nothing then.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::{BTreeMap, HashSet},
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object},
};
use serde_json::{Map, Number, Value};

/// Bytes of text that cost as much as one look: counting and comparing take a nanosecond for several.
const BYTES_PER_LOOK: u64 = 16;
/// What a byte costs that a pattern may read: the linear engine's slowest way takes a microsecond for it.
const PATTERN_BYTE: u64 = 8;
/// What it costs to tell a value from others: the library may keep an entry for it, of some 50 bytes.
const IDENTITY: u64 = 16;
/// What a comparison with an array or object of the schema costs ([`crate::survey`] bounds their size).
const COMPARISON: u64 = 32;
/// From here on, two to the power of 64, every whole number is read as a double.
const WHOLE: f64 = 18_446_744_073_709_551_616.0;

thread_local! {
    static FUEL: Cell<u64> = const { Cell::new(0) };
}

/// Runs one check with so much fuel. `None` where that was not enough.
pub(crate) fn with_fuel<T>(fuel: u64, check: impl FnOnce() -> T) -> Option<T> {
    FUEL.set(fuel);
    let answer = check();
    (FUEL.replace(0) > 0).then_some(answer)
}

/// Takes fuel, and tells whether any is left.
fn burn(looks: u64) -> bool {
    let left = FUEL.get().saturating_sub(looks);
    FUEL.set(left);
    left > 0
}

fn text_looks(text: &str) -> u64 {
    1 + text.len() as u64 / BYTES_PER_LOOK
}

/// The representation.
pub(crate) struct Metered;

/// One value.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a>(pub(crate) &'a Value);

/// The members of an object, or none where the fuel is gone.
pub(crate) struct Members<'a>(serde_json::map::Iter<'a>);

/// The elements of an array, or none where the fuel is gone.
pub(crate) struct Elements<'a>(std::slice::Iter<'a, Value>);

impl Json for Metered {
    type Node<'a> = Seen<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Seen<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Seen(buffer))
    }
}

impl<'a> Node<'a, Metered> for Seen<'a> {
    type Object = Fields<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Fields<'a>> {
        self.0.as_object().filter(|_| burn(1)).map(Fields)
    }

    fn as_array(&self) -> Option<Items<'a>> {
        self.0.as_array().filter(|_| burn(1)).map(|items| Items(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str()?;
        burn(1 + text.len() as u64 * PATTERN_BYTE).then_some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.0.as_number().filter(|_| burn(1))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.0.as_bool().filter(|_| burn(1))
    }

    fn is_null(&self) -> bool {
        self.0.is_null() || !burn(1)
    }

    fn json_type(&self) -> JsonType {
        match self.0 {
            _ if !burn(1) => JsonType::Null,
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.0.as_str()?;
        burn(text_looks(text)).then(|| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self.0, expected) {
            (Value::String(text), Value::String(other)) => burn(text_looks(other)) && text == other,
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
                burn(COMPARISON) && equal(self.0, expected)
            }
            _ => burn(1) && equal(self.0, expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        burn(IDENTITY);
        Some(NodeIdentity::new(std::ptr::from_ref(self.0).addr()))
    }
}

/// An object.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

/// An array.
#[derive(Clone, Copy)]
pub(crate) struct Items<'a>(&'a [Value]);

impl<'a> Object<'a, Metered> for Fields<'a> {
    type Node = Seen<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Seen<'a>> {
        burn(1).then(|| self.0.get(key)).flatten().map(Seen)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, member) = self.0.next()?;
        // A name may meet patterns.
        burn(1 + name.len() as u64).then_some((name.as_str(), Seen(member)))
    }
}

impl<'a> Array<'a, Metered> for Items<'a> {
    type Node = Seen<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.iter())
    }

    /// By the text of each element, in one pass: comparing each with each takes time by the square, and a hash that a caller can
    /// foresee does as well.
    fn is_unique(&self) -> bool {
        let mut seen = HashSet::new();
        self.0.iter().all(|item| {
            let mut text = String::new();
            write(item, &mut text) && seen.insert(text)
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Seen<'a>;

    fn next(&mut self) -> Option<Seen<'a>> {
        let item = self.0.next()?;
        burn(1).then_some(Seen(item))
    }
}

/// A text that two values share exactly where JSON Schema calls them equal: members sorted, and `1.0` as `1`. `false` where the fuel
/// is gone.
fn write(value: &Value, text: &mut String) -> bool {
    let from = text.len();
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                if !write(item, text) {
                    return false;
                }
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (name, member) in members.iter().collect::<BTreeMap<_, _>>() {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                if !write(member, text) {
                    return false;
                }
                text.push(',');
            }
            text.push('}');
        }
        Value::Number(number) => text.push_str(&plain(number)),
        other => text.push_str(&other.to_string()),
    }
    burn(1 + (text.len() - from) as u64 / BYTES_PER_LOOK)
}

/// A number by its value: a whole one without fraction and exponent.
fn plain(number: &Number) -> String {
    match number.as_f64() {
        Some(0.0) => "0".to_owned(),
        // Beyond 64 bits the shortest text of equal numbers is the same, and has 22 bytes where the plain one has 309.
        Some(double) if number.is_f64() && double.fract() == 0.0 && double.abs() < WHOLE => format!("{double:.0}"),
        _ => number.to_string(),
    }
}

fn equal(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::Number(number), Value::Number(other)) => plain(number) == plain(other),
        (Value::Array(items), Value::Array(others)) => {
            items.len() == others.len() && items.iter().zip(others).all(|(item, other)| equal(item, other))
        }
        (Value::Object(members), Value::Object(others)) => {
            let same = |(name, member): (&String, &Value)| others.get(name).is_some_and(|other| equal(member, other));
            members.len() == others.len() && members.iter().all(same)
        }
        _ => value == other,
    }
}
