//! What the check refuses, where it says it is, and that it says what to write instead.

use std::{collections::BTreeMap, fmt::Write as _};

use cotter_policies::check::{MAX_BYTES, check, utf8};

use crate::world::worked;

fn modules(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("m.rego".to_owned(), text.to_owned())])
}

/// The findings as `line:column: message`.
fn findings(text: &str) -> Vec<String> {
    let before = worked();
    let found = match check(&modules(text)) {
        Ok(_) => Vec::new(),
        Err(findings) => findings.0.iter().map(|f| format!("{}:{}: {}", f.line, f.column, f.message)).collect(),
    };
    assert!((worked() - before).as_secs() < 2, "the check takes no longer than its text deserves");
    found
}

fn module(body: &str) -> String {
    format!("package cotter.user.m\n\n{body}\n")
}

fn refused(body: &str, place: &str, words: &str) {
    let found = findings(&module(body));
    assert!(
        found.iter().any(|f| f.starts_with(place) && f.contains(words)),
        "{body}\nwanted {place} {words}\ngot {found:#?}"
    );
}

fn passes(body: &str) {
    assert_eq!(findings(&module(body)), Vec::<String>::new(), "{body}");
}

#[test]
fn a_plain_module_passes() {
    passes(
        "import data.cotter.effects\n\ndeny contains \"no\" if {\n\tnot effects.reversible(input.tool)\n\tinput.args.amount > limit\n}\n\nlimit := 10",
    );
    passes("import input.principal.groups as groups\n\ndeny contains \"no\" if not \"desk\" in groups");
    passes(
        "deny contains r if some r in data.cotter.user.m.more\n\nmore contains \"x\" if input.server.labels.team == \"desk\"",
    );
}

#[test]
fn deep_brackets_are_refused_before_the_parser() {
    passes(&format!("x := {}{}", "[".repeat(10), "]".repeat(10)));
    refused(&format!("x := {}{}", "[".repeat(11), "]".repeat(11)), "3:16:", "nested more than 10");
    refused(&format!("x := {}", "[{".repeat(200)), "3:16:", "nested more than 10");
    refused(&format!("x := {}1{}", "(".repeat(25), ")".repeat(25)), "3:30:", "parentheses");
    passes(&format!("# {0}\nx := \"{0}\"\ny := `{0}`", "[".repeat(40)));
}

#[test]
fn an_expression_has_a_bounded_number_of_operators() {
    passes(&format!("x := 1{}", " + 1".repeat(90)));
    refused(&format!("x := 1{}", " + 1".repeat(200)), "3:", "operators");
    refused(&format!("x := 1{}", " +\n 1".repeat(200)), "", "operators");
    refused(&format!("x := 1{}", "\n + 1".repeat(200)), "", "operators");
    refused(&format!("x := y if y in {}[1]", "[1] in ".repeat(200)), "3:", "operators");
    let mut many = String::new();
    (0..500).for_each(|n| write!(many, "x{n} := {n} + 1\n\ny{n} if {{\n\tx{n} == 1\n\tx{n} != 2\n}}\n").unwrap());
    passes(&many);
}

#[test]
fn size_number_and_characters_are_bounded() {
    let long = module(&"# comment\n".repeat(MAX_BYTES / 10));
    assert!(findings(&long).first().unwrap().contains("bytes"), "{:?}", findings(&long));
    let many: BTreeMap<_, _> = (0..33).map(|n| (format!("m{n:02}"), module(""))).collect();
    assert!(check(&many).unwrap_err().to_string().contains("at most 32"));
    assert_eq!(
        utf8("m.rego", b"package x\n# \xff").unwrap_err().to_string().lines().next(),
        Some("m.rego:2:3: this byte is not UTF-8")
    );
    assert!(utf8("m.rego", "# é".as_bytes()).is_ok());
    refused("# \u{202e}x", "3:3:", "U+202E");
    refused("x := \"\u{200b}\"", "3:7:", "U+200B");
    refused("x := \"\u{0}\"", "3:7:", "U+0000");
}

#[test]
fn a_module_lives_below_cotter_user() {
    for package in ["cotter.authz", "cotter.user", "cotter.scopes", "mine", "cotter.user[\"a b\"]", "cotter.users.x"] {
        let found = findings(&format!("package {package}\n\nx := 1\n"));
        assert!(found.iter().any(|f| f.starts_with("1:1:") && f.contains("below cotter.user")), "{package}: {found:?}");
    }
    assert_eq!(findings("package cotter.user.a.b\n\nx := 1\n"), Vec::<String>::new());
}

#[test]
fn deny_is_a_set_of_reasons_and_nothing_else() {
    for body in [
        "deny := true",
        "deny if input.args.x",
        "deny[\"a\"] := 1",
        "deny.a contains \"x\" if 1 == 1",
        "default deny := false",
        "deny(x) := x",
    ] {
        refused(body, "3:1:", "`deny` has to be a set");
        refused(&body.replace("deny", "require_approval"), "3:1:", "`require_approval` has to be a set");
    }
}

