//! Modules written by chance from a grammar: every form of rule, with names that the library uses too.

use std::collections::BTreeMap;

use crate::dice::Dice;

/// Names that mean something in the library or in the file that joins modules to it.
const TAKEN: &[&str] = &[
    "allow",
    "decision",
    "decisions",
    "verdict",
    "denied",
    "approvals",
    "proof",
    "refusals",
    "permitting",
    "admitted",
    "held",
    "stated",
    "delegated",
    "refused",
    "wanted",
    "challenge",
    "approval",
    "missing",
    "absent",
    "known",
    "cotter",
    "authz",
    "scopes",
    "tenants",
    "modules",
    "reasons",
    "obligations",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Value,
    Set,
    Object,
    Function,
}

/// One module in the making. Rules use those above them; variables live in one body.
struct Writer<'d> {
    dice: &'d mut Dice,
    rules: Vec<(String, Form)>,
    variables: Vec<String>,
    numbers: usize,
}

impl Writer<'_> {
    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    fn rule(&mut self, form: Form) -> Option<String> {
        let known: Vec<&String> = self.rules.iter().filter(|rule| rule.1 == form).map(|rule| &rule.0).collect();
        (!known.is_empty()).then(|| known[self.dice.roll(known.len())].clone())
    }

    fn text(&mut self) -> &'static str {
        self.dice.pick(&[
            "\"Read\"",
            "\"Write\"",
            "\"External\"",
            "\"mia\"",
            "\"tenant-7\"",
            "\"case:write\"",
            "\"list\"",
            "\"Matched\"",
        ])
    }

    fn scalar(&mut self, depth: usize) -> String {
        let leaf = depth == 0;
        match self.dice.roll(if leaf { 9 } else { 15 }) {
            0 => self.text().to_owned(),
            1 => self.dice.pick(&["0", "1", "-2.5", "11", "true", "false", "null", "`raw`"]).to_owned(),
            2 | 3 => self
                .dice
                .pick(&[
                    "input.tool.name",
                    "input.tool.effect",
                    "input.tool.scope",
                    "input.tool[\"approval\"]",
                    "input.tool.pin.state",
                ])
                .to_owned(),
            4 => self
                .dice
                .pick(&[
                    "input.principal.subject",
                    "input.principal.tenant",
                    "input.principal.delegated",
                    "input.era",
                    "input.now",
                ])
                .to_owned(),
            5 => self
                .dice
                .pick(&[
                    "input.operation.kind",
                    "input.args.amount",
                    "input.server.labels.team",
                    "input.operation.method",
                ])
                .to_owned(),
            6 | 7 if !self.variables.is_empty() => self.variables[self.dice.roll(self.variables.len())].clone(),
            8 => self.rule(Form::Value).unwrap_or_else(|| "\"none\"".to_owned()),
            9 => format!("count({})", self.many(depth - 1)),
            10 => format!("sprintf(\"%v of %v\", [{}, {}])", self.scalar(depth - 1), self.scalar(0)),
            11 => format!("object.get({}, {}, {})", self.object(depth - 1), self.scalar(0), self.scalar(0)),
            12 => match self.rule(Form::Function) {
                Some(function) => format!("{function}({})", self.scalar(depth - 1)),
                None => format!("json.marshal({})", self.many(depth - 1)),
            },
            13 => format!("{{\"code\": {}, \"allow\": true}}", self.scalar(depth - 1)),
            _ => self.text().to_owned(),
        }
    }

    /// An object.
    fn object(&mut self, depth: usize) -> String {
        match self.dice.roll(6) {
            0 => "input.grants".to_owned(),
            1 => "input.server.tenants".to_owned(),
            2 => self.rule(Form::Object).unwrap_or_else(|| "input.tool".to_owned()),
            3 if depth > 0 => {
                let (key, value) = (self.number(), self.number());
                let from = self.object(depth - 1);
                format!("{{k{key}: v{value} | some k{key}, v{value} in {from}}}")
            }
            4 => format!("{{\"allow\": {}, \"x\": {}}}", self.scalar(0), self.scalar(0)),
            _ => "input.principal".to_owned(),
        }
    }

    /// A set or an array.
    fn many(&mut self, depth: usize) -> String {
        match self.dice.roll(8) {
            0 => "input.principal.scopes".to_owned(),
            1 => "input.principal.groups".to_owned(),
            2 => format!("{{{}, {}}}", self.scalar(0), self.scalar(0)),
            3 => format!("[{}, {}]", self.scalar(0), self.scalar(0)),
            4 => self.rule(Form::Set).unwrap_or_else(|| "data.cotter.delegation.permitting(input.tool)".to_owned()),
            5 => format!("object.keys({})", self.object(0)),
            6 if depth > 0 => self.comprehension(depth - 1, "{", "}"),
            _ if depth > 0 => self.comprehension(depth - 1, "[", "]"),
            _ => "{\"Write\", \"External\"}".to_owned(),
        }
    }

    fn comprehension(&mut self, depth: usize, open: &str, close: &str) -> String {
        let variable = format!("c{}", self.number());
        let from = self.many(depth);
        self.variables.push(variable.clone());
        let condition = self.condition(depth);
        self.variables.retain(|known| *known != variable);
        format!("{open}{variable} | some {variable} in {from}; {condition}{close}")
    }

    /// A condition that brings no variable into being, so that it can stand anywhere.
    fn condition(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        match self.dice.roll(if depth == 0 { 7 } else { 11 }) {
            0 | 1 => format!("{} {} {}", self.scalar(below), self.dice.pick(&["==", "!=", "<", ">="]), self.scalar(0)),
            2 => format!(
                "input.tool.effect == {}",
                self.dice.pick(&["\"Read\"", "\"Write\"", "\"External\"", "\"Destructive\""])
            ),
            3 => format!("{} in {}", self.scalar(0), self.many(below)),
            4 => self
                .dice
                .pick(&[
                    "data.cotter.scopes.held(input.tool)",
                    "data.cotter.effects.consequential(input.tool)",
                    "data.cotter.tenants.admitted",
                    "data.cotter.delegation.required",
                    "data.cotter.pins.matched(input.tool)",
                ])
                .to_owned(),
            5 => format!("is_string({})", self.scalar(below)),
            6 => self
                .dice
                .pick(&[
                    "input.args",
                    "input.principal.tenant",
                    "input.operation.kind == \"call\"",
                    "input.era == \"legacy\"",
                ])
                .to_owned(),
            7 => format!("not {}", self.negated(below)),
            8 => {
                let variable = format!("e{}", self.number());
                let from = self.many(below);
                self.variables.push(variable.clone());
                let condition = self.condition(0);
                self.variables.retain(|known| *known != variable);
                format!("every {variable} in {from} {{ {variable} != null; {condition} }}")
            }
            9 => format!("startswith({}, \"c\")", self.scalar(0)),
            _ => self.rule(Form::Value).unwrap_or_else(|| "true".to_owned()),
        }
    }

    fn negated(&mut self, depth: usize) -> String {
        match self.dice.roll(3) {
            0 => format!("{} in {}", self.scalar(0), self.many(depth)),
            1 => self.rule(Form::Value).unwrap_or_else(|| "input.principal.tenant".to_owned()),
            _ => format!("{} == {}", self.scalar(depth), self.scalar(0)),
        }
    }

    /// Up to three conditions, some of which bring variables into being for those after them.
    fn body(&mut self) -> String {
        let mut parts = Vec::new();
        for _ in 0..=self.dice.roll(3) {
            parts.push(match self.dice.roll(5) {
                0 => {
                    let value = self.scalar(2);
                    let variable = format!("x{}", self.number());
                    self.variables.push(variable.clone());
                    format!("{variable} := {value}")
                }
                1 => {
                    let from = self.many(1);
                    let variable = format!("y{}", self.number());
                    self.variables.push(variable.clone());
                    format!("some {variable} in {from}")
                }
                _ => self.condition(2),
            });
        }
        parts.join("; ")
    }

    /// One rule with everything that belongs to it.
    fn write(&mut self, name: &str, form: Form) -> String {
        self.variables.clear();
        let text = match form {
            Form::Set => {
                let body = self.body();
                format!("{name} contains {} if {{ {body} }}", self.scalar(1))
            }
            Form::Object => {
                let body = self.body();
                format!("{name}[{}] := {} if {{ {body} }}", self.text(), self.scalar(1))
            }
            Form::Function => {
                let variable = format!("a{}", self.number());
                self.variables.push(variable.clone());
                let body = self.body();
                let default =
                    if self.dice.roll(3) == 0 { format!("default {name}(_) := 0\n\n") } else { String::new() };
                format!("{default}{name}({variable}) := {} if {{ {variable} != null; {body} }}", self.scalar(1))
            }
            Form::Value => self.value(name),
        };
        if !["deny", "require_approval"].contains(&name) {
            self.rules.push((name.to_owned(), form));
        }
        text
    }

    fn value(&mut self, name: &str) -> String {
        let default = if self.dice.roll(3) == 0 { format!("default {name} := false\n\n") } else { String::new() };
        let constant =
            self.dice.pick(&["true", "{\"allow\": true, \"reasons\": [], \"delegations\": [\"g0\"]}", "set()", "1"]);
        match self.dice.roll(4) {
            0 => format!("{name} := {constant}"),
            1 => format!("{default}{name} if {{ {} }}", self.body()),
            _ => {
                let body = self.body();
                let first = format!("{name} := {} if {{ {body} }}", self.scalar(1));
                self.variables.clear();
                let body = self.body();
                let second = format!("else := {} if {{ {body} }}", self.scalar(1));
                self.variables.clear();
                let last = if self.dice.roll(2) == 0 { format!(" else := {}", self.scalar(0)) } else { String::new() };
                format!("{default}{first} {second}{last}")
            }
        }
    }
}

