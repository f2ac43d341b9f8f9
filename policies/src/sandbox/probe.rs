//! One body of a rule, evaluated up to each of its expressions: which is the first that does not hold?
//!
//! The beginnings of the body become rules of a module of their own, in the same package and with the same imports, so that every name
//! means in them what it means in the body.

use regorus::{
    Engine, Value,
    unstable::{Expr, Literal, LiteralStmt, Module, Ref, Span},
};

use crate::{
    engine,
    syntax::{self, names},
};

/// Expressions of a body that is taken apart. The text of the beginnings grows with the square of it.
const MAX_STATEMENTS: usize = 64;
/// Names of the rules that are added.
const HOLDS: &str = "cotter_probe_holds";
const DEFINED: &str = "cotter_probe_defined";

/// What becomes of a body.
#[derive(Debug)]
pub(super) enum Outcome {
    /// All of it holds.
    Holds,
    /// This part is the first that does not, and how it does not.
    Stops(Written, String),
    /// It does not hold, and which part of it does not cannot be told.
    Fails,
}

/// A body: its expressions, and the values that the rule has where they hold.
pub(super) struct Body<'a> {
    pub(super) module: &'a Module,
    pub(super) statements: Vec<&'a LiteralStmt>,
    pub(super) values: Vec<&'a Ref<Expr>>,
}

/// What stands in a text, and where.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) text: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A part of a body in the order of evaluation.
struct Part<'a> {
    written: Written,
    /// It as a statement.
    text: String,
    literal: Option<&'a Literal>,
}

impl Body<'_> {
    /// Evaluates it on an input, with an engine that has the rule set.
    pub(super) fn probe(&self, engine: &Engine, input: &Value) -> Outcome {
        let parts = self.parts();
        let whole = self.engine(engine, &parts, parts.len()..=parts.len());
        match whole.map(|mut whole| self.holds(&mut whole, parts.len(), input)) {
            Some(Ok(true)) => return Outcome::Holds,
            Some(_) if parts.len() <= MAX_STATEMENTS => {}
            _ => return Outcome::Fails,
        }
        let Some(mut engine) = self.engine(engine, &parts, 0..=parts.len()) else { return Outcome::Fails };
        for (at, part) in parts.iter().enumerate() {
            match self.holds(&mut engine, at + 1, input) {
                Ok(true) => {}
                Ok(false) => return Outcome::Stops(part.written.clone(), self.how(&mut engine, part, at, input)),
                Err(message) => return Outcome::Stops(part.written.clone(), format!("fails: {message}")),
            }
        }
        Outcome::Fails
    }

    /// The expressions, and then the values.
    fn parts(&self) -> Vec<Part<'_>> {
        let conditions = self.statements.iter().map(|statement| {
            let written = Written::of(&statement.span, statement.span.start);
            Part { text: written.text.clone(), written, literal: Some(&statement.literal) }
        });
        let values = self.values.iter().enumerate().map(|(at, value)| {
            let written = Written::of(value.span(), syntax::start(value));
            Part { text: format!("cotter_probe_value_{at} := [{}]", written.text), written, literal: None }
        });
        conditions.chain(values).collect()
    }

    /// An engine with a rule for each beginning of these lengths; nothing where one does not compile, because a later expression binds
    /// what it uses.
    fn engine(&self, engine: &Engine, parts: &[Part<'_>], lengths: std::ops::RangeInclusive<usize>) -> Option<Engine> {
        let mut text = format!("package {}\n", names(&self.module.package.refr).join("."));
        for import in &self.module.imports {
            text.push_str(import.span.text());
            text.push('\n');
        }
        for length in lengths {
            let body: String = parts.iter().take(length).map(|part| format!("\t{};\n", part.text)).collect();
            text.push_str(&format!("\n{HOLDS}_{length} if {{\n{body}\ttrue\n}}\n"));
            let plain = parts.get(length).filter(|part| is_plain(part.literal));
            if let Some(part) = plain {
                text.push_str(&format!("\n{DEFINED}_{length} if {{\n{body}\tcotter_probe_is := [{}]\n}}\n", part.text));
            }
        }
        let mut engine = engine.clone();
        engine.add_policy("cotter_probe.rego".to_owned(), text).ok()?;
        engine.set_input(Value::new_object());
        engine.eval_rule(engine::WARM_UP.to_owned()).ok()?;
        Some(engine)
    }

    fn holds(&self, engine: &mut Engine, length: usize, input: &Value) -> Result<bool, String> {
        self.ask(engine, HOLDS, length, input)
    }

    fn ask(&self, engine: &mut Engine, rule: &str, length: usize, input: &Value) -> Result<bool, String> {
        let rule = format!("data.{}.{rule}_{length}", names(&self.module.package.refr).join("."));
        let value = engine::eval(engine, &rule, input, engine::BUDGET);
        value.map(|value| value == Value::Bool(true)).map_err(|error| {
            // The place is that of the beginning, which is not a text of the person.
            error.message.rsplit_once("cotter_probe.rego:").map_or_else(
                || error.message.clone(),
                |(_, rest)| rest.splitn(3, ':').last().unwrap_or_default().trim().to_owned(),
            )
        })
    }

    fn how(&self, engine: &mut Engine, part: &Part<'_>, at: usize, input: &Value) -> String {
        let how = match part.literal {
            None => "the value is undefined",
            Some(Literal::NotExpr { .. }) => "what it negates is true",
            Some(Literal::SomeIn { .. }) => "it has no such member",
            Some(Literal::Every { .. }) => "it is not true of every member",
            Some(Literal::SomeVars { .. }) => "it is undefined",
            Some(Literal::Expr { .. }) => match self.ask(engine, DEFINED, at, input) {
                Ok(true) => "it is false",
                _ => "it is undefined",
            },
        };
        how.to_owned()
    }
}

impl Written {
    /// What stands from a byte to the end of a span. The engine leaves out the quotes of a text, also where an expression begins or ends
    /// with one.
    pub(super) fn of(span: &Span, start: u32) -> Self {
        let text = span.source.get_contents();
        let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'`'));
        let before = start.checked_sub(1).filter(|at| is_quote(text.as_bytes().get(index(*at))));
        let start = before.unwrap_or(start);
        let end = index(span.end) + usize::from(is_quote(text.as_bytes().get(index(span.end))));
        let (line, column) = syntax::place(text, start);
        Self { text: text.get(index(start)..end).unwrap_or_default().to_owned(), line, column }
    }
}

fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// Whether a statement is an expression with a value, and binds nothing.
fn is_plain(literal: Option<&Literal>) -> bool {
    matches!(literal, Some(Literal::Expr { expr, .. }) if !matches!(expr.as_ref(), Expr::AssignExpr { .. }))
}