#[test]
fn recursion_is_refused_however_it_is_written() {
    refused("f(n) := f(n)", "3:1:", "uses itself: data.cotter.user.m.f -> data.cotter.user.m.f");
    refused("a if b\n\nb if c\n\nc if a", "", "uses itself");
    refused("p := {x | some x in data.cotter.user.m.p}", "3:1:", "uses itself");
    refused("p contains x if some x in data.cotter.user.m", "3:1:", "uses itself");
    refused("p := data.cotter.user[input.args.x].p", "3:1:", "uses itself");
    refused("p := data.cotter.user.m[input.args.x]", "3:1:", "uses itself");
    refused("import data.cotter.user.m as me\n\np := me.q\n\nq := p", "", "uses itself");
    refused("default p := 1\n\np := x if { x := p }", "", "uses itself");
    refused("f(x) := 1 if { every y in [x] { f(y) } }", "3:1:", "uses itself");
    refused("f(x) := 1 if { not f(x) } else := f(2)", "3:1:", "uses itself");
    refused("o[k] := v if { some k, v in o }", "3:1:", "uses itself");
    let two = BTreeMap::from([
        ("a".to_owned(), "package cotter.user.a\n\nx := data.cotter.user.b.y\n".to_owned()),
        ("b".to_owned(), "package cotter.user.b\n\ny := data.cotter.user.a.x\n".to_owned()),
    ]);
    assert!(check(&two).unwrap_err().to_string().contains("uses itself"));
}

#[test]
fn a_chain_of_rules_has_a_length() {
    let chain = |n: usize| (1..n).fold("r0 := 1".to_owned(), |text, i| format!("{text}\n\nr{i} := r{}", i - 1));
    passes(&chain(100));
    refused(&chain(101), "", "more than 100 rules");
    assert!(!findings(&module(&chain(2000))).is_empty());
}

#[test]
fn only_listed_functions_are_called_and_with_their_arguments() {
    refused("x := numbers.range(1, 5)", "3:6:", "numbers.range is not allowed");
    refused("x := time.now_ns()", "3:6:", "time.now_ns is not allowed");
    refused("x := io.jwt.decode(input.args.t)", "3:6:", "no function io.jwt.decode");
    refused("x := http.send({})", "3:6:", "no function http.send");
    refused("x if false\n\ny := nonsense(1) if x", "5:6:", "no function nonsense");
    refused("x := count(1, 2, 3)", "3:6:", "takes 1 arguments and gets 3");
    refused("f(a) := a\n\nx := f(1, 2, 3)", "5:6:", "takes 1 arguments and gets 3");
    refused("v := 1\n\nx := v(1)", "5:6:", "not a function");
    refused("x if print(1)", "3:6:", "print is not allowed");
    passes("x := count([1])\n\ny := n if count([1], n)");
}

#[test]
fn a_misspelt_name_is_found() {
    refused("x := input.tool.nmae", "3:6:", "no member input.tool.nmae");
    refused("x := input.principle", "3:6:", "no member input.principle");
    refused("x := input.tools", "3:6:", "no member input.tools");
    refused("x := input.tool.annotations.destructive", "3:6:", "no member input.tool.annotations.destructive");
    refused("x := input.approval.by", "3:6:", "no member input.approval.by");
    refused("import input.tol", "3:1:", "no member input.tol");
    refused("x := data.cotter.effects.nonsense", "3:6:", "no nonsense in");
    refused("x := data.cotter.user.nobody", "3:6:", "no nobody in");
    passes(
        "x := input.args.anything.at.all\n\ny := input.server.labels.team\n\nz := input.grants[\"a\"].scopes[\"b\"]\n\nw := input.principal.actor.subject\n\na := input.argsDigest\n\nb := input.approval.state\n\nc := input.ledger.state\n\n\
         d := input.tool.annotations.readOnlyHint\n\ne := input.tool.limits.timeoutMs\n\nf := input.tool.idempotencyKey",
    );
}

#[test]
fn a_module_sees_neither_the_decision_nor_other_data() {
    for body in [
        "x := data",
        "x := data.secrets",
        "x := data.cotter",
        "x := data[input.args.x]",
        "x := data.cotter.authz.decision",
        "x := data.cotter.obligations.due(input.tool)",
        "x := data.cotter[input.args.x]",
    ] {
        refused(body, "3:6:", "cannot be used here");
    }
    refused("import data.cotter.modules", "3:1:", "cannot be used here");
    refused("import data as d", "3:1:", "cannot be used here");
    refused("import input\n\nx := input", "3:1:", "hides another `input`");
}

