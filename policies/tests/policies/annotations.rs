//! What a server says of its tools: seen by modules that look, remembered with what was said, and nothing to the library.

use std::collections::BTreeMap;

use cotter_core::decision::Era;
use cotter_policies::{Ask, ListAsk, Listed, PinFacts, Policy, Reads, check::check, library};
use serde_json::{Value, json};

use crate::world::{ask, noon, reasons, snapshot, tool, user};

const HINT: &str = "deny contains \"destroys\" if input.tool.annotations.destructiveHint";

fn module(body: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("m".to_owned(), format!("package cotter.user.m\n\n{body}\n"))])
}

fn policy(body: &str) -> Policy {
    let mut world = snapshot();
    world.policies = module(body);
    Policy::prepare(&world).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(policy: &Policy, annotations: Option<&Value>) -> Vec<String> {
    let (principal, tag) = (user(&["case:write"]), tool("case_tag"));
    reasons(&policy.decide(&Ask { annotations, ..ask(&principal, &tag) }))
}

#[test]
fn the_library_reads_none() {
    for (name, text) in library::FILES {
        assert!(!text.contains("annotations") && !text.contains("Hint"), "{name}");
    }
}

#[test]
fn two_definitions_of_one_tool_are_remembered_apart() {
    let policy = policy(HINT);
    assert!(policy.is_cacheable() && policy.reads_annotations());
    let (destroys, harmless, titled) =
        (json!({"destructiveHint": true}), json!({"destructiveHint": false}), json!({"title": "x"}));
    for _ in 0..2 {
        assert_eq!(refused(&policy, Some(&destroys)), ["PolicyDenied destroys"]);
        for others in [None, Some(&harmless), Some(&titled)] {
            assert_eq!(refused(&policy, others), Vec::<String>::new());
        }
    }
}

#[test]
fn a_list_sees_them_as_a_call_does() {
    let policy = policy(HINT);
    let principal = user(&["case:write", "policy:read"]);
    let (destroys, harmless) = (json!({"destructiveHint": true}), json!({"destructiveHint": false}));
    let listed = |said: &'static str| if said == "destroys" { &destroys } else { &harmless };
    let seen = |tag: &'static str, lookup: &'static str| {
        let tools = [("case_tag", tag), ("policy_lookup", lookup)]
            .map(|(name, said)| (tool(name), Listed { pin: PinFacts::MATCHED, annotations: Some(listed(said)) }));
        let (tools, era, method, now) = (BTreeMap::from(tools), Era::Modern, "tools/list", noon());
        let asked = ListAsk { principal: &principal, authority: None, era, method, tools: &tools, now };
        let verdicts = policy.visible(&asked);
        verdicts.iter().filter(|(_, verdict)| verdict.visible).map(|(name, _)| name.to_string()).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!(seen("destroys", "harmless"), ["policy_lookup"]);
        assert_eq!(seen("harmless", "destroys"), ["case_tag"]);
        assert_eq!(seen("harmless", "harmless"), ["case_tag", "policy_lookup"]);
    }
}

#[test]
fn what_has_another_type_or_name_is_not_there() {
    let policy = policy("deny contains object.keys(input.tool.annotations) if input.tool.annotations");
    let odd = json!({"destructiveHint": "yes", "title": 7, "openWorldHint": null, "mine": true, "readOnlyHint": true});
    assert_eq!(refused(&policy, Some(&odd)), ["PolicyDenied [\"readOnlyHint\"]"]);
    for nothing in [json!({}), json!({"mine": true}), json!(7), json!([]), json!(null)] {
        assert_eq!(refused(&policy, Some(&nothing)), Vec::<String>::new(), "{nothing}");
    }
}

#[test]
fn whoever_takes_the_tool_whole_reads_them_and_the_functions_of_the_library_do_not() {
    let reads =
        |body: &str| Reads::of(&check(&module(body)).unwrap_or_else(|findings| panic!("{findings}"))).annotations;
    for body in [
        HINT,
        "deny contains \"x\" if input.tool[\"annotations\"].destructiveHint",
        "import input.tool as t\n\ndeny contains \"x\" if t.annotations.destructiveHint",
        "deny contains \"x\" if { t := input.tool; t.annotations.destructiveHint }",
        "deny contains \"x\" if { some k; input.tool[k].destructiveHint }",
        "deny contains \"x\" if f(input.tool)\n\nf(t) if t.annotations.destructiveHint",
        "deny contains \"x\" if object.get(input.tool, [\"annotations\", \"destructiveHint\"], false)",
        "import data.cotter.effects\n\ndeny contains \"x\" if effects.reversible(input.tool.annotations)",
        "import data.cotter.effects\n\ndeny contains \"x\" if { effects.known(input.tool); input.tool == {} }",
    ] {
        assert!(reads(body), "{body}");
    }
    for body in [
        "deny contains \"x\" if input.tool.effect == \"External\"",
        "import data.cotter.effects\n\ndeny contains \"x\" if effects.consequential(input.tool)",
        "deny contains \"x\" if not data.cotter.effects.reversible(input.tool)",
        "deny contains \"annotations\" if input.server.labels.annotations",
    ] {
        assert!(!reads(body), "{body}");
        assert!(!policy(body).reads_annotations(), "{body}");
    }
}
