//! Which members the input has, read from its own JSON Schema: a misspelt member is silently undefined in Rego, so the check names it.

use std::sync::OnceLock;

use serde_json::Value;

use crate::{document::Input, syntax::Step};

/// What a person is told who used a member that there is not.
pub(crate) const MEMBERS: &str = "the input has version, era, protocol, now, server, principal, grants, operation, tool and, for a call, args, argsDigest, approval and ledger";

fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| schemars::schema_for!(Input).to_value())
}

/// The first member on a path that the input never has.
pub(crate) fn missing(path: &[Step]) -> Option<String> {
    let mut at = schema();
    let mut walked = "input".to_owned();
    for (depth, step) in path.iter().enumerate() {
        at = resolve(at);
        let next = match step {
            Step::Name(name) => {
                walked = format!("{walked}.{name}");
                let known = at.get("properties").map(|properties| properties.get(name));
                match known {
                    // The tools of a list are the library's own: a module is asked about one tool at a time.
                    Some(None) => return Some(walked),
                    Some(Some(_)) if depth == 0 && name == "tools" => return Some(walked),
                    Some(Some(member)) => Some(member),
                    None => at.get("additionalProperties"),
                }
            }
            Step::Any => at.get("additionalProperties").or_else(|| at.get("items")),
        };
        at = next.filter(|schema| schema.is_object())?;
    }
    None
}

/// The first member on a path that an input can be without, where it has all before it.
pub(crate) fn optional(path: &[Step]) -> Option<String> {
    let mut at = schema();
    let mut walked = "input".to_owned();
    for (depth, step) in path.iter().enumerate() {
        at = resolve(at);
        let Step::Name(name) = step else { return Some(format!("{walked}[…]")) };
        walked = format!("{walked}.{name}");
        // A module is always asked about one tool.
        let is_tool = depth == 0 && name == "tool";
        let Some(member) = at.pointer(&format!("/properties/{name}")) else { return Some(walked) };
        let required =
            at.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name));
        // What has a default other than null is written in every input.
        if !is_tool && !required && member.get("default").is_none_or(Value::is_null) {
            return Some(walked);
        }
        at = member;
    }
    None
}

/// Follows `$ref`, and `anyOf` with null, which is how an optional member is written.
fn resolve(mut at: &'static Value) -> &'static Value {
    for _ in 0..8 {
        let reference = at.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        let optional = at.get("anyOf").and_then(Value::as_array).and_then(|either| either.first());
        match (reference.and_then(|pointer| schema().pointer(pointer)), optional) {
            (Some(next), _) | (None, Some(next)) => at = next,
            (None, None) => return at,
        }
    }
    at
}
