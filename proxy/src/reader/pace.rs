//! When to read again.

use std::time::Duration;

use tokio::time::Instant;

/// However loudly a server announces changes, a reading begins no sooner than this after the one before.
const GAP: Duration = Duration::from_millis(100);
/// The first pause after a failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause after failures.
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// A list that is declared to live shorter than this is read at this pace.
const SHORTEST_TTL: Duration = Duration::from_secs(1);
/// A conversation that lasted this long did not end because of how it began.
const LASTING: Duration = Duration::from_secs(10);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(super) struct Pace {
    failures: u32,
    opened: Option<Instant>,
}

impl Pace {
    /// The next reading at the interval, or at the end of the list's declared life. A life of zero says that the list is not
    /// to be kept, which is not a wish for endless reading: it counts as none declared.
    pub(super) fn after_success(&mut self, began: Instant, interval: Duration, ttl: Option<Duration>) -> Instant {
        if self.opened.is_none_or(|opened| opened.elapsed() >= LASTING) {
            self.failures = 0;
        }
        let ttl = ttl.filter(|ttl| !ttl.is_zero()).map(|ttl| ttl.max(SHORTEST_TTL));
        began + ttl.map_or(interval, |ttl| ttl.min(interval))
    }

    pub(super) fn after_failure(&mut self, began: Instant, interval: Duration) -> Instant {
        began.max(Instant::now()) + self.pause().min(interval)
    }

    /// After the server's process or connection ended: at once the first time, later and later where it goes on.
    pub(super) fn after_end(&mut self, now: Instant) -> Instant {
        if self.opened.is_some_and(|opened| now.saturating_duration_since(opened) >= LASTING) {
            self.failures = 0;
        }
        now + self.pause()
    }

    pub(super) fn opened(&mut self, now: Instant) {
        self.opened = Some(now);
    }

    pub(super) fn earliest(&self, began: Instant) -> Instant {
        began + GAP
    }

    fn pause(&mut self) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures)).min(LAST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_short_lived_list_is_read_sooner_and_never_endlessly() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let mut after = |ttl: Option<u64>| pace.after_success(now, INTERVAL, ttl.map(Duration::from_millis)) - now;
        assert_eq!(after(None), INTERVAL);
        assert_eq!(after(Some(5000)), Duration::from_secs(5));
        assert_eq!(after(Some(600_000)), INTERVAL);
        assert_eq!(after(Some(1)), SHORTEST_TTL);
        assert_eq!(after(Some(0)), INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_retried_later_and_later_up_to_a_bound() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let pauses: Vec<_> = (0..10).map(|_| (pace.after_failure(now, INTERVAL) - now).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        pace.after_success(now, INTERVAL, None);
        assert_eq!(pace.after_failure(now, INTERVAL) - now, FIRST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_ends_right_after_each_start_is_not_hammered() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for expected in [250, 500, 1000] {
            pace.opened(now);
            pace.after_success(now, INTERVAL, None);
            assert_eq!((pace.after_end(now) - now).as_millis(), expected);
        }
    }
}