#[test]
fn a_variable_hides_nothing() {
    refused("x := 1\n\ny if { x := 2; x == 2 }", "5:8:", "hides");
    refused("import data.cotter.effects\n\nf(effects) := effects", "5:3:", "hides");
    refused("x := 1\n\ny if { some x in [1]; x == 1 }", "5:13:", "hides");
    refused("x := 1\n\ny if { [a, x] := [1, 2]; a == x }", "", "hides");
    refused("import data.cotter.scopes as input", "3:1:", "hides another `input`");
    refused("import data.cotter.scopes as p\n\np := p", "3:1:", "hides another `p`");
    refused("import data.cotter.scopes\nimport data.cotter.tenants as scopes", "4:1:", "hides another `scopes`");
    passes("import rego.v1\nimport data.cotter.scopes as s\n\nx if s.stated");
}

#[test]
fn classes_that_mean_something_else_in_opa_are_refused() {
    refused("x if regex.match(`^\\d+$`, input.args.a)", "3:", "\\d means other characters");
    refused("x if regex.match(\"^\\\\w+$\", input.args.a)", "3:", "\\w means other characters");
    passes("x if regex.match(`^[0-9]+$`, input.args.a)");
}

#[test]
fn a_number_is_not_larger_than_it_looks() {
    refused("x := 1e999999999", "3:17:", "exponent");
    refused("x := 1.5E+9999 + 1", "3:15:", "exponent");
    refused("x := {1e-99999}", "3:15:", "exponent");
    refused(&format!("x := {}", "1".repeat(101)), "3:", "more than 100 digits");
    passes(&format!("x := {}", "1".repeat(100)));
    passes("x := 1e300\n\ny := 1.5e-7\n\nx1e99999 := 1\n\nz := \"1e999999999\"\n\n# 1e999999999");
}

#[test]
fn what_is_multiplied_again_and_again_is_refused() {
    let squares = |n: usize| {
        let rules = (0..n).map(|n| format!("x{} := x{n} * x{n}\n\n", n + 1)).collect::<String>();
        format!("x0 := input.args.a\n\n{rules}")
    };
    passes(&squares(16));
    refused(&squares(17), "37:1:", "more than 16 multiplications");
    let within = |n: usize| (0..n).map(|n| format!("\tx{} := x{n} * x{n}\n", n + 1)).collect::<String>();
    passes(&format!("x if {{\n\tx0 := input.args.a\n{}}}", within(16)).replace("x if", "y if"));
    refused(&format!("y if {{\n\tx0 := input.args.a\n{}}}", within(17)), "3:1:", "more than 16 multiplications");
    refused("f(a) := (a * a) * (a * a)\n\ng(a) := f(f(a)) * f(f(f(a)))\n\nh(a) := g(a) * a", "7:1:", "more than 16");
    // What is not on one way counts apart: a bound in each of many rules is no chain.
    let bounds = |n: usize| format!("deny contains \"x{n}\" if input.args.a * input.args.b > {n}\n\n");
    passes(&(0..60).map(bounds).collect::<String>());
    passes(&format!("x := 1{}", " * 2".repeat(90)));
    refused(&format!("x := input.args.a{}", " * 1e300".repeat(17)), "3:1:", "more than 16 multiplications");
    refused(&format!("x := input.args.a{}", format!(" * {}", "9".repeat(21)).repeat(17)), "3:1:", "more than 16");
    passes(&format!("x := input.args.a{}", " * 1e300".repeat(16)));
}

#[test]
fn with_is_for_tests() {
    refused("x if data.cotter.user.m.y with input.args as {}\n\ny := 1", "3:", "`with` is for tests");
}

#[test]
fn a_format_is_a_short_constant() {
    passes("x := sprintf(\"%d of %s\", [1, \"a\"])");
    refused("x := sprintf(input.args.f, [1])", "3:", "format");
    refused("x := sprintf(\"%²d\", [1])", "3:", "format");
    refused("x := sprintf(\"%4294967295d\", [1])", "3:", "format");
}

#[test]
fn what_the_engine_refuses_has_its_place() {
    refused("x := 1 +", "", "");
    refused("x { true }", "3:", "");
    refused("y if unbound == 1", "3:", "");
    refused("f(a) := 1\n\nf(a, b) := 2", "", "");
    assert!(!findings("").is_empty());
    assert!(!findings("nonsense").is_empty());
}

#[test]
fn a_variable_that_nothing_binds_is_refused() {
    for body in [
        "x := y",
        "x if y",
        "deny contains \"a\" if y",
        "deny contains y if 1 == 1",
        "x if not y",
        "x := [y]",
        "x if { 1 == 1; y }",
        "f(a) := y",
        "x := {z | 1 == 1}",
        "x if { every e in [1] { e == y } }",
        "default x := y",
    ] {
        assert!(!findings(&module(body)).is_empty(), "{body}");
    }
    passes(
        "x if { some i; input.principal.groups[i] == \"a\" }\n\nx if input.principal.groups[_] == \"b\"\n\ny := n if { n = 1 }",
    );
}

#[test]
fn a_finding_shows_the_line_and_what_to_write() {
    let error = check(&modules(&module("deny := true"))).unwrap_err().to_string();
    assert_eq!(
        error,
        "m.rego:3:1: `deny` has to be a set of reasons\n    deny := true\n    write `deny contains \"why\" if { … }`"
    );
}
