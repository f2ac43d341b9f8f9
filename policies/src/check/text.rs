//! The first stage: the text itself, before any parser. Linear in its length.

use std::collections::BTreeMap;

use super::{Finding, MAX_BYTES};
use crate::engine::Said;

/// Nesting of `[` and `{`. The parser takes twice as long for each level: 138 ms at 18, minutes at 40.
const MAX_NESTING: usize = 10;
/// Nesting of `(`, which the parser and the evaluator follow by recursion.
const MAX_PARENTHESES: usize = 24;
/// Operators in one expression at one level. `1 + 1 + 1 + …` becomes a tree as deep as it is long, and every later pass recurses.
const MAX_OPERATORS: usize = 100;
/// Digits in a row. The parser makes a number in full, in time quadratic in its digits.
const MAX_DIGITS: usize = 100;
/// Bytes that are looked at beyond the last one that counts, to show a line whole.
const BEYOND: usize = 160;
/// Digits of an exponent: `1e999999999` is eleven characters and four hundred megabytes.
const MAX_EXPONENT_DIGITS: usize = 3;

pub(super) fn utf8(file: &str, bytes: &[u8]) -> Result<String, Finding> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let good = String::from_utf8_lossy(good);
            let mut place = Place::default();
            good.chars().for_each(|c| place.step(c));
            let rest = bytes.get(error.valid_up_to()..).unwrap_or_default();
            let rest = String::from_utf8_lossy(rest.get(..rest.len().min(BEYOND)).unwrap_or_default());
            let text = good.into_owned() + &rest;
            Err(Finding::at(file, &text, place.next, "this byte is not UTF-8", "save the file as UTF-8"))
        }
    }
}

/// Everything wrong with a text, at most one finding of each kind.
pub(super) fn check(file: &str, text: &str) -> Vec<Finding> {
    if let Some(finding) = size(file, text) {
        return vec![finding];
    }
    let mut scan = Scan::new();
    for c in text.chars() {
        if let Some((message, help)) = scan.step(c) {
            return vec![Finding::at(file, text, scan.place.get(), message, help)];
        }
    }
    Vec::new()
}

pub(super) fn size(file: &str, text: &str) -> Option<Finding> {
    (text.len() > MAX_BYTES).then(|| {
        let message = format!("the module has {} bytes and at most {MAX_BYTES} are taken", text.len());
        beyond(file, text.as_bytes(), MAX_BYTES, message)
    })
}

