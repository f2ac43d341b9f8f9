//! The members that a pin leaves out of a fingerprint, each visible to its reviewer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::HashError;
use crate::pointer::{Pointer, PointerError};

/// Most pointers in one list. A tool that needs more is not pinned but waved through.
pub const MAX_IGNORED: usize = 64;

/// Pointers to members, sorted by code point and each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Pointer>", into = "Vec<Pointer>")]
pub struct Ignore(Vec<Pointer>);

/// Why a list of pointers is no [`Ignore`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// One of them is no pointer.
    #[error(transparent)]
    Pointer(#[from] PointerError),
    /// More than [`MAX_IGNORED`].
    #[error("failed to read {0} pointers to ignore: the limit is {MAX_IGNORED}")]
    TooMany(usize),
}

impl Ignore {
    /// Nothing is ignored.
    pub const NONE: Self = Self(Vec::new());

    /// Reads pointers as written in a pin.
    ///
    /// # Errors
    /// One of them is no pointer to a member, or there are too many.
    pub fn parse<S: AsRef<str>>(pointers: &[S]) -> Result<Self, IgnoreError> {
        let pointers = pointers.iter().map(|pointer| pointer.as_ref().parse()).collect::<Result<Vec<Pointer>, _>>()?;
        Self::try_from(pointers)
    }

    /// Whether nothing is ignored.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pointers, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Pointer> {
        self.0.iter()
    }

    /// The object without the ignored members. One that is absent is no error.
    ///
    /// # Errors
    /// A pointer leads into an array.
    pub fn remove(&self, value: &Value) -> Result<Value, HashError> {
        let mut value = value.clone();
        for pointer in &self.0 {
            if let Some((parent, name)) = parent(&mut value, pointer)? {
                parent.remove(&name);
            }
        }
        Ok(value)
    }

    /// What may be served of an observed object that matched its pin: each ignored member has its approved value, or
    /// is left out where there is none, because its observed text was verified by nobody.
    ///
    /// # Errors
    /// A pointer leads into an array.
    pub fn serve(&self, observed: &Value, approved: Option<&Value>) -> Result<Value, HashError> {
        let mut served = self.remove(observed)?;
        let mut approved = approved.cloned();
        for pointer in &self.0 {
            let Some(approved) = &mut approved else { break };
            let known = parent(approved, pointer)?.and_then(|(members, name)| members.get(&name).cloned());
            if let (Some(known), Some((members, name))) = (known, parent(&mut served, pointer)?) {
                members.insert(name, known);
            }
        }
        Ok(served)
    }

    pub(super) fn to_value(&self) -> Value {
        self.0.iter().map(|pointer| Value::from(pointer.as_str())).collect()
    }
}

impl TryFrom<Vec<Pointer>> for Ignore {
    type Error = IgnoreError;

    fn try_from(mut pointers: Vec<Pointer>) -> Result<Self, IgnoreError> {
        pointers.sort();
        pointers.dedup();
        if pointers.len() > MAX_IGNORED { Err(IgnoreError::TooMany(pointers.len())) } else { Ok(Self(pointers)) }
    }
}

impl From<Ignore> for Vec<Pointer> {
    fn from(ignore: Ignore) -> Self {
        ignore.0
    }
}

/// The object that holds what a pointer names, and the name.
type Place<'v> = (&'v mut Map<String, Value>, String);

/// The place of what `pointer` names; nothing where the way ends before.
fn parent<'v>(value: &'v mut Value, pointer: &Pointer) -> Result<Option<Place<'v>>, HashError> {
    let mut segments: Vec<String> = pointer.segments().collect();
    let Some(last) = segments.pop() else { return Ok(None) };
    let mut here = value;
    for segment in &segments {
        here = match here {
            Value::Object(members) => match members.get_mut(segment) {
                Some(member) => member,
                None => return Ok(None),
            },
            Value::Array(_) => return Err(HashError::IgnoresElement(pointer.to_string())),
            _ => return Ok(None),
        };
    }
    match here {
        Value::Object(members) => Ok(Some((members, last))),
        Value::Array(_) => Err(HashError::IgnoresElement(pointer.to_string())),
        _ => Ok(None),
    }
}
