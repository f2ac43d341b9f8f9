//! What the functions of the language may make in one evaluation. The timer looks between steps, and one call of `replace` can make
//! more in one step than a machine has: so the size of a result is worked out before the call, and charged.
//!
//! The engine asks an extension before its own function of the same name, so each function that makes text or values is wrapped by
//! one that counts and then calls it (docs/decisions/0010-what-one-evaluation-may-make.md).

use std::{cell::Cell, sync::OnceLock};

use anyhow::anyhow;
use regorus::{
    Engine, Value,
    unstable::{BUILTINS, BuiltinFcn, Expr, Ref, Rule, RuleHead, Span},
};

use super::Said;
use crate::syntax;

/// Bytes that functions may make in one evaluation. Arguments are a mebibyte by default, so one of them can be taken apart or written
/// a few times; a decision that needs a kilobyte is a long one.
pub(crate) const MAX_MADE: usize = 16 << 20;
/// Bytes of a value in a list, a set or an object, with what carries it.
const NODE: usize = 48;
/// Digits in a row, or of an exponent, that a number in a text may have: a number is made in full, however short it is written.
const DIGITS: usize = 1000;
const EXPONENT_DIGITS: usize = 3;

/// Steps of a function that cost as much as a byte that it makes.
const STEPS: usize = 16;
/// Delimiters of one `glob.match`.
const MAX_DELIMITERS: usize = 16;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(0) };
    static FAILURE: Cell<Option<String>> = const { Cell::new(None) };
}

/// How large the result of a call is at most.
type Size = fn(&[Value]) -> usize;

/// Functions whose result, or whose work, grows with what they get, and the ones that read numbers.
const SIZES: &[(&str, Size)] = &[
    ("array.concat", shallow),
    ("array.reverse", shallow),
    ("array.slice", shallow),
    ("base64.decode", texts),
    ("base64.encode", |args| 2 * texts(args) + NODE),
    ("base64url.decode", texts),
    ("base64url.encode", |args| 2 * texts(args) + NODE),
    ("base64url.encode_no_pad", |args| 2 * texts(args) + NODE),
    ("concat", concat),
    ("format_int", |args| 8 * weight(args.first())),
    ("glob.match", delimited),
    ("glob.quote_meta", |args| 2 * texts(args)),
    ("indexof_n", |args| texts(args) * NODE + steps(args)),
    ("intersection", deep),
    ("json.filter", deep),
    ("json.is_valid", json),
    ("json.marshal", |args| 6 * deep(args)),
    ("json.remove", deep),
    ("json.unmarshal", json),
    ("lower", |args| 2 * texts(args)),
    ("object.filter", shallow),
    ("object.keys", shallow),
    ("object.remove", shallow),
    ("object.subset", deep),
    ("object.union", deep),
    ("object.union_n", deep),
    ("regex.find_n", |args| (text(args, 1).len() + 1) * NODE),
    ("regex.replace", regex_replace),
    ("regex.split", |args| (text(args, 1).len() + 1) * NODE),
    ("replace", replace),
    ("sort", deep),
    ("split", |args| (matches(args, 1) + 1) * NODE + texts(args)),
    ("sprintf", |args| 50 * text(args, 0).len() + 6 * weight(args.get(1))),
    ("strings.any_prefix_match", pairs),
    ("strings.any_suffix_match", pairs),
    ("strings.reverse", texts),
    ("substring", texts),
    ("time.format", |args| 64 * deep(args)),
    ("to_number", number),
    ("trim", |args| texts(args) + steps(args)),
    ("trim_left", |args| texts(args) + steps(args)),
    ("trim_prefix", texts),
    ("trim_right", |args| texts(args) + steps(args)),
    ("trim_space", texts),
    ("trim_suffix", texts),
    ("union", deep),
    ("units.parse", number),
    ("units.parse_bytes", number),
    ("upper", |args| 3 * texts(args)),
];

/// A new evaluation on this thread.
pub(crate) fn begin() {
    LEFT.set(MAX_MADE);
    FAILURE.set(None);
}

/// What the first function said that failed since then. None where none did.
pub(super) fn failure() -> Option<String> {
    FAILURE.take()
}

