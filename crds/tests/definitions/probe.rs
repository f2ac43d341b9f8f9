//! Cases made from the schema: every bound of every field that a manifest fills, from both sides.

use serde_json::{Map, Value, json};

use crate::{
    case::{Case, Expect, Wording},
    manifest,
    site::{self, Site},
};

/// A value that no rule about text accepts.
pub(crate) const GARBAGE: &str = "\u{1}";

/// A probe of each bound of each field of each manifest.
pub(crate) fn all() -> Vec<Case> {
    let schemas = site::schemas();
    let mut cases = vec![];
    for manifest in manifest::all() {
        let kind = manifest.object["kind"].as_str().unwrap();
        let schema = &schemas.iter().find(|(name, _)| name == kind).unwrap().1;
        for site in site::filled(schema, &manifest.object) {
            let probe = Probe { manifest: &manifest.name, object: &manifest.object, site: &site };
            cases.extend(probe.cases());
        }
    }
    cases
}

struct Probe<'a> {
    manifest: &'a str,
    object: &'a Value,
    site: &'a Site<'a>,
}

impl Probe<'_> {
    fn cases(&self) -> Vec<Case> {
        let mut cases = self.lengths();
        cases.extend(self.numbers());
        cases.extend(self.names());
        cases.extend(self.counts());
        cases.extend(self.types());
        cases.extend(self.garbage());
        cases
    }

    fn with(&self, what: &str, value: Value, expect: Expect) -> Case {
        let mut object = self.object.clone();
        *object.pointer_mut(&self.site.pointer).unwrap() = value;
        Case { name: format!("{} {}: {what}", self.manifest, self.site.path), object, expect }
    }

    fn refused(&self, here: String, api: String) -> Expect {
        let at = || self.site.path.clone();
        Expect::Refused { here: Wording { at: at(), says: here }, api: Wording { at: at(), says: api } }
    }

    fn bound(&self, keyword: &str) -> Option<u64> {
        self.site.schema.get(keyword).and_then(Value::as_u64)
    }

    fn current(&self) -> &Value {
        self.object.pointer(&self.site.pointer).unwrap()
    }

    fn lengths(&self) -> Vec<Case> {
        let mut cases = vec![];
        let text = |length: u64| json!("a".repeat(usize::try_from(length).unwrap()));
        if let Some(max) = self.bound("maxLength") {
            let (here, api) = (format!("may have at most {max}"), format!("Too long: may not be more than {max}"));
            cases.push(self.with("one too long", text(max + 1), self.refused(here.clone(), api.clone())));
            cases.push(self.with("as long as may be", text(max), Expect::Not { here, api }));
        }
        if let Some(min) = self.bound("minLength") {
            let (here, api) = (format!("needs at least {min}"), format!("should be at least {min} chars long"));
            cases.push(self.with("one too short", text(min - 1), self.refused(here.clone(), api.clone())));
            cases.push(self.with("as short as may be", text(min), Expect::Not { here, api }));
        }
        cases
    }

    fn numbers(&self) -> Vec<Case> {
        let mut cases = vec![];
        let bound = |keyword: &str| self.site.schema.get(keyword).and_then(Value::as_f64).map(|bound| bound as i64);
        if let Some(min) = bound("minimum") {
            let says = (format!("has to be at least {min}"), format!("should be greater than or equal to {min}"));
            cases.push(self.with("one too small", json!(min - 1), self.refused(says.0, says.1)));
            cases.push(self.with("as small as may be", json!(min), Expect::Accepted));
        }
        if let Some(max) = bound("maximum") {
            let says = (format!("has to be at most {max}"), format!("should be less than or equal to {max}"));
            cases.push(self.with("one too large", json!(max + 1), self.refused(says.0, says.1)));
            cases.push(self.with("as large as may be", json!(max), Expect::Accepted));
        }
        cases
    }

    fn names(&self) -> Vec<Case> {
        let Some(names) = self.site.schema.get("enum").and_then(Value::as_array) else { return vec![] };
        let refused = self.refused("is not one of".to_owned(), "Unsupported value".to_owned());
        let mut cases = vec![self.with("no such name", json!("Nonsense"), refused)];
        for name in names {
            let not = Expect::Not { here: "is not one of".to_owned(), api: "Unsupported value".to_owned() };
            cases.push(self.with("a name", name.clone(), not));
        }
        cases
    }

    fn counts(&self) -> Vec<Case> {
        let mut cases = vec![];
        if let Some(max) = self.bound("maxItems") {
            let element = self.current().get(0).unwrap();
            let list = |count: u64| Value::Array((0..count).map(|_| element.clone()).collect());
            let (here, api) = (format!("may have at most {max}"), format!("must have at most {max} items"));
            cases.push(self.with("one too many", list(max + 1), self.refused(here.clone(), api.clone())));
            cases.push(self.with("as many as may be", list(max), Expect::Not { here, api }));
        }
        if let Some(max) = self.bound("maxProperties").filter(|max| *max > 1) {
            let value = self.current().as_object().unwrap().values().next().unwrap();
            let map = |count: u64| {
                let members = (0..count).map(|at| (format!("k{at}"), value.clone()));
                Value::Object(members.collect::<Map<String, Value>>())
            };
            let (here, api) = (format!("may have at most {max}"), format!("must have at most {max} items"));
            cases.push(self.with("one too many", map(max + 1), self.refused(here.clone(), api.clone())));
            cases.push(self.with("as many as may be", map(max), Expect::Not { here, api }));
        }
        cases
    }

    fn types(&self) -> Vec<Case> {
        let wrong = if self.current().is_boolean() { json!({}) } else { json!(true) };
        let keyword = ["format", "type"].iter().find_map(|keyword| self.site.schema.get(keyword)?.as_str());
        let declared = keyword.unwrap_or("integer,string");
        vec![self.with(
            "of another type",
            wrong,
            self.refused("has to be".to_owned(), format!("must be of type {declared}")),
        )]
    }

    /// What a rule about text says to [`GARBAGE`], where it says anything.
    fn garbage(&self) -> Vec<Case> {
        if !self.current().is_string() || self.site.schema.get("enum").is_some() {
            return vec![];
        }
        let case = self.with("garbage", json!(GARBAGE), Expect::Accepted);
        let problems = cotter_crds::check::validate(&case.object, cotter_crds::check::Place::Cluster);
        let mut messages = site::messages(self.site.schema);
        messages.retain(|message| problems.iter().any(|problem| problem.message == *message));
        let expected = |message: &str| {
            let wording = |at: &String| Wording { at: at.clone(), says: message.to_owned() };
            Expect::Refused { here: wording(&self.site.path), api: wording(&self.site.rule_path) }
        };
        messages.into_iter().map(|message| self.with("garbage", json!(GARBAGE), expected(message))).collect()
    }
}
