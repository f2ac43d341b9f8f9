//! The one visitor behind [`super::check`] and [`super::parse`].

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::node::Node;
use super::{Limits, Position, StrictError};
use crate::pointer::join;

/// Up to here names of one object are compared one by one, which is faster than hashing; beyond it they are hashed
/// with a random key, so that a hostile object of 100,000 names costs no more than its length.
const COMPARED: usize = 24;

/// How names begin that serde_json, and engines built on it, take for numbers and raw text in disguise.
const RESERVED: &str = "$serde_json::private::";

/// Reads a whole text, and gives it as text too.
pub(super) fn read<N: Node>(bytes: &[u8], limits: Limits) -> Result<(&str, N), StrictError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(StrictError::ByteOrderMark);
    }
    let text = std::str::from_utf8(bytes).map_err(|e| StrictError::NotUtf8 { offset: e.valid_up_to() })?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut pass = Pass { limit: limits.depth, depth: 0, names: Vec::new(), path: Vec::new(), fault: None };
    let node = Read(&mut pass, PhantomData).deserialize(&mut reader).map_err(|error| pass.explain(&error))?;
    reader.end().map_err(|error| StrictError::TrailingData { at: position(&error) })?;
    Ok((text, node))
}

/// What the visitors of one text share.
struct Pass<'de> {
    limit: u8,
    depth: u8,
    /// The names of the objects that are open, the innermost last.
    names: Vec<Cow<'de, str>>,
    /// The way to the fault, innermost first; filled only while an error travels up, so that good text pays nothing.
    path: Vec<String>,
    fault: Option<Fault>,
}

/// Faults that the visitor finds itself; the parser finds the rest.
enum Fault {
    Duplicate,
    Depth,
    Reserved,
}

impl Pass<'_> {
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.depth >= self.limit {
            self.fault = Some(Fault::Depth);
            return Err(E::custom("nested too deep"));
        }
        self.depth += 1;
        Ok(())
    }

    fn explain(&self, error: &serde_json::Error) -> StrictError {
        let pointer = self.path.iter().rev().fold(String::new(), |path, segment| join(&path, segment));
        let at = position(error);
        match self.fault {
            Some(Fault::Duplicate) => StrictError::DuplicateKey { pointer, at },
            Some(Fault::Reserved) => StrictError::Reserved { pointer, at },
            Some(Fault::Depth) => StrictError::TooDeep { limit: self.limit, pointer, at },
            None => by_message(&error.to_string(), self.limit, pointer, at),
        }
    }
}

/// The parser keeps the kind of its errors to itself but for the text; a text that is not known here is still an error.
fn by_message(reason: &str, limit: u8, pointer: String, at: Position) -> StrictError {
    if reason.starts_with("number out of range") {
        StrictError::NotFinite { pointer, at }
    } else if reason.starts_with("lone leading surrogate") || reason.starts_with("unexpected end of hex escape") {
        StrictError::LoneSurrogate { pointer, at }
    } else if reason.starts_with("recursion limit") {
        StrictError::TooDeep { limit, pointer, at }
    } else {
        StrictError::Syntax { reason: reason.to_owned(), pointer }
    }
}

fn position(error: &serde_json::Error) -> Position {
    Position { line: error.line(), column: error.column() }
}

/// Reads one value of any kind.
struct Read<'p, 'de, N>(&'p mut Pass<'de>, PhantomData<N>);

impl<'de, N: Node> DeserializeSeed<'de> for Read<'_, 'de, N> {
    type Value = N;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<N, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de, N: Node> Visitor<'de> for Read<'_, 'de, N> {
    type Value = N;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<N, E> {
        Ok(N::null())
    }

    fn visit_bool<E>(self, value: bool) -> Result<N, E> {
        Ok(N::bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<N, E> {
        Ok(N::number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<N, E> {
        Ok(N::number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<N, E> {
        Number::from_f64(value).map(N::number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<N, E> {
        Ok(N::string(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<N, A::Error> {
        self.0.enter()?;
        let (mut array, mut index) = (N::Array::default(), 0_usize);
        loop {
            match items.next_element_seed(Read::<N>(self.0, PhantomData)) {
                Ok(Some(item)) => N::push(&mut array, item),
                Ok(None) => break,
                Err(error) => {
                    self.0.path.push(index.to_string());
                    return Err(error);
                }
            }
            index += 1;
        }
        self.0.depth -= 1;
        Ok(N::array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<N, A::Error> {
        self.0.enter()?;
        let mut seen = Names { from: self.0.names.len(), hashed: None };
        let mut object = N::Object::default();
        while let Some(name) = members.next_key_seed(Name)? {
            if name.starts_with(RESERVED) {
                self.0.fault = Some(Fault::Reserved);
                self.0.path.push(name.into_owned());
                return Err(A::Error::custom("reserved name"));
            }
            if seen.contains(&name, &self.0.names) {
                self.0.fault = Some(Fault::Duplicate);
                self.0.path.push(name.into_owned());
                return Err(A::Error::custom("duplicate name"));
            }
            match members.next_value_seed(Read::<N>(self.0, PhantomData)) {
                Ok(member) => N::insert(&mut object, &name, member),
                Err(error) => {
                    self.0.path.push(name.into_owned());
                    return Err(error);
                }
            }
            seen.add(name, &mut self.0.names);
        }
        self.0.names.truncate(seen.from);
        self.0.depth -= 1;
        Ok(N::object(object))
    }
}

/// The names that one object has used: a stretch of the shared list, and from [`COMPARED`] on a set.
struct Names<'de> {
    from: usize,
    hashed: Option<HashSet<Cow<'de, str>>>,
}

impl<'de> Names<'de> {
    fn contains(&self, name: &str, list: &[Cow<'de, str>]) -> bool {
        match &self.hashed {
            Some(set) => set.contains(name),
            None => list.iter().skip(self.from).any(|other| other == name),
        }
    }

    fn add(&mut self, name: Cow<'de, str>, list: &mut Vec<Cow<'de, str>>) {
        if let Some(set) = &mut self.hashed {
            set.insert(name);
            return;
        }
        list.push(name);
        if list.len() - self.from > COMPARED {
            self.hashed = Some(list.drain(self.from..).collect());
        }
    }
}

/// Reads a name, borrowed where it holds no escape.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
