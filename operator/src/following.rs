//! Things that servers need and that change by themselves: referenced Secrets and ConfigMaps, key sets behind URLs.
//!
//! One task follows each thing as long as at least one server needs it, and marks exactly the servers that need it when
//! it changes. Nothing is polled by the passes, and nothing is followed that nobody refers to.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cotter_compiler::world::{Resolved, Unresolved};
use tokio::task::AbortHandle;

use crate::{key::ServerKey, queue::Queue};

/// Knows how to follow one kind of thing.
pub trait Follow: Clone + Send + Sync + 'static {
    /// Which thing.
    type Source: Clone + Ord + Hash + Send + 'static;
    /// What it is.
    type Value: Clone + PartialEq + Send + 'static;

    /// Puts what `source` is into `slot`, again and again, for ever. Aborted when nobody needs it any more.
    fn follow(self, source: Self::Source, slot: Slot<Self>) -> impl Future<Output = ()> + Send;
}

/// Where a follower puts what it found.
pub struct Slot<F: Follow> {
    source: F::Source,
    entries: Arc<Mutex<Entries<F>>>,
    queue: Arc<Queue<ServerKey>>,
}

impl<F: Follow> Slot<F> {
    /// The thing is now this. The same again marks nobody.
    pub fn set(&self, value: Resolved<F::Value>) {
        let mut entries = lock(&self.entries);
        let Some(entry) = entries.by_source.get_mut(&self.source) else { return };
        if entry.value.as_ref() == Some(&value) {
            return;
        }
        entry.value = Some(value);
        entry.users.iter().for_each(|key| self.queue.mark(key.clone()));
    }

    /// It could not be had just now. What was had before goes on counting.
    pub fn fail(&self, why: Unresolved) {
        let has_value = lock(&self.entries).by_source.get(&self.source).is_some_and(|e| matches!(e.value, Some(Ok(_))));
        if !has_value {
            self.set(Err(why));
        }
    }
}

struct Entry<F: Follow> {
    value: Option<Resolved<F::Value>>,
    users: BTreeSet<ServerKey>,
    task: AbortHandle,
}

impl<F: Follow> Drop for Entry<F> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Entries<F: Follow> {
    by_source: HashMap<F::Source, Entry<F>>,
    by_server: HashMap<ServerKey, BTreeSet<F::Source>>,
}

/// Everything of one kind that is followed.
pub struct Following<F: Follow> {
    follower: F,
    entries: Arc<Mutex<Entries<F>>>,
    queue: Arc<Queue<ServerKey>>,
}

impl<F: Follow> Following<F> {
    /// Follows nothing yet.
    pub fn new(follower: F, queue: Arc<Queue<ServerKey>>) -> Self {
        let entries = Entries { by_source: HashMap::new(), by_server: HashMap::new() };
        Self { follower, entries: Arc::new(Mutex::new(entries)), queue }
    }

    /// Says what a server needs from now on: what is new is followed, what nobody needs any more is not.
    pub fn need(&self, server: &ServerKey, sources: BTreeSet<F::Source>) {
        let mut entries = lock(&self.entries);
        let before = if sources.is_empty() {
            entries.by_server.remove(server).unwrap_or_default()
        } else {
            entries.by_server.insert(server.clone(), sources.clone()).unwrap_or_default()
        };
        for source in before.difference(&sources) {
            let unused = entries.by_source.get_mut(source).is_some_and(|entry| {
                entry.users.remove(server);
                entry.users.is_empty()
            });
            if unused {
                entries.by_source.remove(source);
            }
        }
        for source in sources {
            let entry = entries.by_source.entry(source.clone()).or_insert_with(|| self.start(source));
            entry.users.insert(server.clone());
        }
    }

    /// What a followed thing is; `None` until it was looked at once. Its server is marked then.
    pub fn get(&self, source: &F::Source) -> Option<Resolved<F::Value>> {
        lock(&self.entries).by_source.get(source).and_then(|entry| entry.value.clone())
    }

    /// How many things are followed.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.entries).by_source.len()
    }

    /// Whether nothing is followed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn start(&self, source: F::Source) -> Entry<F> {
        let slot = Slot { source: source.clone(), entries: self.entries.clone(), queue: self.queue.clone() };
        let task = tokio::spawn(self.follower.clone().follow(source, slot)).abort_handle();
        Entry { value: None, users: BTreeSet::new(), task }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::watch;

    use super::*;

    #[derive(Clone)]
    struct Told(watch::Receiver<Resolved<u32>>);

    impl Follow for Told {
        type Source = &'static str;
        type Value = u32;
        async fn follow(mut self, _: &'static str, slot: Slot<Self>) {
            loop {
                match self.0.borrow_and_update().clone() {
                    Ok(value) => slot.set(Ok(value)),
                    Err(why) => slot.fail(why),
                }
                if self.0.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    fn unreachable(why: &str) -> Unresolved {
        Unresolved::Unreachable(why.to_owned())
    }

    async fn next(queue: &Queue<ServerKey>) -> Option<String> {
        let key = tokio::time::timeout(Duration::from_millis(300), queue.take()).await.ok()?;
        queue.done(&key, true);
        Some(key.name)
    }

    #[tokio::test]
    async fn a_change_marks_exactly_the_servers_that_need_it() {
        let (tell, told) = watch::channel(Ok(1));
        let queue = Arc::new(Queue::default());
        let following = Following::new(Told(told), queue.clone());
        let (a, b) = (ServerKey::new("n", "a"), ServerKey::new("n", "b"));
        following.need(&a, BTreeSet::from(["x"]));
        following.need(&b, BTreeSet::from(["y"]));
        assert!(next(&queue).await.is_some() && next(&queue).await.is_some(), "both are told when it is first known");
        assert_eq!(following.get(&"x"), Some(Ok(1)));
        following.need(&b, BTreeSet::new());
        assert_eq!((following.len(), following.get(&"y")), (1, None), "nobody needs y any more");
        tell.send(Ok(2)).unwrap();
        assert_eq!(next(&queue).await.as_deref(), Some("a"));
        tell.send(Ok(2)).unwrap();
        assert_eq!(next(&queue).await, None, "the same again is no news");
    }

    #[tokio::test]
    async fn a_failure_does_not_take_away_what_was_there() {
        let (tell, told) = watch::channel(Err(unreachable("not yet")));
        let queue = Arc::new(Queue::default());
        let following = Following::new(Told(told), queue.clone());
        following.need(&ServerKey::new("n", "a"), BTreeSet::from(["x"]));
        assert!(next(&queue).await.is_some());
        assert_eq!(following.get(&"x"), Some(Err(unreachable("not yet"))));
        tell.send(Ok(1)).unwrap();
        assert!(next(&queue).await.is_some());
        tell.send(Err(unreachable("gone"))).unwrap();
        assert_eq!(next(&queue).await, None);
        assert_eq!(following.get(&"x"), Some(Ok(1)));
    }
}