/// What the check is there to refuse, now and then.
const WRONG: &[&str] = &[
    "deny := true",
    "deny[x] := 1 if x := 2",
    "wrong if data.cotter.authz.decision.allow",
    "wrong if data.cotter.scopes.stated with input as {}",
    "wrong if input.nothing",
    "wrong if wrong",
    "wrong := time.now_ns()",
];

/// Some modules by name, each a package of its own.
pub(crate) fn any_modules(dice: &mut Dice) -> BTreeMap<String, String> {
    let mut modules = BTreeMap::new();
    for number in 0..=dice.roll(3) {
        let mut writer = Writer { dice, rules: Vec::new(), variables: Vec::new(), numbers: 0 };
        let mut text = format!("package cotter.user.m{number}\n");
        let mut names: Vec<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
        for _ in 0..=writer.dice.roll(4) {
            let name = names.swap_remove(writer.dice.roll(names.len()));
            let form = writer.dice.pick(&[Form::Value, Form::Value, Form::Set, Form::Object, Form::Function]);
            text.push_str(&format!("\n{}\n", writer.write(&name, form)));
        }
        for _ in 0..=writer.dice.roll(2) {
            let set = writer.dice.pick(&["deny", "deny", "require_approval"]);
            text.push_str(&format!("\n{}\n", writer.write(set, Form::Set)));
        }
        if writer.dice.roll(16) == 0 {
            text.push_str(&format!("\n{}\n", writer.dice.pick(WRONG)));
        }
        modules.insert(format!("m{number}"), text);
    }
    modules
}
