//! Rule sets that read something of their input, and hide it behind layers: helper rules, functions, comprehensions, packages.

use std::collections::BTreeMap;

use crate::dice::Dice;

/// Modules that rules are spread over.
const MODULES: usize = 3;

/// What a rule set reads in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secret {
    /// The call, the clock, or what happened to the call before; by name, or with the whole input.
    Fresh,
    /// Only what is the same whenever the same principal asks about the same tool.
    Stable,
}

/// Members that are not the same from call to call.
const MEMBERS: &[&str] = &["args", "args", "now", "now", "argsDigest", "approval", "ledger"];
/// The input as a whole, in every way that the language has. `$` becomes a number, `#` one of [`MEMBERS`].
const WHOLE: &[&str] = &[
    "r$ := v$.# if { v$ := input }",
    "r$ := w$ if { [v$, 1] = [input, 1]; w$ := v$.# }",
    "f$(v$) := v$.#\n\nr$ := f$(input)",
    "f$(v$, w$) := v$[w$]\n\nr$ := f$(input, \"#\")",
    "r$ := object.get(input, \"#\", null)",
    "r$ := object.get(input, [\"#\"], null)",
    "r$ := json.filter(input, [\"#\"])",
    "r$ := json.remove(input, [\"tool\"])",
    "r$ := object.filter(input, [\"#\"])",
    "r$ := object.remove(input, [\"tool\", \"principal\"])",
    "r$ := object.union({\"x\": 1}, input)",
    "r$ := [v$ | some v$ in input]",
    "r$ := {w$: v$ | some w$, v$ in input; w$ != \"tool\"}",
    "r$ := [v$ | v$ := input[_]]",
    "r$ := [v$ | some w$ in [\"#\", \"nothing\"]; v$ := input[w$]]",
    "r$ := [v$ | some w$; v$ := input[w$]; w$ == \"#\"]",
    "r$ := input[concat(\"\", [\"#\", \"\"])]",
    "r$ := input[lower(\"NOW\")]",
    "r$ := sprintf(\"%v\", [input])",
    "r$ := json.marshal(input)",
    "r$ := [input]",
    "r$ := {\"all\": input}",
    "r$ := v$ if { some v$ in {input} }",
    "r$ := w$.# if { some w$ in [input] }",
    "r$ := input if input.tool.name",
    "p$[w$] := v$ if some w$, v$ in input\n\nr$ := p$.#",
    "s$ contains v$ if some v$ in input\n\nr$ := s$",
    "import input as i$\n\nr$ := i$.#",
    "r$ := v$ if { v$ := data.cotter.scopes.stated with input.tool as input.# }",
];
/// The same of one member by its name.
const NAMED: &[&str] = &[
    "r$ := input.#",
    "r$ := input[\"#\"]",
    "r$ := input[`#`]",
    "r$ := input.# if true",
    "r$ := input.#.amount",
    "r$ := input[\"#\"][\"amount\"]",
    "r$ := [v$ | some v$ in input.#]",
    "r$ := [w$, v$] if some w$, v$ in input.#",
    "r$ := object.get(input.#, \"amount\", null)",
    "import input.# as given$\n\nr$ := given$",
    "import input.#\n\nr$ := #",
    "r$ := 1 if { every v$ in input.# { v$ != 11 } }",
    "r$ := 1 if not input.# == {\"amount\": 11}",
    "r$ := type_name(input.#)",
];
/// What a layer can hold of the input without a rule between.
const RAW: &[&str] = &["input", "input.args", "input.now", "input.argsDigest", "input[\"args\"]"];
/// What a decision on the same question always finds the same.
const STABLE: &[&str] = &[
    "r$ := input.tool.name",
    "r$ := input[\"tool\"][\"effect\"]",
    "r$ := input.tool",
    "r$ := input.tool.annotations",
    "r$ := input[\"tool\"][\"annotations\"]",
    "r$ := object.get(input.tool, [\"annotations\", \"readOnlyHint\"], \"unknown\")",
    "r$ := v$.annotations if { v$ := input.tool }",
    "r$ := [v$ | some v$ in input.tool]",
    "r$ := input.tool if data.cotter.effects.known(input.tool)",
    "import input.tool.annotations as said$\n\nr$ := said$.destructiveHint",
    "r$ := input.tool.pin.state",
    "r$ := object.get(input.tool.pin, \"class\", \"now\")",
    "r$ := input.principal.subject",
    "r$ := input.principal",
    "r$ := [v$ | some v$ in input.principal.groups]",
    "r$ := input.principal.delegated",
    "r$ := input.grants",
    "r$ := object.keys(input.grants)",
    "r$ := input.era",
    "r$ := input.server.labels",
    "r$ := object.get(input.server.labels, \"args\", \"input.args\")",
    "r$ := input.operation",
    "r$ := input.operation.kind",
    "import input.tool as given$\n\nr$ := given$.name",
    "import input.principal\n\nr$ := principal.subject",
    "now := input.tool.name\n\nr$ := now",
    "args := {\"now\": input.era}\n\nr$ := args.now",
    "ledger(approval) := approval\n\nr$ := ledger(input.principal.subject)",
    "r$ := v$.args if { v$ := {\"args\": input.tool.scope} }",
    "r$ := {\"now\": w$} if { some w$ in [input.tool.name] }",
];
/// One layer around a value `@`: what `r$` is depends on it.
const LAYERS: &[&str] = &[
    "r$ := @",
    "r$ := v$ if { v$ := @ }",
    "r$ := v$[0] if { v$ := [w$ | w$ := @] }",
    "r$ := v$.k if { v$ := {\"k\": @} }",
    "f$(v$) := v$\n\nr$ := f$(@)",
    "f$(v$) := w$ if { w$ := [v$] }\n\nr$ := f$(@)",
    "f$(_) := @\n\nr$ := f$(1)",
    "f$(1) := 2\n\nf$(2) := @\n\nr$ := f$(f$(1))",
    "r$ := 0 if { input.tool.name == \"never\" } else := @",
    "r$ := 0 if { input.tool.name == \"never\" } else := v$ if { v$ := @ } else := 1",
    "default r$ := 0\n\nr$ := @ if true",
    "r$ := v$ if { some v$ in [@] }",
    "r$ := v$ if { some _, v$ in {\"x\": @} }",
    "r$ := v$ if { [_, v$] := [1, @] }",
    "r$ := v$ if { [v$, 1] = [@, 1] }",
    "r$ := v$ if { {\"a\": v$} := {\"a\": @} }",
    "r$ := object.get({\"a\": @}, \"a\", null)",
    "r$ := object.union({\"a\": @}, {\"b\": 1})",
    "s$ contains @\n\nr$ := v$ if { some v$ in s$ }",
    "p$[\"k\"] := @\n\nr$ := p$.k",
    "p$[v$] := 1 if v$ := @\n\nr$ := [w$ | some w$, _ in p$]",
    "q$.deep.er := @\n\nr$ := q$.deep.er",
    "r$ := json.marshal(@)",
    "r$ := sprintf(\"%v\", [@])",
    "r$ := {w$: v$ | some w$, v$ in {\"x\": @}}",
    "r$ := {\"held\": @} if { every v$ in [1] { v$ == 1 } }",
    "r$ := array.concat([@], [])",
    "r$ := v$ if { v$ := @; not v$ == \"no such thing\" }",
    "r$ := [@, @]",
    "r$ := [v$ | v$ := [w$ | w$ := @][_]]",
];
/// What comes of the value in the end.
const ENDS: &[&str] = &[
    "deny contains @ if true",
    "deny contains {\"why\": @} if input.tool.name",
    "deny contains sprintf(\"%v\", [@]) if true",
    "deny contains \"x\" if { v$ := @; json.marshal(v$) != \"7\"; contains(json.marshal(v$), \"11\") }",
    "deny contains v$ if v$ := @",
    "deny contains [v$ | v$ := @]",
    "deny contains \"y\" if { not contains(json.marshal(@), \"11\") }",
    "require_approval contains @ if contains(json.marshal(@), \"11\")",
    "deny contains @ if true\n\nrequire_approval contains \"always\" if true",
];

