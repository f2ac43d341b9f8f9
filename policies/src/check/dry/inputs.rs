//! The inputs of a dry run: the plainest of each kind, then one for everything that an input can have beside, then those of the
//! library's cases.

use std::sync::OnceLock;

use cotter_core::effect::Effect;
use serde_json::{Value, json};

use crate::{
    cases::{Case, Cases, changed},
    document::INPUT_VERSION,
    exact::{self, Need},
    library,
};

/// One input.
pub(super) struct Sample {
    /// What it is, as a person says it after "on".
    pub(super) kind: String,
    pub(super) input: Value,
    /// The same for the engine.
    pub(super) value: regorus::Value,
}

impl Sample {
    fn new(kind: String, input: Value) -> Option<Self> {
        let value = regorus::Value::from_json_str(&input.to_string()).ok()?;
        Some(Self { kind, input, value })
    }
}

/// Each effect, listed and called, by somebody with scopes and by a delegate, with arguments of two kinds.
pub(super) fn plain() -> &'static [Sample] {
    static PLAIN: OnceLock<Vec<Sample>> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let mut samples = Vec::new();
        for effect in Effect::ALL {
            for args in [None, Some(json!({})), Some(json!({"id": "C-41", "count": 3, "tags": ["a"]}))] {
                for delegated in [false, true] {
                    let who = if delegated { "who acts under a delegation" } else { "with scopes" };
                    let input = input(effect, args.as_ref(), delegated);
                    samples.extend(Sample::new(format!("{} by a caller {who}", asked(effect, args.is_some())), input));
                }
            }
        }
        samples
    })
}

/// What an input can have beside, one thing at a time, and then what the library's cases have.
pub(super) fn special() -> &'static [Sample] {
    static SPECIAL: OnceLock<Vec<Sample>> = OnceLock::new();
    SPECIAL.get_or_init(|| {
        let mut samples = Vec::new();
        for (is_call, args) in [(true, Some(json!({}))), (false, None)] {
            for (kind, members) in beside() {
                let mut input = input(Effect::Write, args.as_ref(), false);
                members.into_iter().for_each(|(pointer, value)| set(&mut input, pointer, value));
                samples.extend(Sample::new(format!("{} {kind}", asked(Effect::Write, is_call)), input));
            }
        }
        for (kind, members) in of_calls() {
            let mut input = input(Effect::Write, Some(&json!({})), false);
            members.into_iter().for_each(|(pointer, value)| set(&mut input, pointer, value));
            samples.extend(Sample::new(format!("{} {kind}", asked(Effect::Write, true)), input));
        }
        samples.extend(of_cases());
        samples
    })
}

fn asked(effect: Effect, is_call: bool) -> String {
    let what = if is_call { "a call of" } else { "a list with" };
    format!("{what} a tool of effect {effect}")
}

fn input(effect: Effect, args: Option<&Value>, delegated: bool) -> Value {
    let grant = json!({"scopes": {"scope": true}, "effects": {effect.as_str(): true}, "tools": {"tool": true}, "tenants": {"tenant": true}, "ancestors": []});
    let grants = if delegated { json!({"grant": grant}) } else { json!({}) };
    let (method, kind) = if args.is_some() { ("tools/call", "call") } else { ("tools/list", "list") };
    let mut input = json!({
        "version": INPUT_VERSION, "era": "modern", "protocol": "mcp", "now": "2026-11-30T12:00:00Z",
        "server": {"namespace": "namespace", "name": "server", "audience": "server://mcp", "labels": {}, "tenants": {"tenant": true}},
        "principal": {"issuer": "https://issuer.example", "subject": "subject", "tenant": "tenant", "scopes": ["scope"], "groups": ["group"],
                      "actorChain": [], "delegated": delegated},
        "grants": grants,
        "operation": {"method": method, "kind": kind},
        "tool": {"name": "tool", "scope": "scope", "effect": effect, "approval": "Never", "pin": {"state": "Matched"}},
    });
    if delegated {
        set(&mut input, "/principal/scopes", Value::Null);
    }
    set(&mut input, "/args", args.cloned().unwrap_or_default());
    input
}

