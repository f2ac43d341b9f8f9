//! Which members the input has, read from its own JSON Schema: a misspelt member is silently undefined in Rego, so the check names it.

use std::sync::OnceLock;

use serde_json::Value;

use crate::{
    document::{INPUT_VERSION, Input},
    near::nearest,
    syntax::Step,
};

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

/// What keeps a document from being an input of this version: another version, or a member that no input has. It would be decided on
/// all the same, and the decision would be on something else than its author thinks.
#[must_use]
pub fn unlike(document: &Value) -> Option<String> {
    let Value::Object(members) = document else { return Some("it is no JSON object".to_owned()) };
    let write = format!("write \"version\": \"{INPUT_VERSION}\"");
    match members.get("version") {
        Some(Value::String(version)) if version == INPUT_VERSION => {}
        Some(other) => return Some(format!("/version is {other}, and this program reads {INPUT_VERSION}: {write}")),
        None => return Some(format!("it has no /version: {write}")),
    }
    unknown(document, schema(), "")
}

/// The first member of a document that its schema does not have.
fn unknown(document: &Value, at: &'static Value, walked: &str) -> Option<String> {
    let at = resolve(at);
    match document {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let path = format!("{walked}/{}", name.replace('~', "~0").replace('/', "~1"));
            let known = at.get("properties").and_then(Value::as_object);
            match (known, known.and_then(|known| known.get(name))) {
                (_, Some(member)) => unknown(value, member, &path),
                (Some(known), None) => Some(meant(&path, walked, name, known.keys().map(String::as_str))),
                (None, None) => at.get("additionalProperties").and_then(|member| unknown(value, member, &path)),
            }
        }),
        Value::Array(items) => {
            let member = at.get("items")?;
            items.iter().enumerate().find_map(|(index, item)| unknown(item, member, &format!("{walked}/{index}")))
        }
        _ => None,
    }
}

fn meant<'a>(path: &str, walked: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near: Vec<String> = nearest(name, known).iter().map(|name| format!("{walked}/{name}")).collect();
    let (first, more) = near.split_first().map_or(("", &[][..]), |(first, more)| (first.as_str(), more));
    let also = if more.is_empty() { String::new() } else { format!(" (or {})", more.join(", ")) };
    format!("there is no member {path} in {INPUT_VERSION}: write {first}{also}, or leave it out")
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(pointer: &str, value: Value) -> Option<String> {
        let base: Value = serde_saphyr::from_str(crate::library::BASE).unwrap();
        let changes = std::collections::BTreeMap::from([(pointer.to_owned(), value)]);
        unlike(&crate::cases::changed(&base, &changes).unwrap())
    }

    #[test]
    fn an_input_has_its_version() {
        assert_eq!(said("/version", json!(INPUT_VERSION)), None);
        let other = said("/version", json!("cotter.input/v9")).unwrap();
        assert!(
            other.starts_with("/version is \"cotter.input/v9\"") && other.ends_with("\"cotter.input/v1\""),
            "{other}"
        );
        assert_eq!(
            said("/version", json!(null)).unwrap(),
            "it has no /version: write \"version\": \"cotter.input/v1\""
        );
        assert!(unlike(&json!([])).is_some());
    }

    #[test]
    fn a_member_that_no_input_has_is_named_with_the_nearest_that_it_has() {
        for (pointer, value, words) in [
            ("/principle", json!({}), "there is no member /principle in cotter.input/v1: write /principal"),
            (
                "/principal/tennant",
                json!("a"),
                "no member /principal/tennant in cotter.input/v1: write /principal/tenant",
            ),
            (
                "/principal/actorChain",
                json!([{"isuer": "a"}]),
                "/principal/actorChain/0/isuer in cotter.input/v1: write /principal/actorChain/0/issuer",
            ),
            ("/grants", json!({"a": {"scope": {}}}), "write /grants/a/scopes"),
        ] {
            let said = said(pointer, value).unwrap();
            assert!(said.contains(words), "{said}");
        }
        for (pointer, value) in [
            ("/args", json!({"anything": {"at": ["all"]}})),
            ("/server/labels", json!({"example.com/any": "b"})),
            ("/principal/actor", json!({"issuer": "https://a.example", "subject": "b"})),
        ] {
            assert_eq!(said(pointer, value), None, "{pointer}");
        }
    }
}
