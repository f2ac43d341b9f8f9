//! Rates as resources write them.

use std::{num::NonZeroU32, time::Duration};

/// How many in which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: NonZeroU32,
    /// In which time: a second, a minute or an hour.
    pub period: Duration,
}

/// Why a text is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rate {0:?} has to be an integer from 1 to 1000000 per second, minute or hour, such as 20/s, 100/m or 5/h")]
pub struct RateError(String);

/// The largest count; a faster caller is better bounded by `limits.concurrent`.
const MAX: u32 = 1_000_000;

/// Reads `20/s`, `100/m`, `5/h`.
///
/// # Errors
/// When the text is anything else, or the count is 0 or above a million.
pub fn parse(text: &str) -> Result<Rate, RateError> {
    let refused = || RateError(text.chars().take(32).collect());
    let (number, unit) = text.split_once('/').ok_or_else(refused)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(refused()),
    };
    if number.starts_with('0') || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(refused());
    }
    let count: NonZeroU32 = number.parse().map_err(|_| refused())?;
    if count.get() > MAX {
        return Err(refused());
    }
    Ok(Rate { count, period: Duration::from_secs(seconds) })
}

impl Rate {
    /// One second's worth, at least 1: how much a bucket holds where nobody says otherwise.
    #[must_use]
    pub fn default_burst(self) -> u32 {
        let seconds = u32::try_from(self.period.as_secs()).unwrap_or(u32::MAX);
        self.count.get().checked_div(seconds).unwrap_or(0).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_and_a_period() {
        let rate = parse("20/s").unwrap();
        assert_eq!((rate.count.get(), rate.period.as_secs(), rate.default_burst()), (20, 1, 20));
        let rate = parse("1000000/h").unwrap();
        assert_eq!((rate.period.as_secs(), rate.default_burst()), (3600, 277));
        assert_eq!(parse("5/m").unwrap().default_burst(), 1);
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in ["", "20", "0/s", "1000001/s", "20/d", "+5/s", "1.5/s", "20 /s", "05/s", "/s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
