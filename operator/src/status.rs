//! Status: written by server-side apply on `/status`, and only when it says something new.
//!
//! Clocks alone are no news. A status that differs only in when something was last seen is written at the pace of
//! [`CLOCK_PACE`]; so a cluster in which nothing happens is hardly written to, and `VERIFIED` stays meaningful.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::object::HasStatus,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{apply::MANAGER, key::ServerKey, metrics::Metrics, trouble::words};

/// How often a status is written because of a clock alone.
pub const CLOCK_PACE: Duration = Duration::from_secs(300);
/// How often it is written because something was charged to a budget: an operator that restarts has lost no more than this, and only
/// of runs that ended with it.
pub const BUDGET_PACE: Duration = Duration::from_secs(5);
/// How often it is written because a delegation was used.
pub const USES_PACE: Duration = Duration::from_secs(30);

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the status of {kind} {key}: {}", words(source))]
pub struct StatusError {
    kind: String,
    key: ServerKey,
    source: Box<kube::Error>,
}

/// A resource of ours.
pub trait Subject:
    Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
    + HasStatus<Status: Serialize + DeserializeOwned + Clone + Send + Sync>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}
impl Subject for cotter_crds::McpServer {}
impl Subject for cotter_crds::ToolPin {}
impl Subject for cotter_crds::AgentDelegation {}

/// What was last written, until the watch brings it back.
#[derive(Debug, Clone)]
struct Written {
    version: u64,
    status: Value,
    at: Instant,
}

/// Writes statuses.
pub struct StatusWriter {
    client: Client,
    metrics: Arc<Metrics>,
    written: Mutex<HashMap<(String, String), Written>>,
}

/// How a new status compares with the old one.
#[derive(Debug, PartialEq, Eq)]
enum News {
    None,
    Clock,
    Uses,
    Budget,
    Content,
}

impl StatusWriter {
    /// Writes through `client`.
    #[must_use]
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics, written: Mutex::default() }
    }

    /// The object with its newest status: the watch may not have brought back yet what was just written, and what
    /// follows from an old status (since when something is so) must not be made twice.
    pub fn freshest<K: Subject>(&self, object: &K) -> K {
        let mut object = object.clone();
        let version = version(&object);
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = written.get(&id(&object)).filter(|written| written.version > version)
            && let Ok(status) = serde_json::from_value(written.status.clone())
        {
            *object.status_mut() = Some(status);
        }
        object
    }

    /// Writes `status` where it is news against what `object` has. Says when to look again where it was held back.
    ///
    /// # Errors
    /// [`StatusError`].
    pub async fn write<K: Subject>(&self, object: &K, status: &K::Status) -> Result<Option<Duration>, StatusError> {
        let old = object.status().and_then(|status| serde_json::to_value(status).ok()).unwrap_or(Value::Null);
        let new = serde_json::to_value(status).unwrap_or(Value::Null);
        let pace = match news(&old, &new) {
            News::None => return Ok(None),
            News::Content => Duration::ZERO,
            News::Budget => BUDGET_PACE,
            News::Uses => USES_PACE,
            News::Clock => CLOCK_PACE,
        };
        let waited = self.last_write(&id(object)).map_or(pace, |at| at.elapsed());
        if waited < pace {
            return Ok(Some(pace.saturating_sub(waited)));
        }
        self.patch(object, new).await?;
        Ok(None)
    }

    async fn patch<K: Subject>(&self, object: &K, status: Value) -> Result<(), StatusError> {
        let key = ServerKey::of(object);
        let api = Api::<K>::namespaced(self.client.clone(), &key.namespace);
        let body = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": object.uid()},
            "status": status,
        });
        let params = PatchParams::apply(MANAGER).force();
        let patched = match api.patch_status(&key.name, &params, &Patch::Apply(&body)).await {
            Ok(patched) => patched,
            // Deleted, or deleted and made again: there is nobody to tell, or the watch brings the new one.
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => return Ok(()),
            Err(source) => return Err(StatusError { kind: K::kind(&()).into_owned(), key, source: Box::new(source) }),
        };
        self.metrics.status_writes.add();
        let written = Written { version: version(&patched), status, at: Instant::now() };
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(id(object), written);
        Ok(())
    }

    /// Forgets an object that is gone.
    pub fn forget<K: Resource<DynamicType = ()>>(&self, object: &K) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(&id(object));
    }

    fn last_write(&self, id: &(String, String)) -> Option<Instant> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).get(id).map(|written| written.at)
    }
}

fn id<K: Resource<DynamicType = ()>>(object: &K) -> (String, String) {
    (K::kind(&()).into_owned(), object.uid().unwrap_or_default())
}

/// Resource versions are comparable numbers since Kubernetes 1.35 (KEP-5504); before, they were numbers all the same.
fn version<K: Resource>(object: &K) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn news(old: &Value, new: &Value) -> News {
    if old == new {
        return News::None;
    }
    let (mut old, mut new) = (old.clone(), new.clone());
    let mut take = |name: &str| (take_member(&mut old, name), take_member(&mut new, name));
    take("lastVerified");
    take("checkedAt");
    let (old_uses, new_uses) = take("uses");
    let (old_budget, new_budget) = take("budget");
    if old != new {
        return News::Content;
    }
    match (old_uses == new_uses, old_budget == new_budget) {
        (_, false) => News::Budget,
        (false, true) => News::Uses,
        (true, true) => News::Clock,
    }
}

/// Removes a member of the status or of its `surface`.
fn take_member(status: &mut Value, name: &str) -> Option<Value> {
    let members = status.as_object_mut()?;
    let inner = members.get_mut("surface").and_then(Value::as_object_mut).and_then(|surface| surface.remove(name));
    members.remove(name).or(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_alone_is_no_news() {
        let old = json!({"conditions": [], "lastVerified": "2026-11-30T00:00:00Z", "surface": {"checkedAt": "a"}});
        let mut new = old.clone();
        assert_eq!(news(&old, &new), News::None);
        new["lastVerified"] = json!("2026-11-30T00:00:30Z");
        new["surface"]["checkedAt"] = json!("b");
        assert_eq!(news(&old, &new), News::Clock);
        new["uses"] = json!({"allowed": 1});
        assert_eq!(news(&old, &new), News::Uses);
        new["budget"] = json!({"charged": 1});
        assert_eq!(news(&old, &new), News::Budget);
        new["conditions"] = json!([{"type": "Ready"}]);
        assert_eq!(news(&old, &new), News::Content);
        assert_eq!(news(&Value::Null, &new), News::Content);
    }

    #[test]
    fn a_condition_that_goes_is_news() {
        let old = json!({"conditions": [{"type": "Ready"}]});
        assert_eq!(news(&old, &json!({"conditions": []})), News::Content);
    }
}
