//! Durations as resources write them.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("duration {0:?} has to be numbers with ms, s, m or h, such as 30s, 5m or 1h30m")]
pub struct DurationError(String);

/// Units, with the milliseconds that each stands for; `ms` before `m`, which begins it.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Reads `30s`, `5m`, `1h30m`: one or more whole numbers of up to six digits, each with its unit.
///
/// # Errors
/// When the text is anything else. Bounds are the field's own.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let refused = || DurationError(text.chars().take(32).collect());
    let mut rest = text;
    let mut total: u64 = 0;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits).ok_or_else(refused)?;
        let unit = UNITS.iter().find_map(|(unit, factor)| Some((tail.strip_prefix(unit)?, factor)));
        let (after, factor) = unit.ok_or_else(refused)?;
        if !(1..=6).contains(&number.len()) {
            return Err(refused());
        }
        let count: u64 = number.parse().map_err(|_| refused())?;
        total = count.checked_mul(*factor).and_then(|part| total.checked_add(part)).ok_or_else(refused)?;
        rest = after;
        if rest.is_empty() {
            return Ok(Duration::from_millis(total));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_sum_of_numbers_with_units() {
        for (text, milliseconds) in [("0s", 0), ("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("1h30m", 5_400_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "30", "s", "1d", "-1s", "1.5s", "1 s", "1234567s", "30s ", "5min"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