/// A file that is too large, at the place where it is: the first byte that is not taken any more.
pub(super) fn beyond(file: &str, bytes: &[u8], limit: usize, message: String) -> Finding {
    let taken = bytes.get(..limit).unwrap_or(bytes);
    let line = taken.iter().filter(|byte| **byte == b'\n').count();
    let begins = taken.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let rest = bytes.get(begins..).unwrap_or_default();
    let rest = rest.get(..rest.len().min(limit - begins + BEYOND)).unwrap_or_default();
    let shown = String::from_utf8_lossy(rest.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
    let column = String::from_utf8_lossy(taken.get(begins..).unwrap_or_default()).chars().count() + 1;
    let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let help = "split it by concern, or bring tables of facts in as claims, labels or arguments";
    Finding { line: place(line + 1), column: place(column), ..Finding::at(file, &shown, (1, 1), message, help) }
}

/// What the parser or the analysis said, as a finding.
pub(super) fn engine_error(modules: &BTreeMap<String, String>, error: &str) -> Finding {
    let said = Said::of(error);
    let first = modules.keys().next().map_or("", String::as_str);
    let (file, line, column) = said.place.unwrap_or((first, 1, 1));
    let text = modules.get(file).map_or("", String::as_str);
    let help = "the language is Rego as of OPA 1.2: `if` before a body, `contains` for sets; newer syntax is not taken";
    Finding::at(file, text, (line, column), said.message, help)
}

#[derive(Debug, Clone, Copy)]
struct Place {
    line: u32,
    column: u32,
    next: (u32, u32),
}

impl Default for Place {
    fn default() -> Self {
        Self { line: 1, column: 1, next: (1, 1) }
    }
}

impl Place {
    fn step(&mut self, c: char) {
        (self.line, self.column) = self.next;
        self.next = if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
    }

    /// Where the last character stands.
    const fn get(&self) -> (u32, u32) {
        (self.line, self.column)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    Comment,
    Text,
    Escape,
    RawText,
}

/// One level of nesting.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Operators in the expression that is being read.
    operators: usize,
    /// `[` or `{`, not `(`.
    bracket: bool,
}

struct Scan {
    place: Place,
    state: State,
    levels: Vec<Level>,
    word: String,
    /// The last thing was an operator, so a new line goes on with the expression.
    open: bool,
    /// A new line came after something complete: what follows is a new expression, unless it is an operator.
    broken: bool,
}

/// What is wrong and what to write instead.
type Problem = (String, String);

impl Scan {
    fn new() -> Self {
        let levels = vec![Level::default()];
        Self { place: Place::default(), state: State::Code, levels, word: String::new(), open: false, broken: false }
    }

    fn step(&mut self, c: char) -> Option<Problem> {
        self.place.step(c);
        if let Some(problem) = character(c) {
            return Some(problem);
        }
        match (self.state, c) {
            (State::Code, _) => return self.code(c),
            (State::Comment | State::Text, '\n') => {
                self.state = State::Code;
                return self.code(c);
            }
            (State::Text, '"') | (State::RawText, '`') => self.state = State::Code,
            (State::Text, '\\') => self.state = State::Escape,
            (State::Escape, _) => self.state = State::Text,
            (State::Comment | State::Text | State::RawText, _) => {}
        }
        None
    }

    fn code(&mut self, c: char) -> Option<Problem> {
        if c.is_alphanumeric() || c == '_' {
            self.word.push(c);
            return None;
        }
        if matches!(c, '+' | '-') && is_open_exponent(&self.word) {
            return None;
        }
        match std::mem::take(&mut self.word).as_str() {
            "" => {}
            word if is_long_number(word) => {
                let message = format!(
                    "a number has more than {MAX_DIGITS} digits, or an exponent of more than {MAX_EXPONENT_DIGITS}"
                );
                return Some((message, "write a number that a decision needs".to_owned()));
            }
            "in" | "not" => {
                if let Some(problem) = self.operator() {
                    return Some(problem);
                }
            }
            _ => self.operand(),
        }
        match c {
            '#' => self.state = State::Comment,
            '"' => self.quoted(State::Text),
            '`' => self.quoted(State::RawText),
            '[' | '{' | '(' => return self.enter(c != '('),
            ']' | '}' | ')' => self.leave(),
            ',' | ';' => self.reset(),
            '\n' => self.broken = !self.open,
            '+' | '-' | '*' | '/' | '%' | '&' | '|' | '=' | '<' | '>' | '!' | ':' => return self.operator(),
            _ => {}
        }
        None
    }

    /// Something that is not an operator: after a complete line it begins a new expression.
    fn operand(&mut self) {
        if self.broken {
            self.reset();
        }
        self.open = false;
    }

    fn quoted(&mut self, state: State) {
        self.operand();
        self.state = state;
    }

    fn reset(&mut self) {
        self.broken = false;
        self.open = false;
        if let Some(level) = self.levels.last_mut() {
            level.operators = 0;
        }
    }

    fn operator(&mut self) -> Option<Problem> {
        self.open = true;
        self.broken = false;
        let level = self.levels.last_mut()?;
        level.operators += 1;
        (level.operators > MAX_OPERATORS).then(|| {
            let message = format!("an expression has more than {MAX_OPERATORS} operators");
            (message, "split it into rules, or compare against a set: `x in {…}`".to_owned())
        })
    }

    fn enter(&mut self, bracket: bool) -> Option<Problem> {
        self.operand();
        self.levels.push(Level { operators: 0, bracket });
        let brackets = self.levels.iter().filter(|level| level.bracket).count();
        // The first level is the module itself.
        let parentheses = self.levels.len().saturating_sub(brackets + 1);
        if brackets > MAX_NESTING {
            let message = format!("brackets are nested more than {MAX_NESTING} deep");
            return Some((message, "give the inner value a rule of its own and name it here".to_owned()));
        }
        (parentheses > MAX_PARENTHESES).then(|| {
            let message = format!("parentheses are nested more than {MAX_PARENTHESES} deep");
            (message, "give the inner expression a rule of its own".to_owned())
        })
    }

    fn leave(&mut self) {
        if self.levels.len() > 1 {
            self.levels.pop();
        }
        self.open = false;
        self.broken = false;
    }
}

/// `12e`: a sign that follows belongs to the number.
fn is_open_exponent(word: &str) -> bool {
    word.strip_suffix(['e', 'E']).is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_long_number(word: &str) -> bool {
    let (digits, exponent) = word.split_once(['e', 'E']).unwrap_or((word, ""));
    word.starts_with(|c: char| c.is_ascii_digit())
        && (digits.len() > MAX_DIGITS || exponent.len() > MAX_EXPONENT_DIGITS)
}

/// Characters that a reader does not see have no place in a policy, in comments either: they make it read as what it is not.
fn character(c: char) -> Option<Problem> {
    let hidden = cotter_core::scan::is_hidden(c) || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    hidden.then(|| {
        let message = format!("the invisible character U+{:04X}", c as u32);
        (message, format!("remove it; in a string write \\u{:04x}", c as u32))
    })
}