/// Wraps the functions of an engine that is new.
///
/// # Errors
/// The engine has them already.
pub(crate) fn bound(engine: &mut Engine) -> Result<(), String> {
    for call in calls() {
        let arguments = u8::try_from(call.parameters.len()).map_err(|error| error.to_string())?;
        let extension = move |given: Vec<Value>| call.run(&given);
        engine
            .add_extension(call.name.to_owned(), arguments, Box::new(extension))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The engine's function, its size, and an expression that it can be said to stand in.
struct Call {
    name: &'static str,
    size: Size,
    builtin: BuiltinFcn,
    span: Span,
    parameters: Vec<Ref<Expr>>,
}

fn calls() -> &'static [Call] {
    static CALLS: OnceLock<Vec<Call>> = OnceLock::new();
    CALLS.get_or_init(|| SIZES.iter().filter_map(|(name, size)| Call::new(name, *size)).collect())
}

impl Call {
    fn new(name: &'static str, size: Size) -> Option<Self> {
        let builtin = *BUILTINS.get(name)?;
        let arguments = vec!["1"; usize::from(builtin.1)].join(", ");
        let module = syntax::parse("call", &format!("package call\n\nx := {name}({arguments})\n")).ok()?;
        let Some(Rule::Spec { head: RuleHead::Compr { assign: Some(assign), .. }, .. }) =
            module.policy.first().map(AsRef::as_ref)
        else {
            return None;
        };
        let Expr::Call { span, params, .. } = assign.value.as_ref() else { return None };
        Some(Self { name, size, builtin, span: span.clone(), parameters: params.clone() })
    }

    fn run(&self, given: &[Value]) -> anyhow::Result<Value> {
        self.charged(given).inspect_err(|error| {
            let first = FAILURE.take().unwrap_or_else(|| error.to_string());
            FAILURE.set(Some(first));
        })
    }

    fn charged(&self, given: &[Value]) -> anyhow::Result<Value> {
        let left = LEFT.get().checked_sub((self.size)(given));
        let left = left.ok_or_else(|| {
            anyhow!(
                "{} makes more than the {} MiB that functions may make in one evaluation",
                self.name,
                MAX_MADE >> 20
            )
        })?;
        LEFT.set(left);
        (self.builtin.0)(&self.span, &self.parameters, given, true)
            .map_err(|error| anyhow!(Said::of(&error.to_string()).message.to_owned()))
    }
}

fn text(args: &[Value], at: usize) -> &str {
    args.get(at).and_then(|value| value.as_string().ok()).map_or("", AsRef::as_ref)
}

/// All texts among the arguments.
fn texts(args: &[Value]) -> usize {
    (0..args.len()).map(|at| text(args, at).len()).sum()
}

/// What stands directly in the arguments: a result that holds the same members.
fn shallow(args: &[Value]) -> usize {
    let size = |value: &Value| match value {
        Value::Array(items) => items.len(),
        Value::Set(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 1,
    };
    args.iter().map(size).sum::<usize>() * NODE
}

/// All that the arguments hold, as if nothing in them were shared.
fn deep(args: &[Value]) -> usize {
    args.iter().map(|value| weight(Some(value))).fold(0, usize::saturating_add)
}

/// A value written out. Stops where it is too much: what is shared can be exponentially more than what is there.
fn weight(value: Option<&Value>) -> usize {
    let mut open: Vec<&Value> = value.into_iter().collect();
    let mut weight = 0;
    while let Some(value) = open.pop() {
        weight += NODE + own(value);
        if weight > MAX_MADE {
            return weight;
        }
        match value {
            Value::Array(items) => open.extend(items.iter()),
            Value::Set(items) => open.extend(items.iter()),
            Value::Object(members) => open.extend(members.iter().flat_map(|(name, member)| [name, member])),
            _ => {}
        }
    }
    weight
}

/// A value by itself, with room for the members that are still to be looked at.
fn own(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len() * 8,
        Value::Set(items) => items.len() * 8,
        Value::Object(members) => members.len() * 16,
        Value::Number(_) if value.as_i64().is_ok() || value.as_u64().is_ok() => 20,
        Value::Number(_) => value.to_string().len(),
        _ => 5,
    }
}

/// How often the text at `at` stands in the one before it; an empty one stands between all characters.
fn matches(args: &[Value], at: usize) -> usize {
    let (within, wanted) = (text(args, at.saturating_sub(1)), text(args, at));
    if wanted.is_empty() { within.len() + 1 } else { within.matches(wanted).count() }
}

/// What a function does that looks at each character of one text for each of another: charged like bytes, since no timer looks at it.
fn steps(args: &[Value]) -> usize {
    text(args, 0).len().saturating_mul(text(args, 1).len()) / STEPS
}

/// The same of each text with each.
fn pairs(args: &[Value]) -> usize {
    let count = |at: usize| match args.get(at) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Set(items)) => items.len(),
        _ => 1,
    };
    deep(args).saturating_add(count(0).saturating_mul(count(1)).saturating_mul(NODE) / STEPS)
}

