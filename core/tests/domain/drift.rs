//! Cases of drift: each edits one approved tool and says how bad that is.

use std::collections::BTreeMap;

use cotter_core::drift::{Class, Drift, Why, classify, without_definition};
use cotter_core::fingerprint::Ignore;
use cotter_core::scan::Finding;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    /// The approved tool.
    tool: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Edits to the approved tool before anything is compared.
    #[serde(default)]
    given: Edit,
    /// Edits that make the observed tool of the approved one.
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
    #[serde(default)]
    ignore: Vec<String>,
    /// The class; absent where nothing drifted.
    class: Option<Class>,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    findings: Vec<Finding>,
    /// The class of the way back; absent where it does not matter.
    back: Option<Class>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Edit {
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
}

#[test]
fn each_change_has_its_class_and_says_where() {
    let Cases { tool, cases } = crate::cases("drift.yaml");
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &cases {
        let approved = edit(&tool, &case.given.set, &case.given.remove, &case.name);
        let observed = edit(&approved, &case.set, &case.remove, &case.name);
        let ignore = Ignore::parse(&case.ignore).unwrap();
        let drift = classify(&approved, &observed, &ignore);
        assert_eq!(summary(drift.as_ref()), expected(case), "{}: {drift:#?}", case.name);
        if let Some(back) = case.back {
            let drift = classify(&observed, &approved, &ignore);
            assert_eq!(drift.as_ref().map(|drift| drift.class), Some(back), "{}, back: {drift:#?}", case.name);
        }
        *seen.entry(case.class.map_or("none", Class::as_str)).or_default() += 1;
    }
    for class in ["AuthorityExpanding", "Text", "Additive", "Narrowing", "Cosmetic", "Ambiguous", "none"] {
        assert!(seen.contains_key(class), "no case for {class}");
    }
}

type Summary<'a> = Option<(Class, &'a [String], &'a [Finding])>;

fn summary(drift: Option<&Drift>) -> Summary<'_> {
    drift.map(|drift| (drift.class, drift.fields.as_slice(), drift.findings.as_slice()))
}

fn expected(case: &Case) -> Summary<'_> {
    case.class.map(|class| (class, case.fields.as_slice(), case.findings.as_slice()))
}

fn edit(tool: &Value, set: &BTreeMap<String, Value>, remove: &[String], name: &str) -> Value {
    let mut tool = tool.clone();
    for pointer in remove {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let parent = tool.pointer_mut(parent).and_then(Value::as_object_mut);
        parent.and_then(|parent| parent.remove(member)).unwrap_or_else(|| panic!("{name}: {pointer} is absent"));
    }
    for (pointer, value) in set {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let parent = tool.pointer_mut(parent).unwrap_or_else(|| panic!("{name}: {parent} is absent"));
        match parent {
            Value::Object(members) => members.insert(member.to_owned(), value.clone()),
            other => panic!("{name}: {pointer} is in {other}"),
        };
    }
    tool
}

#[test]
fn classes_are_ordered_worst_first() {
    use Class::{Added, Additive, Ambiguous, AuthorityExpanding, Cosmetic, Narrowing, Removed, Text};
    let mut classes = [Cosmetic, Removed, Narrowing, Additive, Text, Added, Ambiguous, AuthorityExpanding];
    classes.sort();
    assert_eq!(classes, [AuthorityExpanding, Ambiguous, Added, Text, Additive, Narrowing, Removed, Cosmetic]);
    assert_eq!(serde_json::to_value(classes[0]).unwrap(), json!("AuthorityExpanding"));
    assert_eq!(Class::Cosmetic.to_string(), "Cosmetic");
}

#[test]
fn without_a_definition_any_change_is_authority_expanding() {
    let drift = without_definition();
    assert_eq!((drift.class, drift.changes[0].why), (Class::AuthorityExpanding, Why::DefinitionUnknown));
}
