//! Secrets and ConfigMaps that servers refer to, each watched by its name: no other Secret of the cluster is ever read.

use cotter_compiler::world::{Data, Unresolved};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;

use crate::{
    following::{Follow, Slot},
    trouble::watch_words,
};

/// What kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Watches single objects.
#[derive(Clone)]
pub struct Objects {
    client: Client,
}

impl Objects {
    /// Watches through `client`.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    async fn watch<K>(self, source: Source, slot: Slot<Self>, data: fn(K) -> Data)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let api = Api::<K>::namespaced(self.client, &source.namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={}", source.name));
        let missing = || format!("{:?} {} does not exist in namespace {}", source.kind, source.name, source.namespace);
        let mut events = watcher(api, config).default_backoff().boxed();
        let mut seen = false;
        loop {
            match events.try_next().await {
                Ok(Some(watcher::Event::Init)) => seen = false,
                Ok(Some(watcher::Event::InitApply(object) | watcher::Event::Apply(object))) => {
                    seen = true;
                    slot.set(Ok(data(object)));
                }
                Ok(Some(watcher::Event::InitDone)) if seen => {}
                Ok(Some(watcher::Event::InitDone | watcher::Event::Delete(_))) => {
                    slot.set(Err(Unresolved::NotFound(missing())))
                }
                Ok(None) => return,
                Err(error) => {
                    let error = watch_words(&error);
                    tracing::warn!(kind = ?source.kind, namespace = source.namespace, name = source.name, error, "watch failed");
                    let why = format!("{:?} {} cannot be read: {error}", source.kind, source.name);
                    slot.fail(Unresolved::Unreachable(why));
                }
            }
        }
    }
}

impl Follow for Objects {
    type Source = Source;
    type Value = Data;

    async fn follow(self, source: Source, slot: Slot<Self>) {
        match source.kind {
            Kind::ConfigMap => self.watch::<ConfigMap>(source, slot, |map| map.data.unwrap_or_default()).await,
            Kind::Secret => self.watch::<Secret>(source, slot, secret_data).await,
        }
    }
}

/// What is text. Nothing that is referred to is anything else.
fn secret_data(secret: Secret) -> Data {
    let entries = secret.data.unwrap_or_default().into_iter();
    entries.filter_map(|(key, value)| Some((key, String::from_utf8(value.0).ok()?))).collect()
}