/// The engine writes a slash before and behind every delimiter that stands in a text, once for every time that it is named.
fn delimited(args: &[Value]) -> usize {
    let named = match args.get(1) {
        Some(Value::Array(items)) => items.len(),
        _ => 1,
    };
    if named > MAX_DELIMITERS {
        return MAX_MADE + 1;
    }
    (2 * named + 3).saturating_mul(text(args, 0).len() + text(args, 2).len())
}

fn concat(args: &[Value]) -> usize {
    let count = match args.get(1) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Set(items)) => items.len(),
        _ => 0,
    };
    weight(args.get(1)).saturating_add(count.saturating_mul(text(args, 0).len()))
}

fn replace(args: &[Value]) -> usize {
    text(args, 0).len().saturating_add(matches(args, 1).saturating_mul(text(args, 2).len()))
}

/// A group is a part of its match, and matches do not overlap: each mention of a group adds the text once at most.
fn regex_replace(args: &[Value]) -> usize {
    let (within, with) = (text(args, 0).len(), text(args, 2));
    let mentions = with.matches('$').count() + 1;
    (within + 1).saturating_mul(with.len()).saturating_add(mentions.saturating_mul(within))
}

fn number(args: &[Value]) -> usize {
    texts(args).saturating_add(numbers(text(args, 0)))
}

fn json(args: &[Value]) -> usize {
    let text = text(args, 0);
    text.len().saturating_mul(NODE).saturating_add(numbers(text))
}

