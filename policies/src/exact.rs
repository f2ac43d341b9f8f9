//! Numbers that are not what a rule would see.
//!
//! The server gets the text that the caller sent; a rule gets what the engine makes of it, which is a double for everything but whole
//! numbers of 64 bits. Where the two can compare differently a bound can be got around, so such a number is refused: a whole number has
//! to be exactly what is seen, and a fraction has to be the shortest decimal of its double, which keeps the order of any two of them.

use cotter_core::pointer::join;

/// What the numbers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Rules compare them.
    Rules,
    /// They go into a digest, whose canonical form has doubles only: whole numbers beyond ±(2^53−1) share one.
    Digest,
}

/// From here on doubles leave whole numbers out.
const SPARSE: f64 = 9_007_199_254_740_992.0;
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Where in an open object or array the text is.
enum Place<'a> {
    Element(usize),
    /// The name as written, with its quotes.
    Member(&'a str),
}

/// The JSON pointer to the first number that is not exact. The text is one that was read as JSON already.
pub(crate) fn inexact(text: &str, need: Need) -> Option<String> {
    let (mut rest, mut open) = (text, Vec::new());
    while let Some(first) = rest.bytes().next() {
        let taken = match first {
            b'{' => opened(&mut open, Place::Member("\"\"")),
            b'[' => opened(&mut open, Place::Element(0)),
            b'}' | b']' => open.pop().map_or(1, |_| 1),
            b',' => next(&mut open),
            b'"' => string(rest, &mut open),
            b'-' | b'0'..=b'9' => {
                let number = number(rest);
                if !is_exact(number, need) {
                    return Some(pointer(&open));
                }
                number.len()
            }
            _ => 1,
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    None
}

fn opened<'a>(open: &mut Vec<Place<'a>>, place: Place<'a>) -> usize {
    open.push(place);
    1
}

fn next(open: &mut [Place<'_>]) -> usize {
    if let Some(Place::Element(index)) = open.last_mut() {
        *index += 1;
    }
    1
}

/// Passes a string, and keeps it where it names a member: only a name is followed by a colon.
fn string<'a>(rest: &'a str, open: &mut [Place<'a>]) -> usize {
    let mut bytes = rest.bytes().enumerate().skip(1);
    let mut end = rest.len();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => {
                end = at + 1;
                break;
            }
            _ => {}
        }
    }
    let (quoted, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
    if let (Some(Place::Member(name)), true) = (open.last_mut(), after.trim_ascii_start().starts_with(':')) {
        *name = quoted;
    }
    end
}

fn number(rest: &str) -> &str {
    let end = rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(rest.len());
    rest.get(..end).unwrap_or(rest)
}

fn pointer(open: &[Place<'_>]) -> String {
    open.iter().fold(String::new(), |above, place| match place {
        Place::Element(index) => join(&above, &index.to_string()),
        Place::Member(quoted) => join(&above, &serde_json::from_str::<String>(quoted).unwrap_or_default()),
    })
}

fn is_exact(number: &str, need: Need) -> bool {
    let whole = number.parse::<u64>().or_else(|_| number.parse::<i64>().map(i64::unsigned_abs));
    if let Ok(whole) = whole {
        return need == Need::Rules || whole <= MAX_SAFE;
    }
    // The reader is the engine's own.
    let Ok(double) = serde_json::from_str::<f64>(number) else { return false };
    let seen = match double.abs() < SPARSE {
        true => format!("{double:e}"),
        false if need == Need::Digest => return false,
        false => format!("{double:.0}"),
    };
    matches!((Decimal::of(number), Decimal::of(&seen)), (Some(sent), Some(seen)) if sent == seen)
}

/// A decimal in one form: no zeros at either end, and a power of ten.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    power: i64,
}

impl Decimal {
    fn of(text: &str) -> Option<Self> {
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: String = whole.trim_start_matches('-').chars().chain(fraction.chars()).collect();
        let digits = all.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { negative: false, digits: String::new(), power: 0 });
        }
        let dropped = i64::try_from(all.len() - digits.len()).ok()?;
        let below = i64::try_from(fraction.len()).ok()?;
        let power = power.parse::<i64>().ok()?.checked_sub(below)?.checked_add(dropped)?;
        Some(Self { negative: mantissa.starts_with('-'), digits: digits.trim_start_matches('0').to_owned(), power })
    }
}

