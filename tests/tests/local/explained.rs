//! `cotter why` beside the decisions of the sidecar that it explains, and what `up` says of what it could not take.

use std::process::Command;

use cotter_tests::{
    folder::{Folder, with_time_left},
    programs::{Said, ours},
    up::Up,
};

const LOOKUP: [&str; 2] = ["policy_lookup", "topic=refund"];
const TAG: [&str; 4] = ["case_tag", "case_id=C-41", "tag=manual_review", "idempotency_key=k1"];

/// A delegation of `policy_lookup` to whoever has a claim.
fn by_claim(name: &str, claim: &str) -> String {
    with_time_left(&format!(
        "apiVersion: cotter.dev/v1alpha1\nkind: AgentDelegation\nmetadata: {{name: {name}}}\nspec:\n  delegate: {{claims: {{{claim}}}}}\n  \
         to: {{servers: [{{name: support}}]}}\n  scopes: [policy:read]\n  effects: [Read]\n  tools: [\"policy_*\"]\n  tenants: [tenant-7]\n  expiresAt: x\n"
    ))
}

fn call(up: &Up, tool: &[&str], caller: &[&str]) -> Said {
    up.cotter(&[&["call", "support"], tool, caller].concat())
}

/// The reasons that the owner is told of a refused call.
fn reasons(said: &Said) -> Vec<String> {
    let lines = said.out.lines().filter_map(|line| line.strip_prefix("because  "));
    lines.map(|line| line.split([':', ' ']).next().unwrap().to_owned()).collect()
}

/// Runs a line that `call` shows, as its reader would.
fn shown(up: &Up, said: &Said) -> Said {
    let line = said.out.lines().find(|line| line.trim().starts_with("cotter why")).unwrap();
    let programs = ours("cotter").parent().unwrap().to_path_buf();
    let mut command = Command::new("bash");
    command.args(["-c", &format!("PATH={}:$PATH; {line}", programs.display())]).envs(up.environment());
    Said::run(&mut command)
}

#[test]
#[ignore = "needs the programs, built"]
fn why_says_of_every_caller_what_the_sidecar_does() {
    let folder = Folder::of_example("support-desk");
    folder.write("team.yaml", &by_claim("team", "team: blue"));
    folder.write("desk.yaml", &by_claim("desk", "groups: the desk"));
    folder.write("tenant.yaml", &by_claim("whole-tenant", "tenant: tenant-7, sub: robot"));
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let own: &[&str] = &["--tenant", "tenant-7", "--scope", "policy:read case:write"];
    let bare: &[&str] = &["--tenant", "tenant-7"];
    let callers: [(&[&str], &[&str], bool, bool); 13] = [
        (own, &[], true, true),
        (bare, &[], false, false),
        (bare, &["--as", "robot"], true, false),
        (own, &["--as", "robot"], true, false),
        (own, &["--claim", "team=blue"], true, false),
        (own, &["--claim", "team=[\"red\",\"blue\"]"], true, false),
        (own, &["--claim", "team=red"], true, true),
        (bare, &["--group", "the desk", "--group", "x"], true, false),
        (own, &["--group", "other desk"], true, true),
        (own, &["--group", "the desk", "--actor", "bot"], false, false),
        (own, &["--actor", "it's $me"], false, false),
        (&["--service-account", "support/triage-bot"], &[], true, false),
        (&["--service-account", "support/somebody"], &["--claim", "team=blue"], true, false),
    ];
    for (first, more, looks, tags) in callers {
        let caller = [first, more].concat();
        for (tool, allowed) in [(&LOOKUP[..], looks), (&TAG[..], tags)] {
            let called = call(&up, tool, &caller);
            assert_eq!(called.code, Some(i32::from(!allowed)), "{tool:?} {caller:?}: {}{}", called.out, called.err);
            let why = up.cotter(&[&["why", "support", tool[0]], &caller[..]].concat());
            assert_eq!(why.code, called.code, "{tool:?} {caller:?}: {}{}", why.out, why.err);
            let decision = why.out.lines().find(|line| line.starts_with("decision")).unwrap().to_owned();
            for reason in reasons(&called) {
                assert!(decision.contains(&reason), "{tool:?} {caller:?}: {reason}\n{}", why.out);
            }
            if !allowed {
                assert_eq!(shown(&up, &called).out, why.out, "{}", called.out);
            }
        }
    }
    let said = call(&up, &LOOKUP, &["--claim", "tenant=tenant-7"]);
    assert!(said.code == Some(2) && said.err.contains("--tenant"), "{}", said.err);
}

