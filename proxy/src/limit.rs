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

use cotter_core::{name::ToolName, reason::DenyReason, snapshot::Rate};

use crate::{
    respond::{Refusal, With},
    session::Owner,
};

/// Principals whose rate is kept apart. Beyond it the idle ones are forgotten, and if none is idle newcomers share one
/// bucket: memory stays bounded, and a flood of identities slows only other newcomers.
const PRINCIPALS: usize = 50_000;

/// One bucket.
#[derive(Debug, Default)]
pub struct Bucket {
    /// When the bucket is full again, in nanoseconds since the process began.
    full_at: AtomicU64,
    /// Bytes of its bodies that are being read.
    reading: AtomicU64,
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

/// The refusal of what is beyond a rate.
#[must_use]
pub fn exceeded(what: &str, wait: Duration) -> Refusal {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Refusal::because(DenyReason::RateLimited, format!("rate of the {what}")).with(With::RetryAfter(seconds))
}

/// Requests in flight.
#[derive(Debug, Default)]
pub struct InFlight(AtomicU32);

/// One request in flight; dropping it makes room.
#[derive(Debug)]
pub struct Place<'a>(&'a AtomicU32);

impl InFlight {
    /// Takes a place, if fewer than `limit` are taken, not counting those that are `lost` for good.
    #[must_use]
    pub fn enter(&self, limit: u32, lost: impl FnOnce() -> u32) -> Option<Place<'_>> {
        let place = Place(&self.0);
        // The place is given back by its drop, also when it is refused.
        let taken = self.0.fetch_add(1, Ordering::AcqRel);
        (taken < limit || taken < limit.saturating_add(lost())).then_some(place)
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

/// Bytes of bodies that are being read, all together: a place among the requests in flight is taken only once a body is there, and
/// connections are many.
const BODIES: u64 = 64 << 20;

/// The part of them that one principal may take, so that bodies that it announces and does not send keep nobody else out.
const SHARE: u64 = BODIES / 4;

/// Bodies that are being read.
#[derive(Debug, Default)]
pub struct Bodies(AtomicU64);

/// Room for one body; dropping it gives it back.
#[derive(Debug)]
pub struct Held<'a> {
    all: &'a AtomicU64,
    own: &'a AtomicU64,
    bytes: u64,
}

impl Bodies {
    /// Makes room for a body of so many bytes at most, if there is so much. One that is larger than all the room is read alone.
    #[must_use]
    pub fn hold<'a>(&'a self, bucket: &'a Bucket, bytes: u64) -> Option<Held<'a>> {
        // The room is given back by its drop, also when it is refused.
        let held = Held { all: &self.0, own: &bucket.reading, bytes };
        let fits = |taken: &AtomicU64, room: u64| {
            let before = taken.fetch_add(bytes, Ordering::AcqRel);
            before == 0 || before.saturating_add(bytes) <= room
        };
        let (all, own) = (fits(held.all, BODIES), fits(held.own, SHARE));
        (all && own).then_some(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::AcqRel);
        self.own.fetch_sub(self.bytes, Ordering::AcqRel);
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
    fn bodies_have_so_much_room_and_one_principal_a_part_of_it() {
        let (bodies, alice) = (Bodies::default(), Bucket::default());
        let others: Vec<Bucket> = (0..4).map(|_| Bucket::default()).collect();
        let mut held: Vec<Held<'_>> = (0..16).map(|_| bodies.hold(&alice, 1 << 20).unwrap()).collect();
        assert!(bodies.hold(&alice, 1).is_none(), "her share is taken");
        for other in others.iter().take(3) {
            held.extend((0..16).map(|_| bodies.hold(other, 1 << 20).unwrap()));
        }
        let last = others.last().unwrap();
        assert!(bodies.hold(last, 1).is_none(), "all of it is taken");
        held.pop();
        assert!(bodies.hold(last, 1 << 20).is_some(), "a body that was read makes room");
        drop(held);
        assert_eq!((bodies.0.load(Ordering::Relaxed), alice.reading.load(Ordering::Relaxed)), (0, 0));
        assert!(bodies.hold(&alice, BODIES * 2).is_some(), "alone even the largest is read");
    }

    #[test]
    fn a_rate_of_nothing_gives_nothing() {
        assert!(Bucket::default().take(Rate { tokens: 0, per_ms: 1000, burst: 5 }, SECOND).is_err());
    }

    #[test]
    fn a_refused_request_takes_no_place() {
        let flight = InFlight::default();
        let none = || 0;
        let first = flight.enter(1, none);
        assert!(first.is_some() && flight.enter(1, none).is_none() && flight.enter(1, none).is_none());
        assert!(flight.enter(1, || 1).is_some(), "the first is lost");
        drop(first);
        assert!(flight.enter(1, none).is_some());
        assert_eq!(flight.count(), 0);
    }
}
