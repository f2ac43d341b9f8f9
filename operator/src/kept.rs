//! Keys that were in force when the operator was last stopped, from the snapshots in the bootstrap ConfigMaps.
//!
//! A restart while an issuer cannot be reached must not take its keys away from sidecars that have them. Read once,
//! when the watches are filled and before the first pass: what somebody writes into such a ConfigMap later is put back
//! by the next pass and never believed.

use std::{
    collections::HashMap,
    sync::{OnceLock, PoisonError, RwLock},
};

use cotter_compiler::world::ClusterIssuer;
use cotter_core::snapshot::{Digest, Sealed, TrustedIssuer};
use cotter_crds::{McpServer, server::Issuer};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{key::ServerKey, stores::Stores};

/// The issuers of each server's last snapshot.
#[derive(Debug, Default)]
pub struct Kept {
    once: OnceLock<()>,
    issuers: RwLock<HashMap<ServerKey, Vec<TrustedIssuer>>>,
}

#[derive(Deserialize)]
struct Bootstrap<'a> {
    #[serde(borrow)]
    snapshot: Option<Announced<'a>>,
}

#[derive(Deserialize)]
struct Announced<'a> {
    digest: Digest,
    #[serde(borrow)]
    snapshot: &'a RawValue,
}

impl Kept {
    /// Reads what there is. Only the first time: see the module.
    pub fn read(&self, stores: &Stores) {
        self.once.get_or_init(|| {
            let servers = stores.servers.state();
            let kept = servers.iter().filter_map(|server| {
                let key = ServerKey::of(server.as_ref());
                let map = stores.config_maps.get(&bootstrap(&key).object())?;
                Some((key, issuers(server, &map)?))
            });
            *self.issuers.write().unwrap_or_else(PoisonError::into_inner) = kept.collect();
        });
    }

    /// The keys of an issuer of that name that is still the same issuer.
    pub fn keys(&self, key: &ServerKey, issuer: &Issuer) -> Option<Value> {
        let same = |known: &&TrustedIssuer| known.name == issuer.name && known.issuer.as_str() == issuer.issuer;
        self.find(key, |known| same(&known) && known.service_accounts.is_none()).map(|known| known.jwks)
    }

    /// The issuer of this cluster's service accounts.
    pub fn cluster(&self, key: &ServerKey) -> Option<ClusterIssuer> {
        let known = self.find(key, |known| known.service_accounts.is_some())?;
        Some(ClusterIssuer { issuer: known.issuer, jwks: known.jwks })
    }

    /// Forgets a server that is gone: the next of its name is another one.
    pub fn forget(&self, key: &ServerKey) {
        self.issuers.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn find(&self, key: &ServerKey, is_it: impl Fn(&TrustedIssuer) -> bool) -> Option<TrustedIssuer> {
        let issuers = self.issuers.read().unwrap_or_else(PoisonError::into_inner);
        issuers.get(key)?.iter().find(|known| is_it(known)).cloned()
    }
}

/// The issuers with keys in the snapshot that this server's own bootstrap holds.
fn issuers(server: &McpServer, map: &ConfigMap) -> Option<Vec<TrustedIssuer>> {
    let uid = server.uid()?;
    map.owner_references().iter().find(|owner| owner.uid == uid && owner.controller == Some(true))?;
    let bootstrap: Bootstrap<'_> = serde_json::from_str(map.data.as_ref()?.get("bootstrap.json")?).ok()?;
    let announced = bootstrap.snapshot?;
    let sealed = Sealed::open(announced.snapshot.get(), Some(announced.digest)).ok()?;
    let with_keys = sealed.snapshot().access.issuers.iter().filter(|issuer| has_keys(&issuer.jwks));
    Some(with_keys.cloned().collect())
}

fn has_keys(jwks: &Value) -> bool {
    jwks.get("keys").and_then(Value::as_array).is_some_and(|keys| !keys.is_empty())
}

fn bootstrap(key: &ServerKey) -> ServerKey {
    ServerKey::new(key.namespace.as_str(), format!("{}-bootstrap", key.name))
}
