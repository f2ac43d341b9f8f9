//! Decisions on the library alone.

use cotter_core::effect::Effect;
use cotter_policies::Policy;

use crate::world::{agent, call, grant, reasons, snapshot, user};

#[test]
fn a_scope_opens_its_tool_and_no_other() {
    let policy = Policy::prepare(&snapshot()).unwrap();
    let reader = user(&["policy:read"]);
    let allowed = call(&policy, &reader, "policy_lookup");
    assert!(allowed.is_allowed() && allowed.visible, "{allowed:?}");
    let refused = call(&policy, &reader, "case_tag");
    assert_eq!(reasons(&refused), ["MissingScope case:write"]);
    assert!(!refused.is_allowed() && !refused.visible);
    assert_eq!(refused.decision.challenge_scopes.len(), 1);
}

#[test]
fn one_grant_permits_and_two_halves_do_not() {
    let mut world = snapshot();
    world.grants = vec![
        grant("halves-a", "bot", &["case:write"], &[Effect::Read], &["*"]),
        grant("halves-b", "bot", &["policy:read"], &[Effect::Write], &["*"]),
        grant("whole", "ben", &["case:write"], &[Effect::Write], &["case_*"]),
    ];
    let policy = Policy::prepare(&world).unwrap();
    let refused = call(&policy, &agent("bot"), "case_tag");
    assert_eq!(reasons(&refused), ["EffectNotDelegated Write", "ScopeNotDelegated case:write"]);
    let allowed = call(&policy, &agent("ben"), "case_tag");
    assert_eq!((allowed.is_allowed(), allowed.delegation().map(|name| &**name)), (true, Some("whole")));
    assert_eq!(reasons(&call(&policy, &agent("eve"), "case_tag")), ["NoDelegation"]);
}
