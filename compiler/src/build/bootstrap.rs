//! What a sidecar starts with: where the operator is, and the snapshot as of now, for a start while the operator is away.

use std::collections::BTreeMap;

use cotter_core::name::ServerRef;
use cotter_core::snapshot::{Digest, Sealed};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use serde_json::value::RawValue;

use super::metadata;
use crate::{server::Server, world::ClusterSettings};

/// The key of the ConfigMap and the name of the file.
pub const BOOTSTRAP_KEY: &str = "bootstrap.json";

/// A ConfigMap holds 1 MiB. A larger snapshot is left out: its sidecars wait for the operator at their first start.
const MAX_SNAPSHOT: usize = 900 * 1024;

#[derive(Serialize)]
struct Bootstrap<'a> {
    operator: &'a str,
    ca: &'a str,
    server: &'a ServerRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<Announced<'a>>,
}

/// A snapshot as the stream announces it: its name, and its exact bytes.
#[derive(Serialize)]
struct Announced<'a> {
    digest: Digest,
    snapshot: &'a RawValue,
}

pub(super) fn config_map(server: &Server, settings: &ClusterSettings, sealed: &Sealed) -> ConfigMap {
    let raw: Option<&RawValue> = serde_json::from_str(sealed.bytes()).ok();
    let fitting = raw.filter(|raw| raw.get().len() <= MAX_SNAPSHOT);
    let bootstrap = Bootstrap {
        operator: &settings.operator_url,
        ca: &settings.operator_ca_pem,
        server: &server.id,
        snapshot: fitting.map(|snapshot| Announced { digest: sealed.digest(), snapshot }),
    };
    let text = serde_json::to_string(&bootstrap).unwrap_or_default();
    ConfigMap {
        metadata: metadata::of(server, &metadata::bootstrap_name(server)),
        data: Some(BTreeMap::from([(BOOTSTRAP_KEY.to_owned(), text)])),
        ..ConfigMap::default()
    }
}
