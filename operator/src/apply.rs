//! Child objects by server-side apply, and only where they are not already what they should be.
//!
//! # Guarantees
//! One field manager, forced, for ever. An object of the wanted name that is not the server's own is never touched: a
//! Service of somebody else must not turn into ours because a McpServer has its name.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use cotter_compiler::plan::Children;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service, ServiceAccount},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    runtime::reflector::Store,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    compare::{APPLIED, covers, stamped},
    key::ServerKey,
    metrics::Metrics,
    stores::Stores,
    trouble::{is_namespace_terminating, words},
};

/// The field manager, for everything that the operator writes.
pub const MANAGER: &str = "cotter";

/// Why a child is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The name belongs to somebody else.
    #[error(
        "{kind} {name} exists and does not belong to this McpServer: delete it, or give the McpServer another name"
    )]
    Taken {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The API server refused.
    #[error("failed to {verb} {kind} {name}: {}", words(source))]
    Api {
        /// What was tried.
        verb: &'static str,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Why not.
        source: Box<kube::Error>,
    },
    /// An object that JSON cannot hold.
    #[error("failed to write down a child: {0}")]
    Json(#[from] serde_json::Error),
}

impl ApplyError {
    /// Whether another try can help without a change by a person.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        !matches!(self, Self::Taken { .. })
    }

    /// Whether the namespace is going away, and the server with it.
    #[must_use]
    pub fn is_farewell(&self) -> bool {
        matches!(self, Self::Api { source, .. } if is_namespace_terminating(source))
    }
}

/// What is known of an object after it was applied: it is the wanted one as long as this is what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    digest: String,
    uid: Option<String>,
    /// The generation where there is one: the status of a Deployment is nobody's business here.
    version: Option<String>,
}

/// The marks of one server's children, by kind and name.
type Marks = HashMap<(String, String), Mark>;

/// Writes children.
pub struct Applier {
    client: Client,
    metrics: Arc<Metrics>,
    /// Some values come back in another spelling (a quantity, a default inside what is ours), so that comparing alone
    /// would apply them again and again.
    marks: Mutex<HashMap<ServerKey, Marks>>,
}

impl Applier {
    /// Writes through `client`.
    #[must_use]
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics, marks: Mutex::default() }
    }

    /// Makes the children be what they should be, in an order in which each finds what it needs: who the pods run as,
    /// what they mount, the way in, the pods. One that fails does not keep the others from being tried.
    ///
    /// # Errors
    /// The first failure.
    pub async fn apply(
        &self,
        owner: &ServerKey,
        uid: &str,
        children: &Children,
        stores: &Stores,
    ) -> Result<(), ApplyError> {
        let Children { service_account, bootstrap, observed, service, deployment } = children;
        let mut first = Ok(());
        let mut note = |result: Result<(), ApplyError>| first = std::mem::replace(&mut first, Ok(())).and(result);
        match service_account {
            Some(account) => note(self.child(owner, uid, account, &stores.accounts).await),
            None => note(self.prune_account(owner, uid, &stores.accounts).await),
        }
        note(self.child(owner, uid, bootstrap, &stores.config_maps).await);
        if let Some(observed) = observed {
            note(self.child(owner, uid, observed, &stores.config_maps).await);
        }
        note(self.child(owner, uid, service, &stores.services).await);
        note(self.child(owner, uid, deployment, &stores.deployments).await);
        first
    }

    /// The only child that can stop being wanted while its server lives.
    async fn prune_account(
        &self,
        owner: &ServerKey,
        uid: &str,
        store: &Store<ServiceAccount>,
    ) -> Result<(), ApplyError> {
        let ours = |account: &ServiceAccount| {
            account.namespace().as_deref() == Some(&owner.namespace) && is_owned(account, uid)
        };
        for account in store.state_filter(ours) {
            let name = account.name_any();
            let preconditions = Some(Preconditions { uid: account.uid(), resource_version: None });
            let params = DeleteParams { preconditions, ..DeleteParams::default() };
            let api = Api::<ServiceAccount>::namespaced(self.client.clone(), &owner.namespace);
            match api.delete(&name, &params).await {
                Ok(_) => self.metrics.prunes.add(),
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(source) => return Err(failed::<ServiceAccount>("delete", &name)(source)),
            }
        }
        Ok(())
    }

    async fn child<K>(&self, owner: &ServerKey, uid: &str, wanted: &K, store: &Store<K>) -> Result<(), ApplyError>
    where
        K: Child,
    {
        let name = wanted.name_any();
        let key = ServerKey::new(owner.namespace.as_str(), name.as_str());
        let (body, digest) = stamped(wanted)?;
        let api = Api::<K>::namespaced(self.client.clone(), &owner.namespace);
        match store.get(&key.object()) {
            Some(live) if !is_owned(live.as_ref(), uid) => return Err(taken::<K>(&name)),
            Some(live) if self.is_applied(owner, live.as_ref(), &body, &digest)? => return Ok(()),
            Some(_) => {}
            // Not among what carries our label. It may exist all the same.
            None => {
                let live = api.get_opt(&name).await.map_err(failed::<K>("read", &name))?;
                if live.is_some_and(|live| !is_owned(&live, uid)) {
                    return Err(taken::<K>(&name));
                }
            }
        }
        let params = PatchParams::apply(MANAGER).force();
        let applied = api.patch(&name, &params, &Patch::Apply(&body)).await.map_err(failed::<K>("apply", &name))?;
        self.metrics.applies.add();
        tracing::info!(server = %owner, kind = %K::kind(&()), name, "applied");
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.entry(owner.clone()).or_default().insert(id(&applied), mark(&applied, &digest));
        Ok(())
    }

    fn is_applied<K: Child>(
        &self,
        owner: &ServerKey,
        live: &K,
        body: &Value,
        digest: &str,
    ) -> Result<bool, ApplyError> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.get(owner).and_then(|marks| marks.get(&id(live))) == Some(&mark(live, digest)) {
            return Ok(true);
        }
        drop(marks);
        let stamp = live.annotations().get(APPLIED);
        Ok(stamp.is_some_and(|stamp| stamp == digest) && covers(body, &serde_json::to_value(live)?))
    }

    /// Forgets what was applied for a server that is gone.
    pub fn forget(&self, owner: &ServerKey) {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }
}

/// The kinds of children.
trait Child:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}
impl Child for Deployment {}
impl Child for Service {}
impl Child for ServiceAccount {}
impl Child for ConfigMap {}

fn is_owned<K: Resource>(object: &K, uid: &str) -> bool {
    object.owner_references().iter().any(|owner| owner.uid == uid && owner.controller == Some(true))
}

fn id<K: Resource<DynamicType = ()>>(object: &K) -> (String, String) {
    (K::kind(&()).into_owned(), object.name_any())
}

fn mark<K: Resource>(object: &K, digest: &str) -> Mark {
    let generation = object.meta().generation.map(|generation| generation.to_string());
    Mark { digest: digest.to_owned(), uid: object.uid(), version: generation.or_else(|| object.resource_version()) }
}

fn taken<K: Resource<DynamicType = ()>>(name: &str) -> ApplyError {
    ApplyError::Taken { kind: K::kind(&()).into_owned(), name: name.to_owned() }
}

fn failed<K: Resource<DynamicType = ()>>(verb: &'static str, name: &str) -> impl FnOnce(kube::Error) -> ApplyError {
    let (kind, name) = (K::kind(&()).into_owned(), name.to_owned());
    move |source| ApplyError::Api { verb, kind, name, source: Box::new(source) }
}
