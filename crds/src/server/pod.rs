//! The pods that Cotter makes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LocalObjectReference, ResourceRequirements, Toleration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{embedded, schema};

/// The sidecar's own container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sidecar {
    /// CPU and memory of the sidecar's container, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::resources")]
    pub resources: Option<ResourceRequirements>,

    /// The sidecar's image, where it is not the one that the operator was installed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::image")]
    pub image: Option<String>,
}

/// What the pods get beside server and sidecar.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Labels of the pods. Those of Cotter and of app.kubernetes.io win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "embedded::labels")]
    pub labels: BTreeMap<String, String>,

    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "embedded::annotations")]
    pub annotations: BTreeMap<String, String>,

    /// The service account of the pods, where it is not to be one of their own. Its token is never mounted into the server's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub service_account_name: Option<String>,

    /// Secrets with which images are pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::pull_secrets")]
    pub image_pull_secrets: Vec<LocalObjectReference>,

    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "embedded::labels")]
    pub node_selector: BTreeMap<String, String>,

    /// Taints of nodes that the pods tolerate, as in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::tolerations")]
    pub tolerations: Vec<Toleration>,

    /// Where pods go and do not go, as `affinity` of a pod; checked when the pods are made.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub affinity: Map<String, Value>,

    /// How pods spread, as `topologySpreadConstraints` of a pod; checked when the pods are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::open_objects")]
    pub topology_spread_constraints: Vec<Map<String, Value>>,

    /// The priority class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub priority_class_name: Option<String>,

    /// The runtime class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub runtime_class_name: Option<String>,

    /// How long the pods may take to end, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub termination_grace_period_seconds: Option<i64>,
}
