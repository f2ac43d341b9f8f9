//! Modules of the user narrow, and whatever goes wrong in them refuses.

use std::collections::BTreeMap;

use cotter_core::decision::{Era, Kind};
use cotter_policies::{Ask, ListAsk, PinFacts, Policy, PolicyError, Verdict};

use crate::world::{ask, noon, reasons, snapshot, tool, user, worked};

fn policy(modules: &[(&str, &str)]) -> Policy {
    let mut world = snapshot();
    world.policies = modules.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Policy::prepare(&world).unwrap_or_else(|error| panic!("{error}"))
}

fn visible(policy: &Policy, scopes: &[&str]) -> BTreeMap<String, Verdict> {
    let principal = user(scopes);
    let names = ["case_purge", "case_tag", "mail_send", "policy_lookup"];
    let tools = names.map(|name| (tool(name), PinFacts::MATCHED.into())).into();
    let asked = ListAsk {
        principal: &principal,
        authority: None,
        era: Era::Modern,
        method: "tools/list",
        tools: &tools,
        now: noon(),
    };
    policy.visible(&asked).into_iter().map(|(name, verdict)| (name.to_string(), verdict)).collect()
}

const EVERYTHING: &[&str] = &["case:write", "case:admin", "mail:send", "policy:read"];

#[test]
fn a_refusal_that_needs_no_arguments_hides_the_tool_in_list_and_call() {
    let policy =
        policy(&[("m", "package cotter.user.m\n\ndeny contains \"abroad\" if input.tool.effect == \"External\"\n")]);
    let seen = visible(&policy, EVERYTHING);
    let names: Vec<_> = seen.iter().filter(|(_, verdict)| verdict.visible).map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["case_purge", "case_tag", "policy_lookup"]);
    let (principal, mail) = (user(EVERYTHING), tool("mail_send"));
    let refused = policy.decide(&ask(&principal, &mail));
    assert_eq!((reasons(&refused), refused.visible), (vec!["PolicyDenied abroad".to_owned()], false));
}

#[test]
fn what_a_list_does_not_show_cannot_be_called() {
    // The rule means "without an amount nothing", and refuses in a list, which has no arguments.
    let policy = policy(&[("m", "package cotter.user.m\n\ndeny contains \"no amount\" if not input.args.amount\n")]);
    assert!(visible(&policy, EVERYTHING).values().all(|verdict| !verdict.visible));
    let (principal, tag) = (user(EVERYTHING), tool("case_tag"));
    let refused = policy.decide(&Ask { arguments: Some("{\"amount\": 1}"), ..ask(&principal, &tag) });
    assert_eq!((refused.is_allowed(), refused.visible), (false, false));
    let hidden = policy_of_kind("list");
    assert!(!hidden.decide(&ask(&principal, &tag)).is_allowed());
}

fn policy_of_kind(kind: &str) -> Policy {
    let text = format!("package cotter.user.m\n\ndeny contains \"no\" if input.operation.kind == \"{kind}\"\n");
    policy(&[("m", &text)])
}

#[test]
fn what_a_list_shows_can_still_be_refused_for_its_arguments() {
    let policy = policy_of_kind("call");
    assert!(visible(&policy, EVERYTHING).values().all(Verdict::is_allowed));
    let (principal, tag) = (user(EVERYTHING), tool("case_tag"));
    let refused = policy.decide(&ask(&principal, &tag));
    assert_eq!((refused.is_allowed(), refused.visible), (false, true));
}

#[test]
fn a_module_that_fails_refuses_and_only_where_it_fails() {
    let text = "package cotter.user.m\n\ndeny contains \"x\" if { input.tool.effect == \"Write\"; to_number(input.tool.name) > 1 }\n";
    let policy = policy(&[("m", text)]);
    let seen = visible(&policy, EVERYTHING);
    let allowed: Vec<_> = seen.iter().filter(|(_, verdict)| verdict.visible).map(|(name, _)| name.as_str()).collect();
    assert_eq!(allowed, ["case_purge", "mail_send", "policy_lookup"]);
    let told = reasons(&seen["case_tag"]);
    assert!(told[0].starts_with("PolicyError m:3:"), "{told:?}");
    let (principal, tag) = (user(EVERYTHING), tool("case_tag"));
    assert!(!policy.decide(&ask(&principal, &tag)).is_allowed());
}

#[test]
fn two_values_for_one_rule_are_an_error_and_refuse() {
    let text = "package cotter.user.m\n\nlimit := 1 if input.tool.name\n\nlimit := 2 if input.tool.scope\n\ndeny contains \"x\" if limit == 3\n";
    let policy = policy(&[("m", text)]);
    let (principal, tag) = (user(EVERYTHING), tool("case_tag"));
    let told = reasons(&policy.decide(&ask(&principal, &tag)));
    assert!(told[0].starts_with("PolicyError"), "{told:?}");
}