#[cfg(test)]
mod tests {
    use regorus::Value;

    use super::*;

    const EXACT: &[&str] = &[
        "0",
        "-0",
        "-0.0",
        "0e99999999999",
        "1",
        "-1",
        "100.0",
        "1e2",
        "1E+2",
        "0.1",
        "-2.50",
        "1e-7",
        "0.30000000000000004",
        "123456789012.345",
        "1.7976931348623157e-300",
        "5e-324",
        "9007199254740991.0",
    ];
    const ONLY_FOR_RULES: &[&str] = &[
        "9007199254740992",
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
        "9007199254740992.0",
        "18446744073709551616",
        "10000000000000000000000",
        "1e22",
        "-1e22",
    ];
    const NEITHER: &[&str] = &[
        "1e400",
        "-1e400",
        "1e-400",
        "1e99999999999999999999",
        "10000000000000000000001",
        "18446744073709551617",
        "-9223372036854775809",
        "1e23",
        "9007199254740993.0",
        "9007199254740992.5",
        "4503599627370497.25",
        "0.1000000000000000055511151231257827",
        "0.10000000000000001",
        "0.99999999999999999",
        "-0.99999999999999999",
        "100.00000000000000001",
        "4.9e-324",
    ];

    #[test]
    fn a_number_is_exact_or_not() {
        for number in EXACT {
            assert_eq!((inexact(number, Need::Rules), inexact(number, Need::Digest)), (None, None), "{number}");
        }
        for number in ONLY_FOR_RULES {
            assert_eq!(
                (inexact(number, Need::Rules), inexact(number, Need::Digest).is_some()),
                (None, true),
                "{number}"
            );
        }
        for number in NEITHER {
            let found = (inexact(number, Need::Rules).is_some(), inexact(number, Need::Digest).is_some());
            assert_eq!(found, (true, true), "{number}");
        }
    }

    #[test]
    fn what_is_let_through_compares_in_the_engine_as_in_the_text() {
        let mut sorted = [
            "-1e22",
            "-9223372036854775808",
            "-0.30000000000000004",
            "-0.3",
            "5e-324",
            "0.1",
            "0.3",
            "0.30000000000000004",
            "99.99999999999999",
            "1e2",
            "100.00000000000001",
            "9007199254740991.0",
            "9007199254740992.0",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "1e22",
        ]
        .map(|number| {
            assert_eq!(inexact(number, Need::Rules), None, "{number}");
            Value::from_json_str(number).unwrap()
        });
        let before = sorted.clone();
        sorted.sort();
        assert_eq!(sorted, before);
        assert!(before.windows(2).all(|pair| pair[0] < pair[1]), "{before:?}");
    }

    #[test]
    fn the_pointer_names_the_number_and_strings_are_passed() {
        let text = r#" {"a":1, "b/c" : [true, "1e400", {"d\"~":"x", "e":[0.5,1e400]}], "f":1e400}"#;
        assert_eq!(inexact(text, Need::Rules).as_deref(), Some("/b~1c/2/e/1"));
        assert_eq!(inexact(&text.replace("0.5,1e400", "0.5").replace("1e400}", "1}"), Need::Rules), None);
        assert_eq!(inexact(r#"{"\u0061\"":[[],{}, 1e23]}"#, Need::Rules).as_deref(), Some("/a\"/2"));
        assert_eq!(inexact(r#"{"a":{"b":"\\"},"c":{"d":"e","f":1e23}}"#, Need::Rules).as_deref(), Some("/c/f"));
        assert_eq!(inexact("1e23", Need::Rules).as_deref(), Some(""));
    }
}
