//! Schemas of the parts of a pod, without the prose of the core API.
//!
//! The schemas that come with the core types carry all their documentation, which alone would make the CRD larger than
//! `kubectl apply` can store. These declare the same fields, so that what passes always decodes into the core types;
//! what has many shapes (volume sources, affinity) is open and is checked when the pod is made.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::{
    rule,
    schema::{rules, string},
};

fn text(max: u32) -> Value {
    json!({"type": "string", "maxLength": max})
}

fn name() -> Value {
    string(253, &[rule::DNS_SUBDOMAIN]).to_value()
}

fn required_text(max: u32) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max})
}

/// A selector of one key of an object.
fn key_selector() -> Value {
    json!({
        "type": "object",
        "required": ["name", "key"],
        "properties": {"name": name(), "key": required_text(253), "optional": {"type": "boolean"}},
    })
}

/// `env` of a container.
pub(crate) fn env(_: &mut SchemaGenerator) -> Schema {
    let field_ref = json!({
        "type": "object",
        "required": ["fieldPath"],
        "properties": {"apiVersion": text(63), "fieldPath": required_text(512)},
    });
    let resource_ref = json!({
        "type": "object",
        "required": ["resource"],
        "properties": {"containerName": text(63), "resource": required_text(253), "divisor": quantity()},
    });
    json_schema!({
        "type": "array",
        "maxItems": 256,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": required_text(256),
                "value": text(32768),
                "valueFrom": {
                    "type": "object",
                    "properties": {
                        "secretKeyRef": key_selector(),
                        "configMapKeyRef": key_selector(),
                        "fieldRef": field_ref,
                        "resourceFieldRef": resource_ref,
                    },
                    "minProperties": 1,
                    "maxProperties": 1,
                },
            },
        },
    })
}

/// `envFrom` of a container.
pub(crate) fn env_from(_: &mut SchemaGenerator) -> Schema {
    let source = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": name(), "optional": {"type": "boolean"}},
    });
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "properties": {"prefix": text(256), "configMapRef": source, "secretRef": source},
        },
    })
}

/// A Kubernetes quantity, as the API server writes it for the core types.
fn quantity() -> Value {
    json!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 32,
        "x-kubernetes-validations": rules(&[rule::QUANTITY]),
    })
}

/// `resources` of a container.
pub(crate) fn resources(_: &mut SchemaGenerator) -> Schema {
    let amounts = json!({"type": "object", "maxProperties": 16, "additionalProperties": quantity()});
    json_schema!({
        "type": "object",
        "properties": {
            "limits": amounts,
            "requests": amounts,
            "claims": {
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": required_text(253), "request": text(253)},
                },
            },
        },
    })
}

/// `volumes` of a pod: the name is declared, the source is kept as written.
pub(crate) fn volumes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": string(63, &[rule::DNS_LABEL, rule::VOLUME_NOT_OURS]).to_value()},
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

/// `volumeMounts` of a container.
pub(crate) fn volume_mounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["mountPath"],
        "items": {
            "type": "object",
            "required": ["name", "mountPath"],
            "properties": {
                "name": required_text(63),
                "mountPath": required_text(1024),
                "readOnly": {"type": "boolean"},
                "recursiveReadOnly": {"type": "string", "enum": ["Disabled", "Enabled", "IfPossible"]},
                "subPath": text(1024),
                "subPathExpr": text(1024),
                "mountPropagation": {"type": "string", "enum": ["None", "HostToContainer", "Bidirectional"]},
            },
        },
    })
}

/// A selector of pods by their labels, not empty.
pub(crate) fn selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": string_map(32, 63),
            "matchExpressions": {
                "type": "array",
                "maxItems": 32,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": required_text(317),
                        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": {
                            "type": "array", "maxItems": 64, "x-kubernetes-list-type": "atomic", "items": text(63),
                        },
                    },
                },
            },
        },
        "x-kubernetes-validations": rules(&[rule::SELECTOR_NOT_EMPTY]),
    })
}

fn string_map(max: u32, value: u32) -> Value {
    json!({"type": "object", "maxProperties": max, "additionalProperties": text(value)})
}

/// Labels, or a selector of nodes by theirs.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 64, "additionalProperties": text(63)})
}

/// Annotations.
pub(crate) fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 64, "additionalProperties": text(32768)})
}

/// `imagePullSecrets` of a pod.
pub(crate) fn pull_secrets(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": name()}},
    })
}

/// `tolerations` of a pod.
pub(crate) fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "properties": {
                "key": text(317),
                "operator": {"type": "string", "enum": ["Exists", "Equal", "Lt", "Gt"]},
                "value": text(63),
                "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                "tolerationSeconds": {"type": "integer", "format": "int64"},
            },
        },
    })
}

/// Objects of which nothing is declared.
pub(crate) fn open_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "atomic",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}