#[test]
fn a_rule_that_does_not_end_is_stopped_and_refuses() {
    let text = "package cotter.user.m\n\nn := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\ndeny contains \"x\" if {\n\tsome a in n\n\tsome b in n\n\tsome c in n\n\t\
                some d in n\n\tsome e in n\n\tsome f in n\n\tsome g in n\n\tsome h in n\n\tsome i in n\n\tsum([a, b, c, d, e, f, g, h, i]) == input.args.total\n}\n";
    let policy = policy(&[("m", text)]);
    let (principal, tag) = (user(EVERYTHING), tool("case_tag"));
    let before = worked();
    let refused = policy.decide(&Ask { arguments: Some("{\"total\": 1}"), ..ask(&principal, &tag) });
    assert!(reasons(&refused)[0].starts_with("PolicyTimeout"), "{refused:?}");
    assert!((worked() - before).as_secs() < 5);
    assert!(
        visible(&policy, EVERYTHING)
            .values()
            .all(|verdict| reasons(verdict).iter().any(|told| told.starts_with("PolicyTimeout")))
    );
}

/// As a call is decided by itself, so is the one tool of a list whose rule takes too long.
#[test]
fn a_rule_that_takes_too_long_for_one_tool_leaves_the_others_in_the_list() {
    let text = "package cotter.user.m\n\nn := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\ndeny contains \"x\" if {\n\tinput.tool.name == \"case_tag\"\n\tsome a in n\n\tsome b in n\n\tsome c in n\n\t\
                some d in n\n\tsome e in n\n\tsome f in n\n\tsome g in n\n\tsome h in n\n\tsum([a, b, c, d, e, f, g, h]) == 0\n}\n";
    let all = visible(&policy(&[("m", text)]), EVERYTHING);
    let slow = &all["case_tag"];
    assert!(!slow.is_allowed() && reasons(slow)[0].starts_with("PolicyTimeout"), "{slow:?}");
    let others: Vec<_> = all.iter().filter(|(name, _)| name.as_str() != "case_tag").collect();
    assert!(others.len() > 1 && others.iter().all(|(_, verdict)| verdict.is_allowed()), "{others:?}");
}

#[test]
fn modules_see_one_tool_at_a_time_in_a_list_too() {
    let text = "package cotter.user.m\n\nimport data.cotter.effects\n\ndeny contains sprintf(\"no %s\", [input.tool.name]) if effects.consequential(input.tool)\n\n\
                require_approval contains \"x\" if input.tool.effect == \"Read\"\n";
    let policy = policy(&[("m", text)]);
    let seen = visible(&policy, EVERYTHING);
    assert_eq!(reasons(&seen["case_tag"]), ["PolicyDenied no case_tag"]);
    assert_eq!(reasons(&seen["mail_send"]), ["PolicyDenied no mail_send"]);
    assert!(seen["policy_lookup"].is_allowed());
    assert_eq!(seen["policy_lookup"].decision.obligations.approval, cotter_core::decision::Approval::Always);
}

#[test]
fn several_modules_and_nested_packages_add_up() {
    let policy = policy(&[
        ("a", "package cotter.user.a\n\ndeny contains \"a\" if input.tool.name == \"case_tag\"\n"),
        ("b", "package cotter.user.deep.er\n\ndeny contains \"b\" if input.tool.name == \"case_tag\"\n"),
        ("c", "package cotter.user.a\n\ndeny contains \"c\" if input.tool.name == \"case_tag\"\n"),
        ("d", "package cotter.user.library\n\nhelps if true\n"),
    ]);
    let (principal, tag) = (user(EVERYTHING), tool("case_tag"));
    let told = reasons(&policy.decide(&ask(&principal, &tag)));
    assert_eq!(told, ["PolicyDenied a", "PolicyDenied b", "PolicyDenied c"]);
    assert!(policy.decide(&Ask { kind: Kind::Call, ..ask(&principal, &tool("policy_lookup")) }).is_allowed());
}

#[test]
fn a_refused_module_is_named_and_nothing_is_prepared() {
    let mut world = snapshot();
    world.policies.insert("support-policy/main.rego".to_owned(), "package cotter.user.m\n\ndeny := true\n".to_owned());
    let error = Policy::prepare(&world).unwrap_err();
    assert!(matches!(error, PolicyError::Refused(_)));
    assert!(error.to_string().contains("support-policy/main.rego:3:1: `deny` has to be a set of reasons"), "{error}");
}

#[test]
fn a_module_that_takes_the_input_whole_sees_the_same_in_a_list() {
    let text = "package cotter.user.m\n\ndeny contains \"many\" if count(object.keys(input)) != size\n\nsize := 9 if not input.args\n\nsize := 11 if input.args\n";
    let policy = policy(&[("m", text)]);
    assert!(!policy.is_cacheable());
    assert!(visible(&policy, EVERYTHING).values().all(Verdict::is_allowed), "{:?}", visible(&policy, EVERYTHING));
    let (principal, tag) = (user(EVERYTHING), tool("case_tag"));
    assert!(policy.decide(&ask(&principal, &tag)).is_allowed());
}
