//! One object and how it has to be judged.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::manifest;

/// One object and how it has to be judged.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) object: Value,
    pub(crate) expect: Expect,
}

/// How an object has to be judged. `here` is the wording for a local file, `api` that of the API server.
pub(crate) enum Expect {
    Accepted,
    Refused {
        here: Wording,
        api: Wording,
    },
    /// It may be refused, but not for this.
    Not {
        here: String,
        api: String,
    },
}

/// A message that contains `says`, about the field `at`.
#[derive(Clone)]
pub(crate) struct Wording {
    pub(crate) at: String,
    pub(crate) says: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rule: String,
    base: String,
    at: String,
    /// The path as a local check writes it, where that is not `at`.
    here: Option<String>,
    says: String,
    api: Option<String>,
    accepted: Vec<Value>,
    refused: Vec<Value>,
}

/// The cases of `cases/*.yaml`.
pub(crate) fn written() -> Vec<Case> {
    let manifests = manifest::all();
    let mut cases = vec![];
    for file in ["mcpserver", "toolpin", "agentdelegation"] {
        let text = fs::read_to_string(manifest::folder().join(format!("{file}.yaml"))).unwrap();
        let entries: Vec<Entry> = serde_saphyr::from_str(&text).unwrap();
        for entry in entries {
            assert!(!entry.accepted.is_empty() && !entry.refused.is_empty(), "{}: no twin", entry.rule);
            let base = manifests.iter().find(|manifest| manifest.name == entry.base);
            let base = &base.unwrap_or_else(|| panic!("{}: no manifest {}", entry.rule, entry.base)).object;
            cases.extend(entry.accepted.iter().map(|change| case(&entry, base, change, Expect::Accepted)));
            cases.extend(entry.refused.iter().map(|change| case(&entry, base, change, refused(&entry))));
        }
    }
    cases
}

fn case(entry: &Entry, base: &Value, change: &Value, expect: Expect) -> Case {
    let mut object = base.clone();
    manifest::merge(&mut object, change);
    Case { name: format!("{}: {change}", entry.rule), object, expect }
}

fn refused(entry: &Entry) -> Expect {
    let here = Wording { at: entry.here.clone().unwrap_or_else(|| entry.at.clone()), says: entry.says.clone() };
    let api = Wording { at: entry.at.clone(), says: entry.api.clone().unwrap_or_else(|| entry.says.clone()) };
    Expect::Refused { here, api }
}