/// More than there is where a number of the text has too many digits or too large an exponent. Quoted text is passed over.
fn numbers(text: &str) -> usize {
    let (mut quoted, mut escaped, mut digits, mut exponent) = (false, false, 0, false);
    for byte in text.bytes() {
        match (quoted, byte) {
            (true, b'"') if !escaped => quoted = false,
            (true, _) => escaped = byte == b'\\' && !escaped,
            (false, b'"') => (quoted, escaped, digits, exponent) = (true, false, 0, false),
            (false, b'0'..=b'9') => digits += 1,
            (false, b'e' | b'E') if digits > 0 => (digits, exponent) = (0, true),
            (false, b'+' | b'-' | b'_') if exponent => {}
            (false, b'.' | b'_') => {}
            (false, _) => (digits, exponent) = (0, false),
        }
        if digits > if exponent { EXPONENT_DIGITS } else { DIGITS } {
            return MAX_MADE + 1;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, args: &str) -> Result<String, String> {
        begin();
        let call = calls().iter().find(|call| call.name == name).unwrap();
        let given: Vec<Value> =
            serde_json::from_str::<Vec<serde_json::Value>>(args).unwrap().into_iter().map(Value::from).collect();
        call.run(&given).map(|value| value.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_function_that_is_wrapped_exists_and_answers_as_before() {
        assert_eq!(calls().len(), SIZES.len());
        assert_eq!(made("concat", r#"[", ", ["a", "b"]]"#), Ok(r#""a, b""#.to_owned()));
        assert_eq!(made("replace", r#"["aba", "a", "xx"]"#), Ok(r#""xxbxx""#.to_owned()));
        assert_eq!(made("to_number", r#"["-12.5"]"#), Ok("-12.5".to_owned()));
        assert!(made("to_number", r#"["1e300"]"#).is_ok());
        assert_eq!(made("json.unmarshal", r#"["{\"a\": \"7e4821\"}"]"#), Ok(r#"{"a":"7e4821"}"#.to_owned()));
        assert!(made("upper", "[1]").unwrap_err().contains("string"));
        assert_eq!(made("trim", r#"["  a ", " "]"#), Ok(r#""a""#.to_owned()));
        assert_eq!(made("glob.match", r#"["*.example", ["."], "api.example"]"#), Ok("true".to_owned()));
        assert_eq!(made("glob.match", r#"["api:*", [], "api:x"]"#), Ok("true".to_owned()));
        assert_eq!(made("strings.any_prefix_match", r#"["abc", ["x", "ab"]]"#), Ok("true".to_owned()));
    }

    #[test]
    fn a_result_is_never_larger_than_what_was_charged() {
        let long = "ŉΐ\u{130}a\\\"\u{1}".repeat(200);
        let given = [
            ("concat", serde_json::json!([long, [long, long, long]])),
            ("replace", serde_json::json!([long, "a", long])),
            ("replace", serde_json::json!([long, "", "xyz"])),
            ("regex.replace", serde_json::json!([long, "(a)", "$1$1$0--"])),
            ("sprintf", serde_json::json!(["%99s|%v|%q", [long, [long], long]])),
            ("json.marshal", serde_json::json!([[long, {"a": long}]])),
            ("upper", serde_json::json!([long])),
            ("lower", serde_json::json!([long])),
            ("base64.encode", serde_json::json!([long])),
            ("glob.quote_meta", serde_json::json!([long])),
            ("format_int", serde_json::json!([9_007_199_254_740_991_u64, 2])),
        ];
        for (name, args) in given {
            let (size, call) = (SIZES.iter().find(|(known, _)| *known == name).unwrap().1, name);
            let values: Vec<Value> = args.as_array().unwrap().iter().cloned().map(Value::from).collect();
            begin();
            let result = calls().iter().find(|known| known.name == call).unwrap().run(&values).unwrap();
            let result = result.as_string().unwrap().len();
            assert!(result <= size(&values), "{name}: {result} of {}", size(&values));
        }
    }

    #[test]
    fn what_would_be_too_much_is_refused_before_it_is_made() {
        let long = "a".repeat(64 << 10);
        for (name, args) in [
            ("replace", serde_json::json!([long, "a", long])),
            ("concat", serde_json::json!([long, vec!["a"; 1000]])),
            ("split", serde_json::json!(["a".repeat(1 << 20), ""])),
            ("to_number", serde_json::json!(["1e999999999"])),
            ("to_number", serde_json::json!(["1".repeat(1001)])),
            ("json.unmarshal", serde_json::json!(["[1E+999999999]"])),
            ("units.parse_bytes", serde_json::json!(["1e99999Gi"])),
            ("trim", serde_json::json!([long, long])),
            ("trim_left", serde_json::json!([long, long])),
            ("trim_right", serde_json::json!([long, long])),
            ("indexof_n", serde_json::json!([long, "a".repeat(8 << 10)])),
            ("strings.any_prefix_match", serde_json::json!([vec!["a"; 4000], vec!["b"; 4000]])),
            ("strings.any_suffix_match", serde_json::json!([vec!["a"; 4000], vec!["b"; 4000]])),
            ("glob.match", serde_json::json!([long, vec!["a"; 17], long])),
            ("glob.match", serde_json::json!(["x", vec!["a"; 16], "a".repeat(1 << 20)])),
        ] {
            assert!(made(name, &args.to_string()).unwrap_err().contains("16 MiB"), "{name}");
        }
    }

    #[test]
    fn what_is_shared_is_counted_as_often_as_it_is_seen() {
        let mut value = Value::from("x");
        for _ in 0..60 {
            value = Value::from(vec![value.clone(), value]);
        }
        assert!(weight(Some(&value)) > MAX_MADE);
    }
}
