//! The work queue: which servers have to be looked at, and when.
//!
//! A server is in the queue at most once and is worked on by at most one worker. Marks that arrive while it is worked
//! on lead to one more pass. Time is passed into [`Schedule`], so its rules are tested without waiting.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// Events come in bursts (an apply of three manifests, a rollout); one pass after the burst is enough. Counted from the
/// first mark, so a steady flow of events delays nothing further, and small against the 250 ms from apply to enforced.
pub const DEBOUNCE: Duration = Duration::from_millis(50);

/// First and longest wait after a failed pass.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// What is due when. Pure.
#[derive(Debug)]
pub struct Schedule<K> {
    due: BTreeSet<(Instant, K)>,
    at: HashMap<K, Instant>,
    running: HashSet<K>,
    failures: HashMap<K, u32>,
}

impl<K> Default for Schedule<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new(), at: HashMap::new(), running: HashSet::new(), failures: HashMap::new() }
    }
}

impl<K: Clone + Ord + Hash> Schedule<K> {
    /// Wants `key` looked at, no later than `when`. An earlier wish stays.
    pub fn mark(&mut self, key: K, when: Instant) {
        if let Some(at) = self.at.get(&key).copied() {
            if at <= when {
                return;
            }
            self.due.remove(&(at, key.clone()));
        }
        self.at.insert(key.clone(), when);
        self.due.insert((when, key));
    }

    /// Takes the first key that is due and that nobody works on, or says when to ask again.
    pub fn take(&mut self, now: Instant) -> Result<K, Option<Instant>> {
        let free = self.due.iter().find(|(_, key)| !self.running.contains(key)).cloned();
        let Some((at, key)) = free else { return Err(None) };
        if at > now {
            return Err(Some(at));
        }
        self.due.remove(&(at, key.clone()));
        self.at.remove(&key);
        self.running.insert(key.clone());
        Ok(key)
    }

    /// Gives a key back. After a failure it comes again, later each time.
    pub fn done(&mut self, key: &K, succeeded: bool, now: Instant) {
        self.running.remove(key);
        if succeeded {
            self.failures.remove(key);
            return;
        }
        let failures = self.failures.entry(key.clone()).or_default();
        let wait = BACKOFF.0.saturating_mul(1 << (*failures).min(10)).min(BACKOFF.1);
        *failures += 1;
        self.mark(key.clone(), now + wait);
    }

    /// How many keys wait or are worked on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len() + self.running.len()
    }

    /// Whether nothing waits and nothing is worked on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A [`Schedule`] that workers can wait on.
#[derive(Debug)]
pub struct Queue<K> {
    schedule: Mutex<Schedule<K>>,
    changed: Notify,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self { schedule: Mutex::new(Schedule::default()), changed: Notify::new() }
    }
}

impl<K: Clone + Ord + Hash> Queue<K> {
    /// Wants `key` looked at, soon.
    pub fn mark(&self, key: K) {
        self.mark_after(key, DEBOUNCE);
    }

    /// Wants `key` looked at no later than `delay` from now.
    pub fn mark_after(&self, key: K, delay: Duration) {
        self.lock().mark(key, Instant::now() + delay);
        self.changed.notify_one();
    }

    /// Waits for work.
    pub async fn take(&self) -> K {
        loop {
            let changed = self.changed.notified();
            let taken = self.lock().take(Instant::now());
            match taken {
                Ok(key) => {
                    // Another worker may have slept through this change because this one took the permit.
                    self.changed.notify_one();
                    return key;
                }
                Err(None) => changed.await,
                Err(Some(at)) => {
                    let _elapsed = tokio::time::timeout_at(at.into(), changed).await;
                }
            }
        }
    }

    /// Gives `key` back after a pass.
    pub fn done(&self, key: &K, succeeded: bool) {
        self.lock().done(key, succeeded, Instant::now());
        self.changed.notify_one();
    }

    /// How many keys wait or are worked on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing waits and nothing is worked on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Schedule<K>> {
        // No step leaves the schedule half changed, so a panic elsewhere does not spoil it.
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn many_marks_are_one_pass_at_the_first_time() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        for millis in [50, 60, 90] {
            schedule.mark("a", at(start, millis));
        }
        assert_eq!(schedule.take(at(start, 49)), Err(Some(at(start, 50))));
        assert_eq!(schedule.take(at(start, 50)), Ok("a"));
        schedule.done(&"a", true, at(start, 55));
        assert_eq!(schedule.take(at(start, 1000)), Err(None));
    }

    #[test]
    fn an_earlier_mark_moves_a_later_one() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        schedule.mark("a", at(start, 60_000));
        schedule.mark("a", at(start, 50));
        assert_eq!(schedule.take(at(start, 50)), Ok("a"));
        assert_eq!(schedule.len(), 1, "worked on, and no second entry waits");
    }

    #[test]
    fn a_key_is_never_worked_on_twice_at_once_and_a_mark_meanwhile_is_kept() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        schedule.mark("a", start);
        assert_eq!(schedule.take(start), Ok("a"));
        schedule.mark("a", start);
        assert_eq!(schedule.take(start), Err(None));
        schedule.mark("b", start);
        assert_eq!(schedule.take(start), Ok("b"), "a busy key does not hold up another");
        schedule.done(&"a", true, start);
        assert_eq!(schedule.take(start), Ok("a"));
    }

    #[test]
    fn failures_wait_longer_each_time_and_success_forgets_them() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        schedule.mark("a", start);
        let mut waits = Vec::new();
        let mut now = start;
        for _ in 0..10 {
            assert_eq!(schedule.take(now), Ok("a"));
            schedule.done(&"a", false, now);
            let Err(Some(next)) = schedule.take(now) else { panic!("a retry is due later") };
            waits.push(next - now);
            now = next;
        }
        assert!(waits.is_sorted());
        assert_eq!((waits[0], waits[9]), (BACKOFF.0, BACKOFF.1));
        assert_eq!(schedule.take(now), Ok("a"));
        schedule.done(&"a", true, now);
        schedule.mark("a", now);
        assert_eq!(schedule.take(now), Ok("a"));
        schedule.done(&"a", false, now);
        assert_eq!(schedule.take(now), Err(Some(now + BACKOFF.0)));
    }

    #[tokio::test]
    async fn two_workers_share_the_work() {
        let queue = std::sync::Arc::new(Queue::default());
        let worker = |queue: std::sync::Arc<Queue<u32>>| async move { queue.take().await };
        let first = tokio::spawn(worker(queue.clone()));
        let second = tokio::spawn(worker(queue.clone()));
        queue.mark_after(1, Duration::ZERO);
        queue.mark_after(2, Duration::ZERO);
        let both =
            tokio::time::timeout(Duration::from_secs(5), async { (first.await.unwrap(), second.await.unwrap()) });
        let (first, second) = both.await.expect("both workers get one");
        assert_eq!(first + second, 3);
    }
}
