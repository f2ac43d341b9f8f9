//! The decision cache: what is remembered, what is not, and when it ends.

use std::collections::BTreeMap;

use cotter_core::{
    decision::{Approval, Kind},
    effect::Effect,
};
use cotter_policies::{Ask, ListAsk, PinFacts, Policy, Reads, check::check};

use crate::world::{agent, ask, at, call, grant, noon, reasons, snapshot, tool, user};

fn policy(body: &str) -> Policy {
    let mut world = snapshot();
    world.policies.insert("m".to_owned(), format!("package cotter.user.m\n\n{body}\n"));
    Policy::prepare(&world).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_library_by_itself_is_remembered() {
    let policy = Policy::prepare(&snapshot()).unwrap();
    assert!(policy.is_cacheable());
    assert_eq!(Reads::of(&check(&BTreeMap::new()).unwrap()), Reads::default());
}

#[test]
fn a_rule_set_that_reads_the_call_the_clock_or_its_history_is_not() {
    for body in [
        "deny contains \"x\" if input.args.a == 1",
        "deny contains \"x\" if input[\"args\"]",
        "deny contains \"x\" if time.parse_rfc3339_ns(input.now) > 1",
        "import input.args as given\n\ndeny contains \"x\" if given.a == 1",
        "import input.args\n\ndeny contains \"x\" if args.a == 1",
        "deny contains \"x\" if h\n\nh if g(1)\n\ng(n) if n == input.args.a",
        "deny contains \"x\" if count({a | some a in input.args}) > 1",
        "deny contains \"x\" if { every a in input.args { a == 1 } }",
        "deny contains \"x\" if count([k | some k, _ in {\"a\": input.now}]) == 1",
        "deny contains \"x\" if f(input)\n\nf(x) if x.args.a == 1",
        "deny contains \"x\" if { i := input; i.args.a == 1 }",
        "deny contains \"x\" if { k := \"args\"; input[k].a == 1 }",
        "deny contains \"x\" if { some k; input[k] == 1 }",
        "deny contains \"x\" if object.get(input, [\"args\", \"a\"], 0) == 1",
        "deny contains \"x\" if { [1, i] = [1, input]; i.now }",
        "import input as i2\n\ndeny contains \"x\" if i2.args.a == 1",
        "require_approval contains \"x\" if input.args.a == 1",
        "unused if input.args.a == 1",
        "deny contains \"x\" if input.argsDigest == \"sha256:0\"",
        "deny contains \"x\" if not input.approval.state",
        "deny contains \"x\" if input.approval.id == \"a\"",
        "deny contains \"x\" if input.ledger.state == \"Unknown\"",
        "default d := 1\n\nd := input.args.a",
        "p[input.args.a] := 1",
    ] {
        match check(&BTreeMap::from([("m".to_owned(), format!("package cotter.user.m\n\n{body}\n"))])) {
            Ok(checked) => assert!(!Reads::of(&checked).call_is_stable(), "{body}"),
            // Refused is not remembered either.
            Err(findings) => assert!(body.starts_with("import input as"), "{body}: {findings}"),
        }
    }
}

#[test]
fn a_rule_set_that_reads_only_who_asks_for_what_is() {
    for body in [
        "deny contains \"x\" if input.tool.effect == \"External\"",
        "deny contains \"x\" if \"guests\" in input.principal.groups",
        "deny contains \"x\" if input.server.labels.args == \"now\"",
        "deny contains \"x\" if input.operation.kind == \"list\"",
    ] {
        assert!(policy(body).is_cacheable(), "{body}");
    }
    let lists = "deny contains \"x\" if input.args.a == 1";
    let checked = check(&BTreeMap::from([("m".to_owned(), format!("package cotter.user.m\n\n{lists}\n"))])).unwrap();
    assert!(Reads::of(&checked).list_is_stable(), "a list has no arguments");
}

#[test]
fn arguments_are_looked_at_each_time() {
    let policy = policy("deny contains \"large\" if input.args.amount > 10");
    let (principal, tag) = (user(&["case:write"]), tool("case_tag"));
    let with = |arguments| policy.decide(&Ask { arguments: Some(arguments), ..ask(&principal, &tag) });
    for _ in 0..2 {
        assert!(with("{\"amount\": 10}").is_allowed());
        let refused = with("{\"amount\": 11}");
        assert_eq!((reasons(&refused), refused.visible), (vec!["PolicyDenied large".to_owned()], true));
    }
}

#[test]
fn the_digest_of_the_arguments_is_looked_at_each_time() {
    let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let policy = policy(&format!("deny contains \"other\" if {{ input.argsDigest; input.argsDigest != \"{empty}\" }}"));
    assert!(policy.reads_arguments() && !policy.is_cacheable());
    let (principal, tag) = (user(&["case:write"]), tool("case_tag"));
    let with = |arguments| policy.decide(&Ask { arguments, ..ask(&principal, &tag) });
    for _ in 0..2 {
        assert!(with(None).is_allowed() && with(Some(" {\n}")).is_allowed());
        let refused = with(Some("{\"amount\": 11}"));
        assert_eq!((reasons(&refused), refused.visible), (vec!["PolicyDenied other".to_owned()], true));
    }
}

#[test]
fn what_no_list_shows_is_refused_before_a_number_is_looked_at() {
    let policy = policy("deny contains \"large\" if input.args.amount > 10");
    let (mia, eve, tag) = (user(&["case:write"]), user(&[]), tool("case_tag"));
    let arguments = Some("{\"amount\": 10.00000000000000000001}");
    let told = policy.decide(&Ask { arguments, ..ask(&mia, &tag) });
    assert_eq!((reasons(&told), told.visible), (vec!["ArgumentsNotExact /amount".to_owned()], true));
    let hidden = policy.decide(&Ask { arguments, ..ask(&eve, &tag) });
    assert_eq!((reasons(&hidden), hidden.visible), (vec!["MissingScope case:write".to_owned()], false));
    let long = format!("{{\"{}\\u001b\": 1e400}}", "a".repeat(1000));
    let told = reasons(&policy.decide(&Ask { arguments: Some(&long), ..ask(&mia, &tag) }));
    assert!(told[0].len() < 300 && told[0].starts_with("ArgumentsNotExact /aaa"), "a pointer is cut: {told:?}");
}

#[test]
fn the_clock_is_looked_at_each_time() {
    let policy = policy("deny contains \"late\" if time.clock(time.parse_rfc3339_ns(input.now))[0] >= 12");
    let (principal, tag) = (user(&["case:write"]), tool("case_tag"));
    for _ in 0..2 {
        assert!(policy.decide(&Ask { now: at("2026-11-30T11:59:59Z"), ..ask(&principal, &tag) }).is_allowed());
        assert!(!policy.decide(&ask(&principal, &tag)).is_allowed());
    }
}

#[test]
fn a_remembered_decision_ends_with_its_grant_and_begins_with_it() {
    let mut world = snapshot();
    let mut lent = grant("lent", "bot", &["case:write"], &[Effect::Write], &["*"]);
    (lent.not_before, lent.expires_at) = (Some(at("2026-11-30T12:10:00Z")), at("2026-11-30T12:20:00Z"));
    world.grants = vec![lent];
    let policy = Policy::prepare(&world).unwrap();
    let (bot, tag) = (agent("bot"), tool("case_tag"));
    let authority = policy.authority(&bot, noon()).unwrap();
    let allowed = |time: &str, with: bool| {
        let authority = with.then_some(&authority);
        policy.decide(&Ask { now: at(time), authority, ..ask(&bot, &tag) }).is_allowed()
    };
    for with in [true, false] {
        for (time, expected) in [
            ("2026-11-30T12:09:59.999Z", false),
            ("2026-11-30T12:10:00Z", true),
            ("2026-11-30T12:19:59.999Z", true),
            ("2026-11-30T12:20:00Z", false),
            ("2026-11-30T12:15:00Z", true),
            ("2026-11-30T12:00:00Z", false),
        ] {
            assert_eq!(allowed(time, with), expected, "{time} {with}");
        }
    }
    assert!(authority.is_valid(at("2026-11-30T12:09:59Z")) && !authority.is_valid(at("2026-11-30T12:10:00Z")));
}

#[test]
fn an_authority_ends_with_its_token_and_belongs_to_its_policy() {
    let (one, two) = (Policy::prepare(&snapshot()).unwrap(), Policy::prepare(&snapshot()).unwrap());
    let principal = user(&["case:write"]);
    let authority = one.authority(&principal, noon()).unwrap();
    assert!(one.accepts(&authority, noon()) && !two.accepts(&authority, noon()));
    assert!(one.accepts(&authority, at("2026-11-30T12:59:59Z")) && !one.accepts(&authority, principal.expires_at));
}

#[test]
fn another_policy_does_not_remember_for_this_one() {
    let mut world = snapshot();
    let before = Policy::prepare(&world).unwrap();
    world.tools.get_mut(&tool("case_tag")).unwrap().scope = "case:admin".parse().unwrap();
    let after = Policy::prepare(&world).unwrap();
    let (principal, tag) = (user(&["case:write"]), tool("case_tag"));
    let authority = before.authority(&principal, noon()).unwrap();
    let asked = Ask { authority: Some(&authority), ..ask(&principal, &tag) };
    assert!(
        before.decide(&asked).is_allowed() && !after.decide(&asked).is_allowed() && before.decide(&asked).is_allowed()
    );
}

#[test]
fn everything_that_a_rule_can_read_is_in_the_key() {
    let policy = policy(
        "deny contains \"pin\" if input.tool.pin.state == \"Drifted\"\n\ndeny contains \"class\" if input.tool.pin.class == \"Text\"\n\n\
         deny contains \"era\" if input.era == \"legacy\"\n\ndeny contains \"who\" if input.principal.subject == \"eve\"\n\n\
         deny contains \"group\" if \"guests\" in input.principal.groups\n\ndeny contains \"kind\" if { input.operation.kind == \"call\"; input.principal.subject == \"ben\" }\n\n\
         deny contains \"method\" if input.operation.method == \"other\"",
    );
    assert!(policy.is_cacheable());
    let (mia, tag) = (user(&["case:write"]), tool("case_tag"));
    let mut eve = mia.clone();
    eve.subject = "eve".parse().unwrap();
    let mut guest = mia.clone();
    guest.groups.insert("guests".to_owned());
    let mut ben = mia.clone();
    ben.subject = "ben".parse().unwrap();
    let base = ask(&mia, &tag);
    let drifted = PinFacts { state: "Drifted", class: None };
    let reworded = PinFacts { state: "Matched", class: Some("Text") };
    for _ in 0..2 {
        assert!(policy.decide(&base).is_allowed());
        for (asked, reason) in [
            (Ask { pin: drifted, ..base }, "pin"),
            (Ask { pin: reworded, ..base }, "class"),
            (Ask { era: cotter_core::decision::Era::Legacy, ..base }, "era"),
            (Ask { principal: &eve, ..base }, "who"),
            (Ask { principal: &guest, ..base }, "group"),
            (Ask { principal: &ben, ..base }, "kind"),
            (Ask { method: "other", ..base }, "method"),
        ] {
            assert_eq!(reasons(&policy.decide(&asked)), [format!("PolicyDenied {reason}")]);
        }
        assert!(
            policy
                .decide(&Ask { principal: &ben, kind: Kind::List, method: "tools/list", arguments: None, ..base })
                .is_allowed()
        );
    }
}

#[test]
fn approval_is_an_obligation_and_not_a_refusal() {
    let mut world = snapshot();
    world.tools.get_mut(&tool("case_tag")).unwrap().approval = Approval::Always;
    let policy = Policy::prepare(&world).unwrap();
    let verdict = call(&policy, &user(&["case:write", "policy:read"]), "case_tag");
    assert_eq!((verdict.is_allowed(), verdict.decision.obligations.approval), (true, Approval::Always));
    let other = call(&policy, &user(&["case:write", "policy:read"]), "policy_lookup");
    assert_eq!((other.is_allowed(), other.decision.obligations.approval), (true, Approval::Never));
}

#[test]
fn a_list_is_remembered_tool_by_tool_and_a_call_finds_it() {
    let policy = Policy::prepare(&snapshot()).unwrap();
    let principal = user(&["case:write"]);
    let tools: BTreeMap<_, _> =
        ["case_tag", "mail_send", "nobody"].map(|name| (tool(name), PinFacts::MATCHED.into())).into();
    let asked = ListAsk {
        principal: &principal,
        authority: None,
        era: cotter_core::decision::Era::Modern,
        method: "tools/list",
        tools: &tools,
        now: noon(),
    };
    let (cold, warm) = (policy.visible(&asked), policy.visible(&asked));
    assert_eq!(cold, warm);
    let seen: Vec<_> = cold.iter().filter(|(_, verdict)| verdict.is_allowed()).map(|(name, _)| name.as_str()).collect();
    assert_eq!(seen, ["case_tag"]);
    assert_eq!(reasons(&cold[&tool("nobody")]), ["Unlisted"]);
    assert_eq!(call(&policy, &principal, "case_tag").decision, cold[&tool("case_tag")].decision);
}
