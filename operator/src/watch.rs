//! Watches: each kind into a store, each change to the servers that it concerns.
//!
//! An object that cannot be read is told to [`Watched::unreadable`] and otherwise treated as not changed: what was
//! readable before stays, and nothing else stops.

use std::{fmt::Debug, sync::Arc};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, Resource,
    api::ObjectMeta,
    core::{DeserializeGuard, error_boundary::InvalidObject},
    runtime::{
        WatchStreamExt,
        reflector::{ObjectRef, Store, store::Writer},
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;

use crate::trouble::watch_words;

/// What a watch does with what it sees.
pub trait Watched<K>: Send + 'static {
    /// An object was added or changed; `before` is what the store had.
    fn changed(&mut self, before: Option<Arc<K>>, after: &K);
    /// An object was deleted.
    fn deleted(&mut self, object: &K);
    /// The store was filled anew: whatever is not in it is gone, and nothing else says so.
    fn listed(&mut self);
    /// An object could not be read.
    fn unreadable(&mut self, object: &InvalidObject);
    /// An object that could not be read can be read again, or is gone.
    fn readable(&mut self, metadata: &ObjectMeta);
}

/// Watches one kind for ever.
pub async fn run<K>(api: Api<DeserializeGuard<K>>, config: watcher::Config, writer: Writer<K>, watched: impl Watched<K>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let mut reader = Reader { store: writer.as_reader(), writer, watched };
    let mut events = watcher::watcher(api, config).default_backoff().boxed();
    loop {
        match events.try_next().await {
            Ok(Some(event)) => reader.take(event),
            Ok(None) => return,
            Err(error) => {
                let error = watch_words(&error);
                tracing::warn!(kind = %K::kind(&()), error, "watch failed, it is tried again");
            }
        }
    }
}

struct Reader<K: Resource<DynamicType = ()> + Clone + 'static, W> {
    store: Store<K>,
    writer: Writer<K>,
    watched: W,
}

impl<K, W> Reader<K, W>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
    W: Watched<K>,
{
    fn take(&mut self, event: Event<DeserializeGuard<K>>) {
        match event {
            Event::Init => self.writer.apply_watcher_event(&Event::Init),
            Event::InitDone => {
                self.writer.apply_watcher_event(&Event::InitDone);
                self.watched.listed();
            }
            Event::InitApply(DeserializeGuard(Ok(object))) => {
                self.watched.readable(object.meta());
                self.writer.apply_watcher_event(&Event::InitApply(slim(object)));
            }
            Event::InitApply(DeserializeGuard(Err(invalid))) => {
                self.watched.unreadable(&invalid);
                if let Some(before) = self.before(&invalid.metadata) {
                    self.writer.apply_watcher_event(&Event::InitApply((*before).clone()));
                }
            }
            Event::Apply(DeserializeGuard(Ok(object))) => {
                let before = self.before(object.meta());
                let object = slim(object);
                self.watched.readable(object.meta());
                // The store first: who is marked reads it.
                self.writer.apply_watcher_event(&Event::Apply(object.clone()));
                self.watched.changed(before, &object);
            }
            Event::Apply(DeserializeGuard(Err(invalid))) => self.watched.unreadable(&invalid),
            Event::Delete(DeserializeGuard(object)) => self.delete(object),
        }
    }

    fn delete(&mut self, object: Result<K, InvalidObject>) {
        let metadata = object.as_ref().map_or_else(|invalid| &invalid.metadata, K::meta).clone();
        self.watched.readable(&metadata);
        let object = object.ok().or_else(|| self.before(&metadata).map(|before| (*before).clone()));
        if let Some(object) = object {
            self.writer.apply_watcher_event(&Event::Delete(object.clone()));
            self.watched.deleted(&object);
        }
    }

    fn before(&self, metadata: &ObjectMeta) -> Option<Arc<K>> {
        let name = metadata.name.as_deref()?;
        let key = ObjectRef::new(name);
        self.store.get(&match metadata.namespace.as_deref() {
            Some(namespace) => key.within(namespace),
            None => key,
        })
    }
}

/// Managed fields are half of many objects, and nothing here reads them.
fn slim<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Watched<ConfigMap> for Seen {
        fn changed(&mut self, before: Option<Arc<ConfigMap>>, after: &ConfigMap) {
            self.0.push(format!("{} changed, had {:?}", name(after), before.and_then(|b| b.data.clone())));
        }
        fn deleted(&mut self, object: &ConfigMap) {
            self.0.push(format!("{} deleted", name(object)));
        }
        fn listed(&mut self) {
            self.0.push("listed".to_owned());
        }
        fn unreadable(&mut self, object: &InvalidObject) {
            self.0.push(format!("{} unreadable", object.metadata.name.as_deref().unwrap()));
        }
        fn readable(&mut self, _: &ObjectMeta) {}
    }

    fn name(object: &ConfigMap) -> &str {
        object.metadata.name.as_deref().unwrap()
    }

    fn object(name: &str, data: Value) -> DeserializeGuard<ConfigMap> {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "n"}, "data": data})).unwrap()
    }

    fn reader() -> Reader<ConfigMap, Seen> {
        let (store, writer) = reflector::store();
        Reader { store, writer, watched: Seen::default() }
    }

    fn names(reader: &Reader<ConfigMap, Seen>) -> Vec<String> {
        let mut names: Vec<_> = reader.store.state().iter().map(|object| name(object).to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_bad_object_next_to_good_ones_stops_nothing_and_keeps_what_it_was() {
        let mut reader = reader();
        reader.take(Event::Init);
        reader.take(Event::InitApply(object("a", json!({"k": "1"}))));
        reader.take(Event::InitApply(object("bad", json!("nonsense"))));
        reader.take(Event::InitApply(object("b", json!({}))));
        reader.take(Event::InitDone);
        assert_eq!(names(&reader), ["a", "b"]);
        reader.take(Event::Apply(object("a", json!("nonsense"))));
        let kept = reader.store.get(&ObjectRef::new("a").within("n")).unwrap();
        assert_eq!(kept.data.as_ref().unwrap()["k"], "1", "what was readable stays");
        reader.take(Event::Apply(object("a", json!({"k": "2"}))));
        assert_eq!(
            reader.watched.0,
            ["bad unreadable", "listed", "a unreadable", r#"a changed, had Some({"k": "1"})"#,]
        );
    }

    #[test]
    fn a_bad_object_stays_what_it_was_over_a_new_list_and_goes_with_its_deletion() {
        let mut reader = reader();
        reader.take(Event::Init);
        reader.take(Event::InitApply(object("a", json!({"k": "1"}))));
        reader.take(Event::InitDone);
        reader.take(Event::Init);
        reader.take(Event::InitApply(object("a", json!("nonsense"))));
        reader.take(Event::InitDone);
        assert_eq!(names(&reader), ["a"]);
        reader.take(Event::Delete(object("a", json!("nonsense"))));
        assert!(names(&reader).is_empty());
        assert_eq!(reader.watched.0.last().unwrap(), "a deleted");
    }
}
