//! Cases of strict JSON.

use cotter_core::strict::{Limits, StrictError, check, parse};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The text, or its bytes.
    text: Option<String>,
    hex: Option<String>,
    depth: Option<u8>,
    /// `ok`, or the kind of the fault.
    expect: String,
    /// What the message has to name.
    says: Option<String>,
}

#[test]
fn strict_json_cases_hold_for_the_checker_and_for_the_parser() {
    let cases: Vec<Case> = crate::cases("strict.yaml");
    assert!(cases.iter().any(|case| case.expect == "ok"));
    for case in cases {
        let bytes = case.text.map_or_else(|| unhex(&case.hex.unwrap()), String::into_bytes);
        let limits = case.depth.map_or_else(Limits::default, Limits::depth);
        let checked = check(&bytes, limits);
        let parsed = parse(&bytes, limits);
        assert_eq!(checked.clone().err(), parsed.err(), "{}: checker and parser differ", case.name);
        let (kind, message) = checked.map_or_else(|e| (kind(&e), e.to_string()), |()| ("ok", String::new()));
        assert_eq!(kind, case.expect, "{}: {message}", case.name);
        let says = case.says.unwrap_or_default();
        assert!(message.contains(&says), "{}: {message:?} does not say {says:?}", case.name);
    }
}

fn kind(error: &StrictError) -> &'static str {
    match error {
        StrictError::NotUtf8 { .. } => "not UTF-8",
        StrictError::ByteOrderMark => "byte order mark",
        StrictError::DuplicateKey { .. } => "duplicate key",
        StrictError::Reserved { .. } => "reserved",
        StrictError::TooDeep { .. } => "too deep",
        StrictError::NotFinite { .. } => "not finite",
        StrictError::LoneSurrogate { .. } => "lone surrogate",
        StrictError::TrailingData { .. } => "trailing data",
        StrictError::Syntax { .. } => "syntax",
    }
}

fn unhex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_depth_limit_is_exact_and_has_a_ceiling() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
    assert_eq!(check(&nested(64), Limits::default()), Ok(()));
    assert!(matches!(check(&nested(65), Limits::default()), Err(StrictError::TooDeep { limit: 64, .. })));
    assert_eq!(check(&nested(127), Limits::depth(255)), Ok(()));
    assert!(matches!(check(&nested(128), Limits::depth(255)), Err(StrictError::TooDeep { limit: 127, .. })));
    assert!(matches!(check(&nested(100_000), Limits::default()), Err(StrictError::TooDeep { .. })));
}

#[test]
fn duplicates_are_found_in_objects_of_any_size() {
    for size in [2_usize, 23, 24, 25, 26, 200] {
        let members = |last: usize| {
            let names = (0..size).map(|n| if n + 1 == size { last } else { n });
            names.map(|n| format!("\"k{n}\":{{\"in\":{n}}}")).collect::<Vec<_>>().join(",")
        };
        assert_eq!(check(format!("{{{}}}", members(size)).as_bytes(), Limits::default()), Ok(()), "{size}");
        for repeated in [0, size / 2 - 1] {
            let text = format!("{{{}}}", members(repeated));
            let fault = check(text.as_bytes(), Limits::default());
            assert!(
                matches!(fault, Err(StrictError::DuplicateKey { pointer, .. }) if pointer == format!("/k{repeated}"))
            );
        }
    }
}

#[test]
fn what_a_parser_takes_for_its_own_signs_is_refused_at_any_depth() {
    for text in [
        r#"{"$serde_json::private::RawValue":"{\"a\":1,\"a\":2}"}"#,
        r#"{"$serde_json::private::Number":"1"}"#,
        r#"{"a":[{"b":{"\u0024serde_json::private::Number":"1"}}]}"#,
    ] {
        assert!(matches!(check(text.as_bytes(), Limits::default()), Err(StrictError::Reserved { .. })), "{text}");
        assert!(parse(text.as_bytes(), Limits::default()).is_err(), "{text}");
    }
    assert!(check(br#"{"$serde_json":"1"}"#, Limits::default()).is_ok());
}
