//! Durations, sizes and rates, with the bounds that the CRD states.

use std::time::Duration;

use cotter_core::snapshot::{Limits, Rate, Stale, StaleAction, Verify};
use cotter_crds::{
    duration,
    quantity::Quantity,
    rate::{self as rates},
    server as crd,
};

use crate::problem::Problems;

/// From 100 ms to an hour, for one call.
pub(super) const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), HOUR);
/// From 1 KiB to 64 MiB, for a result.
pub(super) const RESULT: (u64, u64) = (1 << 10, 64 << 20);

const REQUEST: (u64, u64) = (1 << 10, 16 << 20);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);

/// Where nobody bounds the rate of a principal: a million at once and in each second, which no caller reaches before
/// `limits.concurrent` stops it.
const NO_RATE: Rate = Rate { tokens: 1_000_000, per_ms: 1_000, burst: 1_000_000 };

/// Parses a duration within bounds, to milliseconds.
pub(super) fn duration(
    path: impl Into<String>,
    text: &str,
    (least, most): (Duration, Duration),
    problems: &mut Problems,
) -> Option<u64> {
    let path = path.into();
    let found = problems.take(path.clone(), duration::parse(text))?;
    if found < least || found > most {
        problems.add(path, format_args!("{text} is not between {least:?} and {most:?}"));
        return None;
    }
    u64::try_from(found.as_millis()).ok()
}

/// Parses a size within bounds, to bytes.
pub(super) fn size(
    path: impl Into<String>,
    text: &Quantity,
    (least, most): (u64, u64),
    problems: &mut Problems,
) -> Option<u64> {
    let path = path.into();
    let found = problems.take(path.clone(), text.bytes())?;
    if found < least || found > most {
        problems.add(path, format_args!("{text} is not between {least} and {most} bytes"));
        return None;
    }
    Some(found)
}

/// Parses a rate; without a burst the bucket holds one second's worth.
pub(super) fn rate(path: impl Into<String>, text: &str, burst: Option<u32>, problems: &mut Problems) -> Option<Rate> {
    let found = problems.take(path, rates::parse(text))?;
    let per_ms = u64::try_from(found.period.as_millis()).ok()?;
    Some(Rate { tokens: found.count.get(), per_ms, burst: burst.unwrap_or_else(|| found.default_burst()) })
}

fn count(path: &str, number: i32, problems: &mut Problems) -> Option<u32> {
    match u32::try_from(number) {
        Ok(count) if count > 0 => Some(count),
        _ => {
            problems.add(path, format_args!("{number} has to be at least 1"));
            None
        }
    }
}

pub(super) fn limits(spec: &crd::Limits, problems: &mut Problems) -> Option<Limits> {
    let request_bytes = size("spec.limits.requestBytes", &spec.request_bytes, REQUEST, problems);
    let result_bytes = size("spec.limits.resultBytes", &spec.result_bytes, RESULT, problems);
    let timeout_ms = duration("spec.limits.timeout", &spec.timeout, TIMEOUT, problems);
    let concurrent = count("spec.limits.concurrent", spec.concurrent, problems);
    let sessions = count("spec.limits.sessions", spec.sessions, problems);
    let rate_per_principal = principal_rate(spec.rate.as_ref(), problems);
    Some(Limits {
        request_bytes: request_bytes?,
        result_bytes: result_bytes?,
        timeout_ms: timeout_ms?,
        concurrent: concurrent?,
        rate_per_principal: rate_per_principal?,
        sessions: sessions?,
    })
}

fn principal_rate(spec: Option<&crd::Rate>, problems: &mut Problems) -> Option<Rate> {
    let Some(spec) = spec else { return Some(NO_RATE) };
    let burst = match spec.burst {
        Some(burst) => Some(count("spec.limits.rate.burst", burst, problems)?),
        None => None,
    };
    rate("spec.limits.rate.perPrincipal", &spec.per_principal, burst, problems)
}

pub(super) fn verify(spec: &crd::Verify, problems: &mut Problems) -> Option<Verify> {
    let interval_ms = duration("spec.verify.interval", &spec.interval, (SECOND, HOUR), problems);
    let grace_ms = duration("spec.verify.grace", &spec.grace, (Duration::ZERO, DAY), problems);
    Some(Verify { interval_ms: interval_ms?, grace_ms: grace_ms? })
}

pub(super) fn stale(spec: &crd::Stale, problems: &mut Problems) -> Option<Stale> {
    let after_ms = duration("spec.stale.after", &spec.after, (SECOND, DAY), problems)?;
    let action = match spec.action {
        crd::StaleAction::Report => StaleAction::Report,
        crd::StaleAction::Refuse => StaleAction::Refuse,
    };
    Some(Stale { after_ms, action })
}
