//! The arguments of a call as a caller sends them, and not as somebody wrote them into an input.

use cotter_core::decision::Decision;
use serde_json::Value;

use super::Sandbox;
use crate::arguments::Arguments;

impl Sandbox {
    /// An input with the arguments of a call, as far as these rules read them.
    ///
    /// # Errors
    /// The decision where a sidecar would refuse such arguments before any rule sees them.
    pub fn called(&self, input: &Value, arguments: &str) -> Result<Value, Decision> {
        let read = Arguments::read(Some(arguments), &self.reads);
        let read = read.map_err(|error| Decision::deny(error.code, Some(error.message)))?;
        let json = |value: &regorus::Value| serde_json::to_value(value).ok();
        let members =
            [("args", read.value.as_ref().and_then(json)), ("argsDigest", read.digest.as_ref().and_then(json))];
        let mut input = input.clone();
        if let Value::Object(input) = &mut input {
            input.remove("args");
            input.extend(members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        Ok(input)
    }
}