/// A rule set in the making.
struct Hiding<'d> {
    dice: &'d mut Dice,
    modules: BTreeMap<String, String>,
    numbers: usize,
}

impl Hiding<'_> {
    /// Puts a piece of text into a module, as rules of their own, and gives what its `r$` is called elsewhere.
    fn add(&mut self, piece: &str, value: &str) -> String {
        self.numbers += 1;
        let number = self.numbers.to_string();
        let package = match self.dice.roll(6) {
            0 => format!("cotter.user.deep.d{number}"),
            _ => format!("cotter.user.m{}", self.dice.roll(MODULES)),
        };
        // An import stands before the rules, so that a piece with one has a module for itself; a package may have several.
        let alone = piece.starts_with("import") || piece.starts_with("now") || piece.starts_with("args");
        let package = if alone { format!("cotter.user.alone.a{number}") } else { package };
        let own = format!("data.{package}.");
        let value = if self.dice.roll(2) == 0 { value.replace(&own, "") } else { value.to_owned() };
        let member = self.dice.pick(MEMBERS);
        let text = piece.replace('$', &number).replace('#', member).replace('@', &value);
        let module = self.modules.entry(package.clone()).or_insert_with(|| format!("package {package}\n"));
        module.push_str(&format!("\n{text}\n"));
        match self.dice.roll(8) {
            0 if package.contains(".deep.") => {
                format!("[every_of_{number} | some every_of_{number} in data.{package}]")
            }
            _ => format!("{own}r{number}"),
        }
    }
}

/// A rule set that reads its secret through up to six layers.
pub(crate) fn hidden(dice: &mut Dice, secret: Secret) -> BTreeMap<String, String> {
    let mut hiding = Hiding { dice, modules: BTreeMap::new(), numbers: 0 };
    let forms = match secret {
        Secret::Stable => STABLE,
        Secret::Fresh if hiding.dice.roll(2) == 0 => WHOLE,
        Secret::Fresh => NAMED,
    };
    // Without a rule of its own, a layer reads the input itself: in a body, in a head, in an argument, wherever it puts its value.
    let mut value = match secret {
        Secret::Fresh if hiding.dice.roll(3) == 0 => hiding.dice.pick(RAW).to_owned(),
        _ => {
            let form = hiding.dice.pick(forms);
            hiding.add(form, "")
        }
    };
    for _ in 0..hiding.dice.roll(7) {
        let layer = hiding.dice.pick(LAYERS);
        value = hiding.add(layer, &value);
    }
    let end = hiding.dice.pick(ENDS);
    hiding.add(end, &value);
    hiding.modules
}
