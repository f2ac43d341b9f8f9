//! The parts of a decision, one by one: what a token, a principal, a policy and a decision cost that nobody met before, and what they
//! cost again.

use std::{hint::black_box, time::Instant};

use cotter_core::{
    decision::{Era, Kind},
    name::ToolName,
    snapshot::Snapshot,
};
use cotter_policies::{Ask, PinFacts, Policy};
use cotter_proxy::token::Verifier;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{error::BenchError, world::TOOL};

/// How often each part is measured; the figures are medians.
const TIMES: usize = 1001;
/// Preparing a policy takes milliseconds.
const PREPARATIONS: usize = 21;
/// Together, since one is shorter than a look at the clock.
const REPEATED: u32 = 64;

/// Medians, in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Units {
    /// Checking, parsing and keying a snapshot's policy.
    pub(crate) prepare: f64,
    /// Verifying a token that was never seen.
    pub(crate) token: f64,
    /// What a policy makes of a principal, once for a token.
    pub(crate) authority: f64,
    /// A decision that was never made.
    pub(crate) cold: f64,
    /// The same decision again.
    pub(crate) again: f64,
}

/// Measures them.
///
/// # Errors
/// The snapshot or the token is not good, or the decision is not to allow.
pub(crate) fn measure(snapshot: &Value, token: &str) -> Result<Units, BenchError> {
    let snapshot: Snapshot =
        serde_json::from_value(snapshot.clone()).map_err(BenchError::wrong("read the snapshot"))?;
    let verifier = Verifier::new(&snapshot.access);
    let refused = |_| BenchError::Wrong("the token does not verify".to_owned());
    let principal = verifier.verify(token).map_err(refused)?;
    let policy = Policy::prepare(&snapshot).map_err(BenchError::wrong("prepare the policy"))?;
    let tool: ToolName = TOOL.parse().map_err(BenchError::wrong("name the tool"))?;
    let ask = Ask {
        principal: &principal,
        authority: None,
        era: Era::Legacy,
        method: "tools/call",
        kind: Kind::Call,
        tool: &tool,
        pin: PinFacts::MATCHED,
        annotations: None,
        arguments: Some(r#"{"text":"the quick brown fox"}"#),
        now: Timestamp::now(),
    };
    if !policy.decide(&ask).is_allowed() {
        return Err(BenchError::Wrong("the policy does not allow the call".to_owned()));
    }
    let (authority, cold) = strangers(&policy, &ask)?;
    Ok(Units {
        prepare: median((0..PREPARATIONS).map(|_| timed(|| Policy::prepare(&snapshot)))),
        token: median((0..TIMES).map(|_| timed(|| verifier.verify(token)))),
        authority,
        cold,
        again: again(&policy, &ask)?,
    })
}

/// Principals that the policy never met: what it makes of each, and the first decision on each.
fn strangers(policy: &Policy, ask: &Ask<'_>) -> Result<(f64, f64), BenchError> {
    let (mut authorities, mut decisions) = (Vec::new(), Vec::new());
    let mut stranger = ask.principal.clone();
    for number in 0..TIMES {
        let subject = format!("somebody-{number}");
        stranger.subject = subject.parse().map_err(BenchError::wrong("name a subject"))?;
        let begin = Instant::now();
        let authority = policy.authority(&stranger, ask.now).map_err(BenchError::wrong("know a principal"))?;
        authorities.push(since(begin));
        decisions.push(timed(|| policy.decide(&Ask { principal: &stranger, authority: Some(&authority), ..*ask })));
    }
    Ok((median(authorities), median(decisions)))
}

/// The same decision, again and again.
fn again(policy: &Policy, ask: &Ask<'_>) -> Result<f64, BenchError> {
    let authority = policy.authority(ask.principal, ask.now).map_err(BenchError::wrong("know a principal"))?;
    let known = Ask { authority: Some(&authority), ..*ask };
    let repeat = || (0..REPEATED).for_each(|_| drop(black_box(policy.decide(black_box(&known)))));
    Ok(median((0..TIMES).map(|_| timed(repeat) / f64::from(REPEATED))))
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let begin = Instant::now();
    let done = work();
    let took = since(begin);
    drop(black_box(done));
    took
}

fn since(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e6
}

/// The one in the middle.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.get(sorted.len() / 2));
    low.zip(high).map_or(0.0, |(low, high)| f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median([]).abs() < 1e-9);
    }
}
