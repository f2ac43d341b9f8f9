//! What a pass over the text leaves behind: nothing, or the value. Both come out of the same visitor.

use serde_json::{Map, Number, Value};

/// Something that the visitor can build.
pub(super) trait Node: Sized {
    /// An array under construction.
    type Array: Default;
    /// An object under construction.
    type Object: Default;

    fn null() -> Self;
    fn bool(value: bool) -> Self;
    fn number(value: Number) -> Self;
    fn string(value: &str) -> Self;
    fn push(array: &mut Self::Array, item: Self);
    fn insert(object: &mut Self::Object, name: &str, member: Self);
    fn array(array: Self::Array) -> Self;
    fn object(object: Self::Object) -> Self;
}

impl Node for () {
    type Array = ();
    type Object = ();

    fn null() {}
    fn bool(_: bool) {}
    fn number(_: Number) {}
    fn string(_: &str) {}
    fn push((): &mut (), (): ()) {}
    fn insert((): &mut (), _: &str, (): ()) {}
    fn array((): ()) {}
    fn object((): ()) {}
}

impl Node for Value {
    type Array = Vec<Self>;
    type Object = Map<String, Self>;

    fn null() -> Self {
        Self::Null
    }

    fn bool(value: bool) -> Self {
        Self::Bool(value)
    }

    fn number(value: Number) -> Self {
        Self::Number(value)
    }

    fn string(value: &str) -> Self {
        Self::String(value.to_owned())
    }

    fn push(array: &mut Vec<Self>, item: Self) {
        array.push(item);
    }

    fn insert(object: &mut Map<String, Self>, name: &str, member: Self) {
        object.insert(name.to_owned(), member);
    }

    fn array(array: Vec<Self>) -> Self {
        Self::Array(array)
    }

    fn object(object: Map<String, Self>) -> Self {
        Self::Object(object)
    }
}
