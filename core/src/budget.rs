//! Budgets of delegations: how many calls may be made under one, what sidecars charge to them, and what each is told of the others.
//!
//! A call under a delegation is charged to its own budget and to that of every delegation above it.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The span in which calls of a minute are counted.
pub const MINUTE: Duration = Duration::from_secs(60);

/// The header by which a sidecar names its run when it opens its stream: what that run charged is not elsewhere.
pub const RUN_HEADER: &str = "cotter-run";

/// One second more than a minute: whatever 60 s one looks at lie within so many whole seconds.
const SECONDS: u64 = 61;

/// The bounds that one delegation of a chain puts on calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// The delegation whose it is.
    pub name: String,
    /// That delegation's uid: one that is made again under its name begins again. Absent where objects have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Calls in all, as long as the delegation exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Calls in any 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u64>,
}

impl Budget {
    /// Under what its calls are counted, within its namespace.
    #[must_use]
    pub fn key(&self) -> &str {
        self.uid.as_deref().unwrap_or(&self.name)
    }
}

/// What one run of a sidecar charged since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charges {
    /// The run: another one after each start.
    pub run: String,
    /// Calls that this run had charged by then, over all budgets: of two messages the one with fewer is the older one.
    pub made: u64,
    /// Calls, by [`Budget::key`].
    pub charged: BTreeMap<String, u64>,
}

/// What the operator tells a sidecar of one budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Calls that were charged anywhere else, earlier runs of the same sidecar included.
    pub elsewhere: u64,
    /// How many of those in the last minute.
    pub recent: u64,
    /// Live sidecars that charge to it, this one included.
    pub sidecars: u32,
    /// Its place among them, from 0.
    pub place: u32,
}

impl Share {
    /// Its part of what may be done in a minute. The parts of all places are the whole: what does not divide goes to the first ones.
    #[must_use]
    pub fn of(&self, per_minute: u64) -> u64 {
        let sidecars = u64::from(self.sidecars.max(1));
        per_minute / sidecars + u64::from(u64::from(self.place) < per_minute % sidecars)
    }
}

/// Calls of the last minute, in one number for each second: bounded, whatever the rate. Times are since any fixed moment.
///
/// Counts to the strict side: a call counts for 60 to 61 s.
#[derive(Debug, Clone)]
pub struct Window {
    newest: u64,
    counts: [u32; SECONDS as usize],
}

impl Default for Window {
    fn default() -> Self {
        Self { newest: 0, counts: [0; SECONDS as usize] }
    }
}

impl Window {
    /// Calls that count at this time.
    #[must_use]
    pub fn count(&mut self, now: Duration) -> u64 {
        self.advance(now);
        self.counts.iter().map(|calls| u64::from(*calls)).sum()
    }

    /// Notes calls.
    pub fn add(&mut self, calls: u64, now: Duration) {
        self.advance(now);
        let newest = self.newest;
        if let Some(count) = self.at(newest) {
            *count = count.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
        }
    }

    /// How long until fewer than `limit` calls count, if no other comes; nothing where that never is.
    #[must_use]
    pub fn wait(&mut self, limit: u64, now: Duration) -> Option<Duration> {
        let mut left = self.count(now);
        if left < limit {
            return Some(Duration::ZERO);
        }
        for second in (self.newest + 1).saturating_sub(SECONDS)..=self.newest {
            left = left.saturating_sub(self.at(second).map_or(0, |count| u64::from(*count)));
            if left < limit {
                return Some(Duration::from_secs(second + SECONDS).saturating_sub(now));
            }
        }
        None
    }

    /// Forgets what is older than a minute. A time before the newest counts as the newest.
    fn advance(&mut self, now: Duration) {
        let now = now.as_secs().max(self.newest);
        let passed = (now - self.newest).min(SECONDS);
        for second in (now + 1).saturating_sub(passed)..=now {
            if let Some(count) = self.at(second) {
                *count = 0;
            }
        }
        self.newest = now;
    }

    fn at(&mut self, second: u64) -> Option<&mut u32> {
        self.counts.get_mut(usize::try_from(second % SECONDS).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator: the same numbers in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    #[test]
    fn no_sixty_seconds_ever_hold_more_than_the_bound() {
        let mut numbers = Numbers(3);
        for round in 0..60 {
            let (mut window, mut now) = (Window::default(), Duration::from_millis(numbers.below(90_000)));
            let (limit, pace) = (1 + numbers.below(8), 1 + numbers.below(20_000));
            let mut taken: Vec<Duration> = Vec::new();
            for _ in 0..600 {
                now += Duration::from_millis(numbers.below(pace));
                if window.count(now) < limit {
                    window.add(1, now);
                    taken.push(now);
                }
            }
            for (at, first) in taken.iter().enumerate() {
                let within = taken[at..].iter().take_while(|time| **time - *first <= MINUTE).count();
                assert!(
                    within as u64 <= limit,
                    "round {round}: {within} calls in the minute from {first:?}, {limit} allowed"
                );
            }
            let span = (now - taken[0]).as_secs() / 61;
            assert!(
                taken.len() as u64 >= limit.min(600).max(span.min(1)),
                "round {round}: it is not a bound of nothing"
            );
        }
    }

    #[test]
    fn what_was_used_comes_back_after_a_minute_and_the_wait_says_when() {
        let (mut window, second) = (Window::default(), Duration::from_secs(1));
        window.add(2, 10 * second + second / 2);
        window.add(1, 20 * second);
        assert_eq!((window.count(70 * second), window.count(20 * second)), (3, 3));
        assert_eq!(window.wait(4, 70 * second), Some(Duration::ZERO));
        assert_eq!(window.wait(3, 70 * second + second / 2), Some(second / 2));
        assert_eq!(window.wait(1, 70 * second), Some(11 * second));
        assert_eq!(window.wait(0, 70 * second), None);
        assert_eq!((window.count(71 * second), window.count(81 * second)), (1, 0));
        window.add(5, 1000 * second);
        assert_eq!(window.count(1000 * second), 5, "a long pause leaves nothing behind");
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_back() {
        let mut window = Window::default();
        window.add(1, Duration::from_secs(100));
        window.add(1, Duration::from_secs(50));
        assert_eq!((window.count(Duration::from_secs(110)), window.count(Duration::from_secs(160))), (2, 2));
        assert_eq!(window.count(Duration::from_secs(161)), 0);
    }

    #[test]
    fn the_parts_of_all_sidecars_are_the_whole() {
        for sidecars in 1..9_u32 {
            for per_minute in 0..40 {
                let share = |place| Share { elsewhere: 0, recent: 0, sidecars, place }.of(per_minute);
                assert_eq!((0..sidecars).map(share).sum::<u64>(), per_minute);
                assert!((0..sidecars).map(share).is_sorted_by(|a, b| a >= b && a - b <= 1));
            }
        }
    }

    #[test]
    fn a_budget_is_counted_by_uid_where_there_is_one() {
        let mut budget = Budget { name: "triage".to_owned(), uid: None, calls: Some(1), per_minute: None };
        assert_eq!(budget.key(), "triage");
        budget.uid = Some("1".to_owned());
        assert_eq!(budget.key(), "1");
    }
}