#[test]
#[ignore = "needs the programs, built"]
fn why_refuses_what_a_budget_refuses_and_allows_it_again_once_it_is_raised() {
    let folder = Folder::of_example("support-desk");
    folder.replace("delegation.yaml", "  effects: [Read]", "  effects: [Read]\n  budget: {calls: 1, perMinute: 9}");
    let up = Up::start(&folder, &[]);
    up.wait_for_tools("support", "2/2");
    let bot = ["--service-account", "support/triage-bot"];
    let why = || up.cotter(&[&["why", "support", "policy_lookup"], &bot[..]].concat());
    let before = why();
    assert_eq!(before.code, Some(0), "{}", before.out);
    assert!(before.out.contains("triage-bot: 0 of 1 calls used, 1 left and 9 calls a minute"), "{}", before.out);
    assert!(before.out.contains("change from moment to moment"), "{}", before.out);
    assert_eq!(call(&up, &LOOKUP, &bot).code, Some(0));
    let refused = call(&up, &LOOKUP, &bot);
    assert_eq!(reasons(&refused), ["BudgetExhausted"], "{}", refused.out);
    let after = shown(&up, &refused);
    assert_eq!(after.code, Some(1), "{}", after.out);
    assert!(after.out.contains("BudgetExhausted") && after.out.contains("1 of 1 calls used, 0 left"), "{}", after.out);
    assert!(after.out.contains("spec.budget.calls of the AgentDelegation triage-bot"), "{}", after.out);
    folder.replace("delegation.yaml", "calls: 1,", "calls: 2,");
    up.wait_until("adel", "triage-bot", |_| why().code == Some(0));
    assert_eq!(call(&up, &LOOKUP, &bot).code, Some(0));
}

const BAD: &str = "package cotter.user.desk\n\ndeny contains \"x\" if http.send({})\n";
const GOOD: &str = "package cotter.user.desk\n\ndeny contains \"no\" if input.principal.subject == \"mia\"\n";

#[test]
#[ignore = "needs the programs, built"]
fn up_says_why_a_module_was_refused_and_why_explains_what_is_in_force() {
    let folder = Folder::of_example("support-desk");
    folder.replace("server.yaml", "  tools:\n", "  policies: [{configMapRef: {name: support-policy}}]\n  tools:\n");
    folder.write("policy.yaml", &super::policy(BAD));
    let mut up = Up::start(&folder, &[]);
    let place = "support-policy/desk.rego:3:22";
    let why = |up: &Up, subject: &str| {
        let flags = ["--tenant", "tenant-7", "--scope", "policy:read", "--as", subject];
        up.cotter(&[&["why", "support", "policy_lookup"], &flags[..]].concat())
    };
    let log = up.log();
    assert!(log.contains("support  PoliciesReady is False (PolicyInvalid): ") && log.contains(place), "{log}");
    assert!(log.contains("starting support-desk --stdio"), "the program as the manifest names it: {log}");
    assert!(!log.contains("cotter list support"), "there is nothing to try: {log}");
    let nothing = why(&up, "ada");
    assert_eq!(nothing.code, Some(2), "{}", nothing.out);
    assert!(nothing.err.contains(place), "{}", nothing.err);

    folder.write("policy.yaml", &super::policy(GOOD));
    up.wait_for("support  PoliciesReady is good again");
    up.wait_for_tools("support", "2/2");
    let (ada, mia) = (why(&up, "ada"), why(&up, "mia"));
    assert_eq!((ada.code, mia.code), (Some(0), Some(1)), "{}{}", ada.out, mia.out);
    assert!(!ada.out.contains("previous"), "{}", ada.out);
    assert!(mia.out.contains("A rule of a policy module refused it"), "{}", mia.out);

    folder.write("policy.yaml", &super::policy(&BAD.replace("\"x\"", "\"other\"")));
    up.wait_for("support-policy/desk.rego:3:26");
    let flags = ["--tenant", "tenant-7", "--scope", "policy:read", "--as"];
    for (subject, code) in [("ada", 0), ("mia", 1)] {
        let said = why(&up, subject);
        assert_eq!(said.code, Some(code), "{subject}: {}{}", said.out, said.err);
        let told = said.out.lines().next().unwrap();
        assert!(told.contains("previous") && told.contains("support-policy/desk.rego:3:26"), "{}", said.out);
        assert_eq!(call(&up, &LOOKUP, &[&flags[..], &[subject]].concat()).code, Some(code), "as the sidecar does");
    }
    let list = up.cotter(&["list", "support", "--tenant", "tenant-7", "--scope", "policy:read"]).good();
    assert!(list.contains("policy_lookup   Read"), "the tools are those in force: {list}");
    assert_eq!(up.log().matches("desk.rego:3:26").count(), 1, "once for as long as it lasts: {}", up.log());
}
