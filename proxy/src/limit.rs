//! Rates and concurrency. A rate is a token bucket kept as one number: the time at which the bucket would be full again
//! (the generic cell rate algorithm), so that a check is one atomic exchange and no lock.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cotter_core::{name::ToolName, snapshot::Rate};

use crate::session::Owner;

/// Principals whose rate is kept apart. Beyond it the idle ones are forgotten, and if none is idle newcomers share one
/// bucket: memory stays bounded, and a flood of identities slows only other newcomers.
const PRINCIPALS: usize = 50_000;

/// One bucket.
#[derive(Debug, Default)]
pub struct Bucket {
    /// When the bucket is full again, in nanoseconds since the process began.
    full_at: AtomicU64,
}

impl Bucket {
    /// Takes one token, or says how long until there is one.
    ///
    /// # Errors
    /// The time to wait.
    pub fn take(&self, rate: Rate, now: u64) -> Result<(), Duration> {
        let period = rate.per_ms.saturating_mul(1_000_000);
        let step = period / u64::from(rate.tokens.max(1));
        let room = step.saturating_mul(u64::from(rate.burst.max(1)));
        let mut seen = self.full_at.load(Ordering::Relaxed);
        loop {
            let next = seen.max(now).saturating_add(step);
            if rate.tokens == 0 || next.saturating_sub(now) > room {
                return Err(Duration::from_nanos(next.saturating_sub(now).saturating_sub(room)));
            }
            match self.full_at.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => seen = other,
            }
        }
    }
}

/// All buckets of one sidecar. They outlive snapshots, so that a new snapshot gives nobody a fresh burst.
#[derive(Debug)]
pub struct Buckets {
    began: Instant,
    principals: Mutex<HashMap<Owner, Arc<Bucket>>>,
    tools: Mutex<HashMap<ToolName, Arc<Bucket>>>,
    newcomers: Arc<Bucket>,
}

impl Default for Buckets {
    fn default() -> Self {
        let (principals, tools) = (Mutex::default(), Mutex::default());
        Self { began: Instant::now(), principals, tools, newcomers: Arc::default() }
    }
}

impl Buckets {
    /// The time that buckets count in.
    #[must_use]
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The bucket of a principal.
    #[must_use]
    pub fn principal(&self, owner: &Owner) -> Arc<Bucket> {
        let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = principals.get(owner) {
            return Arc::clone(bucket);
        }
        if principals.len() >= PRINCIPALS {
            let now = self.now();
            principals
                .retain(|_, bucket| Arc::strong_count(bucket) > 1 || bucket.full_at.load(Ordering::Relaxed) > now);
        }
        if principals.len() >= PRINCIPALS {
            return Arc::clone(&self.newcomers);
        }
        Arc::clone(principals.entry(owner.clone()).or_default())
    }

    /// The bucket of a declared tool.
    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Arc<Bucket> {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = tools.get(name) {
            return Arc::clone(bucket);
        }
        Arc::clone(tools.entry(name.clone()).or_default())
    }
}

/// Requests in flight.
#[derive(Debug, Default)]
pub struct InFlight(AtomicU32);

/// One request in flight; dropping it makes room.
#[derive(Debug)]
pub struct Place<'a>(&'a AtomicU32);

impl InFlight {
    /// Takes a place, if fewer than `limit` are taken.
    #[must_use]
    pub fn enter(&self, limit: u32) -> Option<Place<'_>> {
        let place = Place(&self.0);
        // The place is given back by its drop, also when it is refused.
        (self.0.fetch_add(1, Ordering::AcqRel) < limit).then_some(place)
    }

    /// How many are taken.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let (bucket, rate) = (Bucket::default(), Rate { tokens: 2, per_ms: 1000, burst: 3 });
        for _ in 0..3 {
            assert!(bucket.take(rate, SECOND).is_ok());
        }
        assert_eq!(bucket.take(rate, SECOND), Err(Duration::from_millis(500)));
        assert!(bucket.take(rate, SECOND + SECOND / 2).is_ok());
        assert!(bucket.take(rate, SECOND + SECOND / 2).is_err());
    }

    #[test]
    fn a_rate_of_nothing_gives_nothing() {
        assert!(Bucket::default().take(Rate { tokens: 0, per_ms: 1000, burst: 5 }, SECOND).is_err());
    }

    #[test]
    fn a_refused_request_takes_no_place() {
        let flight = InFlight::default();
        let first = flight.enter(1);
        assert!(first.is_some() && flight.enter(1).is_none() && flight.enter(1).is_none());
        drop(first);
        assert!(flight.enter(1).is_some());
        assert_eq!(flight.count(), 0);
    }
}