type Members = Vec<(&'static str, Value)>;

/// What each of these is, and the members that make an input one: a table, as long as it has rows.
fn beside() -> Vec<(&'static str, Members)> {
    let account = json!({"namespace": "namespace", "name": "account"});
    let actor = json!({"issuer": "https://issuer.example", "subject": "agent"});
    let vouched = json!({"issuer": "https://cluster.example", "subject": "agent", "serviceAccount": account});
    let grant = json!({"scopes": {"scope": true}, "effects": {"Write": true}, "tools": {"tool": true}, "tenants": {"tenant": true}, "ancestors": ["parent"]});
    vec![
        (
            "by an agent that acts for somebody (input.principal.actor is an object)",
            vec![
                ("/principal/actor", actor.clone()),
                ("/principal/actorChain", json!([actor, vouched])),
                ("/principal/delegated", json!(true)),
                ("/grants", json!({"grant": grant})),
            ],
        ),
        (
            "by a service account (input.principal.serviceAccount is an object)",
            vec![
                ("/principal/serviceAccount", account),
                ("/principal/scopes", Value::Null),
                ("/principal/delegated", json!(true)),
                ("/grants", json!({"grant": grant})),
            ],
        ),
        (
            "by a caller without a tenant",
            vec![("/principal/tenant", Value::Null), ("/server/tenants", json!({"*": true}))],
        ),
        (
            "by a caller without groups and scopes",
            vec![("/principal/groups", json!([])), ("/principal/scopes", json!([]))],
        ),
        ("of a server with labels", vec![("/server/labels", json!({"team": "desk", "example.com/tier": "1"}))]),
        (
            "of which the server says something (input.tool.annotations)",
            vec![(
                "/tool/annotations",
                json!({"title": "Tool", "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}),
            )],
        ),
        (
            "with limits and an idempotency key",
            vec![
                ("/tool/limits", json!({"timeoutMs": 2000, "resultBytes": 65536})),
                ("/tool/idempotencyKey", json!("/key")),
            ],
        ),
        ("that a person has to agree to", vec![("/tool/approval", json!("Always"))]),
        ("that drifted from its pin", vec![("/tool/pin", json!({"state": "Drifted", "class": "Additive"}))]),
        ("in the legacy era", vec![("/era", json!("legacy"))]),
    ]
}

/// The same, for calls.
fn of_calls() -> Vec<(&'static str, Members)> {
    let every = json!({"text": "a", "empty": "", "number": 1.5, "whole": -3, "flag": true, "nothing": null, "list": [1, "a", null, []], "object": {"member": {}}});
    vec![
        ("with an argument of each type", vec![("/args", every)]),
        (
            "of which something is known from before",
            vec![
                ("/argsDigest", json!("sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")),
                ("/approval", json!({"state": "Approved", "id": "approval"})),
                ("/ledger", json!({"state": "Succeeded"})),
            ],
        ),
    ]
}

/// Sets a member of an object that is there; null removes it.
fn set(input: &mut Value, pointer: &str, value: Value) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    let Some(Value::Object(members)) = input.pointer_mut(parent) else { return };
    match value {
        Value::Null => drop(members.remove(name)),
        value => drop(members.insert(name.to_owned(), value)),
    }
}

/// The inputs of the library's cases, each once, but for those that are meant not to be one.
fn of_cases() -> Vec<Sample> {
    let Ok(base) = serde_saphyr::from_str::<Value>(library::BASE) else { return Vec::new() };
    let mut samples: Vec<Sample> = Vec::new();
    for (file, text) in library::CASES {
        let Ok(cases) = serde_saphyr::from_str::<Cases>(text) else { continue };
        let Ok(base) = changed(&base, &cases.set) else { continue };
        for case in &cases.cases {
            let Ok(input) = changed(&base, &case.set) else { continue };
            let twin = case.twin.as_ref().and_then(|twin| Some((twin, changed(&input, &twin.set).ok()?)));
            for (one, input) in
                [Some((case, input)), twin.map(|(twin, input)| (twin.as_ref(), input))].into_iter().flatten()
            {
                let arguments = one.arguments.as_deref().or(case.arguments.as_deref());
                samples.extend(of_case(file, one, with(input, arguments)));
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    samples.retain(|sample| seen.insert(sample.value.clone()));
    samples
}

fn of_case(file: &str, case: &Case, input: Option<Value>) -> Option<Sample> {
    let kind = format!("the input of the case \"{}\" in policies/cases/{file}", case.name);
    input.filter(|_| !case.malformed).and_then(|input| Sample::new(kind, input))
}

/// An input with the arguments of a call, where any rule would see them.
fn with(mut input: Value, arguments: Option<&str>) -> Option<Value> {
    let Some(arguments) = arguments else { return Some(input) };
    exact::inexact(arguments, Need::Rules).is_none().then_some(())?;
    set(&mut input, "/args", serde_json::from_str(arguments).ok()?);
    Some(input)
}
