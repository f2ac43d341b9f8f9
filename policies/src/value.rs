//! Small constructors for the engine's values. Cloning a value is cheap (shared), so what does not change is made once.

use std::collections::BTreeMap;

use regorus::Value;
use serde::Serialize;

/// A text.
pub(crate) fn text(text: &str) -> Value {
    Value::from(text)
}

/// An object of these members; those without a value are left out.
pub(crate) fn object<const N: usize>(members: [(&'static str, Option<Value>); N]) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((text(name), value?)));
    Value::from(members.collect::<BTreeMap<Value, Value>>())
}

/// A documented type as a value.
///
/// # Errors
/// None for the types of [`crate::document`]; the signature is serde's.
pub(crate) fn from_document(document: &impl Serialize) -> Result<Value, serde_json::Error> {
    Ok(Value::from(serde_json::to_value(document)?))
}
