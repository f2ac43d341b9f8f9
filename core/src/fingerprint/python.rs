//! Python's `json.dumps(…, sort_keys=True)`, which is what `name-description-schema/v0` hashes.
//!
//! Names are sorted by code point, separators are `", "` and `": "`, everything outside printable ASCII is escaped,
//! and a double is written as Python's `repr` does.

use std::fmt::Write as _;

use serde_json::{Number, Value, json};

use super::HashError;

/// The document that the scheme hashes: `name`, `description`, and the input schema under `schema`.
pub(super) fn document(tool: &Value) -> Result<Value, HashError> {
    let text = |member| tool.get(member).filter(|value| value.is_string()).ok_or(HashError::Member(member));
    let schema = tool.get("inputSchema").filter(|value| value.is_object()).ok_or(HashError::Member("inputSchema"))?;
    Ok(json!({"name": text("name")?, "description": text("description")?, "schema": schema}))
}

/// One line of JSON.
pub(super) fn dumps(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&repr(number)),
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            // Sorted already, unless a crate of the build turns on `serde_json/preserve_order` for all of them.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                quote(name, out);
                out.push_str(": ");
                write(member, out);
            }
            out.push('}');
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(char),
            other => other.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }),
        }
    }
    out.push('"');
}

/// A whole number as it is; a double with the fewest digits that read back the same, and an exponent from 1e16 on and
/// below 1e-4.
fn repr(number: &Number) -> String {
    let double = match number.as_f64() {
        Some(double) if number.is_f64() => double,
        _ => return number.to_string(),
    };
    let scientific = format!("{double:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{double:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        let said = |text: &str| dumps(&serde_json::from_str(text).unwrap());
        // Each pair is what `python3 -c 'import json;print(json.dumps(json.loads(TEXT)))'` printed.
        for (text, expected) in [
            ("1", "1"),
            ("1.0", "1.0"),
            ("-2.50", "-2.5"),
            ("0.1", "0.1"),
            ("1e15", "1000000000000000.0"),
            ("1e-4", "0.0001"),
            ("1e-5", "1e-05"),
            ("123e-7", "1.23e-05"),
            ("1e300", "1e+300"),
            ("12345678901234567.0", "1.2345678901234568e+16"),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
    }

    #[test]
    fn text_is_escaped_as_python_escapes_it() {
        let value = json!({"b\u{7f}": "é\u{1f600}\u{1}\t/\"", "a": [null, true]});
        assert_eq!(dumps(&value), r#"{"a": [null, true], "b\u007f": "\u00e9\ud83d\ude00\u0001\t/\""}"#);
    }
}
