//! Modules of the user: those that ship, and generated ones.

use std::{collections::BTreeMap, fs};

use cotter_policies::cases::Cases;

use crate::{cases::read, dice::Dice, program::checkout};

/// The modules of the policy guide.
pub(crate) fn worked_modules() -> BTreeMap<String, String> {
    let entries = fs::read_dir(checkout("examples/policies")).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let modules = named.filter(|(name, _)| name.ends_with(".rego") && !name.ends_with("_test.rego"));
    modules.map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

/// Every rule set that ships: none, the worked ones, those of the cases.
pub(crate) fn shipped() -> Vec<(&'static str, BTreeMap<String, String>)> {
    let cases: Cases = read(&checkout("policies/cases/modules.yaml"));
    assert!(!cases.modules.is_empty());
    vec![
        ("the library", BTreeMap::new()),
        ("the worked modules", worked_modules()),
        ("the cases' modules", cases.modules),
    ]
}

/// Rules of every kind that the language has, none of which fails on an input of the documented form.
const BODIES: &[&str] = &[
    "deny contains \"abroad\" if input.tool.effect == \"External\"",
    "deny contains \"nobody's\" if not input.principal.tenant",
    "deny contains \"whole\" if { input.args.amount; is_number(input.args.amount); input.args.amount < 1000000000; input.args.amount == round(input.args.amount) }",
    "deny contains \"list\" if input.operation.kind == \"list\"",
    "deny contains {\"tool\": input.tool.name, \"groups\": input.principal.groups} if \"night\" in input.principal.groups",
    "deny contains reason if { some name, grant in input.grants; not grant.tools[input.tool.name]; reason := sprintf(\"%s lacks %s\", [name, input.tool.name]) }",
    "deny contains count(tags) if { tags := {tag | some tag in input.args.tags}; count(tags) > 1 }",
    "deny contains \"tags\" if { input.args.tags; every tag in input.args.tags { startswith(tag, \"C-\") } }",
    "deny contains level if { level := risk; level > 2 }\n\nrisk := 3 if { input.tool.effect == \"Destructive\" } else := 2 if { input.tool.effect == \"Write\" } else := 1",
    "default night := false\n\nnight if { [hour, _, _] := time.clock([time.parse_rfc3339_ns(input.now), \"Europe/Berlin\"]); hour < 6 }\n\ndeny contains \"night\" if night",
    "deny contains \"deep\" if input.args.nested.a.b in {\"C-41\", \"abc-cab\", \"日本\"}",
    "deny contains input.args.nested if input.args.nested.a.c > 100",
    "deny contains [name, value] if { some name, value in input.server.tenants; value == false }",
    "deny contains \"more\" if { scopes := {s | some s in input.principal.scopes}; count(scopes & allowed) < count(scopes) }\n\nallowed := {\"case:read\", \"case:write\"}",
    "deny contains upper(input.args.text) if regex.match(`^[a-z]{1,3}$`, input.args.text)",
    "deny contains \"unicode\" if { input.args.text; substring(input.args.text, 0, 1) in {\"日\", \"ǅ\"} }",
    "deny contains \"get\" if object.get(input, [\"args\", \"amount_cents\"], 0) == 50001",
    "deny contains \"weekend\" if time.weekday(time.parse_rfc3339_ns(input.now)) in {\"Saturday\", \"Sunday\"}",
    "deny contains \"f\" if f(input.tool.effect, input.operation.kind) == \"b\"\n\nf(\"Write\", kind) := \"b\" if kind == \"call\"\n\nf(\"Read\", _) := \"a\"",
    "limits := {\"refund\": 100, \"mail_send\": 1}\n\ndeny contains \"limit\" if input.args.amount > limits[input.tool.name]",
    "require_approval contains \"write\" if input.tool.scope == \"case:write\"",
    "require_approval contains {\"state\": input.tool.pin.state} if object.get(input.tool.pin, \"class\", \"\") == \"Schema\"",
    "require_approval contains \"agent\" if { input.principal.delegated; count(input.principal.actorChain) > 0 }",
    "deny contains \"destroys\" if { input.tool.annotations.destructiveHint; input.tool.effect == \"Write\" }",
    "deny contains \"says nothing\" if not input.tool.annotations.title",
    "deny contains object.keys(input.tool.annotations) if input.tool.annotations.openWorldHint",
    "deny contains \"other\" if input.argsDigest != \"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"",
    "deny contains input.approval.id if input.approval.state in {\"Denied\", \"Expired\", \"Used\"}",
    "deny contains \"again\" if { input.ledger; not input.ledger.state in {\"Succeeded\", \"Failed\"} }",
    "deny contains \"slow\" if { input.tool.limits.timeoutMs > 50000; not input.tool.idempotencyKey }",
    "require_approval contains \"not agreed to\" if not agreed\n\nagreed if input.approval.state == \"Approved\"",
    "require_approval contains \"mixed\" if input.args.amount_cents < \"10\"",
];

/// Up to three modules of some of those rules.
pub(crate) fn any_modules(dice: &mut Dice) -> BTreeMap<String, String> {
    let numbers: Vec<usize> = (0..BODIES.len()).collect();
    let mut module = |number: usize| {
        let bodies: Vec<_> = dice.few(&numbers, 6).into_iter().map(|at| BODIES[at]).collect();
        (format!("desk/m{number}"), format!("package cotter.user.m{number}\n\n{}\n", bodies.join("\n\n")))
    };
    (0..3).map(&mut module).collect()
}

/// All of them at once.
pub(crate) fn every_body() -> BTreeMap<String, String> {
    let module =
        |(number, body): (usize, &&str)| (format!("m{number}"), format!("package cotter.user.m{number}\n\n{body}\n"));
    BODIES.iter().enumerate().map(module).collect()
}
