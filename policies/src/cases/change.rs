//! Changes to a document by JSON pointer. One that leads nowhere is an error: a case that changes nothing would pass for another reason
//! than the one it is named after.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::near::{distance, nearest};

/// A name of which no more than one letter in so many is another is a mistake in typing. What is not there and looks like nothing may be
/// removed: a file can do so for all its cases.
const TYPING: usize = 3;

/// A change that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to set {pointer}: {why}")]
pub struct Unset {
    /// The pointer.
    pub pointer: String,
    /// What there is instead.
    pub why: String,
}

/// A document with members set, by JSON pointer to a member of an object that is there; null removes it.
///
/// # Errors
/// A pointer into what is not there, or is no object.
pub fn changed(document: &Value, changes: &BTreeMap<String, Value>) -> Result<Value, Unset> {
    let mut document = document.clone();
    for (pointer, value) in changes {
        let unset = |why: String| Unset { pointer: pointer.clone(), why };
        let Some((parent, name)) = pointer.rsplit_once('/') else {
            return Err(unset(format!("a pointer begins with a slash: write /{pointer}")));
        };
        let Some(Value::Object(members)) = document.pointer_mut(parent) else {
            return Err(unset(instead(&document, parent)));
        };
        let name = plain(name);
        match value {
            Value::Null => {
                let was_there = members.remove(&name).is_some();
                if let Some(meant) = nearest(&name, members.keys().map(String::as_str)).first().filter(|_| !was_there)
                    && distance(&name, meant) * TYPING <= name.chars().count()
                {
                    return Err(unset(format!("there is no such member to remove; the nearest is {parent}/{meant}")));
                }
            }
            value => drop(members.insert(name, value.clone())),
        }
    }
    Ok(document)
}

fn plain(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// What there is where a pointer to an object leaves the document.
fn instead(document: &Value, pointer: &str) -> String {
    let (mut at, mut walked) = (document, String::new());
    for step in pointer.split('/').skip(1) {
        let next = at.pointer(&format!("/{step}"));
        match (next, at) {
            (Some(next), _) => at = next,
            (None, Value::Object(members)) => {
                let near = nearest(&plain(step), members.keys().map(String::as_str));
                let near: Vec<String> = near.iter().map(|name| format!("{walked}/{name}")).collect();
                return match near.is_empty() {
                    true => format!("there is no {walked}/{step}, and nothing in {walked}: set that whole"),
                    false => format!("there is no {walked}/{step}; the nearest that there is: {}", near.join(", ")),
                };
            }
            (None, _) => break,
        }
        walked = format!("{walked}/{step}");
    }
    let kind = match at {
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        _ => "a plain value",
    };
    format!("{walked} is {kind}, and only members of objects are set: set {walked} whole")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(pointer: &str) -> Result<Value, String> {
        let base = json!({"principal": {"groups": ["desk"], "subject": "mia"}, "protocol": "mcp", "grants": {}});
        changed(&base, &BTreeMap::from([(pointer.to_owned(), json!(1))])).map_err(|unset| unset.to_string())
    }

    #[test]
    fn members_of_what_is_there_are_set_whether_they_are_new_or_not() {
        assert_eq!(set("/principal/subject").unwrap()["principal"]["subject"], 1);
        assert_eq!(set("/principal/a~1b").unwrap()["principal"]["a/b"], 1);
        assert_eq!(set("/args").unwrap()["args"], 1);
    }

    #[test]
    fn what_is_not_there_can_be_removed_unless_it_is_misspelt() {
        let base = json!({"principal": {"tenant": "a"}});
        let without = |pointer: &str| changed(&base, &BTreeMap::from([(pointer.to_owned(), Value::Null)]));
        assert_eq!(without("/principal/tenant").unwrap(), json!({"principal": {}}));
        assert_eq!(without("/args").unwrap(), base);
        assert_eq!(changed(&json!({"a": 1}), &BTreeMap::from([("/b".to_owned(), Value::Null)])), Ok(json!({"a": 1})));
        let said = without("/principal/tennant").unwrap_err().to_string();
        assert!(said.ends_with("no such member to remove; the nearest is /principal/tenant"), "{said}");
    }

    #[test]
    fn a_pointer_that_leads_nowhere_says_where_it_leaves_the_way() {
        for (pointer, why) in [
            ("/principle/groups", "there is no /principle; the nearest that there is: /principal, /protocol, /grants"),
            ("/principal/actor/subject", "there is no /principal/actor; the nearest that there is: /principal/"),
            ("/grants/triage/tools", "there is no /grants/triage, and nothing in /grants: set that whole"),
            ("/principal/groups/0", "/principal/groups is a list, and only members of objects are set"),
            ("/protocol/name", "/protocol is a plain value"),
            ("principal", "a pointer begins with a slash: write /principal"),
        ] {
            let said = set(pointer).unwrap_err();
            assert!(said.starts_with(&format!("failed to set {pointer}: ")) && said.contains(why), "{said}");
        }
    }
}
