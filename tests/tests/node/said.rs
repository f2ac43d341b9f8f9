//! What a client was told, and what was measured on the way.

use std::{io::Write as _, time::Instant};

use serde_json::Value;

/// How a call to a tool that does not exist is answered.
pub(crate) const UNKNOWN: i64 = -32602;

/// The text of a tool's result.
pub(crate) fn text(answer: &Value) -> &str {
    answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_else(|| panic!("no text: {answer}"))
}

/// The code of an error.
pub(crate) fn code(answer: &Value) -> i64 {
    answer.pointer("/error/code").and_then(Value::as_i64).unwrap_or_else(|| panic!("no error: {answer}"))
}

/// Reports a figure. Nothing is asserted of it: a busy machine is no fault.
pub(crate) fn figure(what: &str, since: Instant) {
    // Not by a macro: what those print of a test that passes is not shown.
    let line = format!("figure: {what}: {} ms\n", since.elapsed().as_millis());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
