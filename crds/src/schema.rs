//! Schemas of the strings and lists that several fields share.
//!
//! The API server limits the cost of CEL rules by the declared maxima, and `kubectl` shows the messages of the rules;
//! so each of these functions gives a maximum, and a rule wherever a pattern alone would not say what to write.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::rule::{self, Rule};

/// The value of `x-kubernetes-validations` for these rules.
pub(crate) fn rules(rules: &[Rule]) -> Value {
    rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect()
}

/// As [`rules`], each reported at a field below the one that has the rule.
pub(crate) fn rules_at(field: &str, rules: &[Rule]) -> Value {
    rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message, "fieldPath": field})).collect()
}

/// A string of at most `max` characters that satisfies the rules.
pub(crate) fn string(max: u32, rules_: &[Rule]) -> Schema {
    json_schema!({"type": "string", "maxLength": max, "x-kubernetes-validations": rules(rules_)})
}

/// A string of 1 to `max` characters without a rule.
fn text(max: u32) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": max})
}

/// A list without duplicates.
fn set(max: u32, items: &Schema) -> Schema {
    json_schema!({"type": "array", "maxItems": max, "items": items, "x-kubernetes-list-type": "set"})
}

fn with_rules(mut schema: Schema, rules_: &[Rule]) -> Schema {
    schema.insert("x-kubernetes-validations".to_owned(), rules(rules_));
    schema
}

/// An object of which nothing is declared: what is in it is kept as it is.
pub(crate) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// An object of which only the name is declared: the definition of a tool as the server gave it.
pub(crate) fn definition(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 1024}},
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// An absolute time, RFC 3339.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

macro_rules! strings {
    ($($(#[$doc:meta])* $name:ident($max:expr) = [$($rule:expr),*];)*) => {
        $($(#[$doc])*
        pub(crate) fn $name(_: &mut SchemaGenerator) -> Schema {
            string($max, &[$($rule),*])
        })*
    };
}

strings! {
    /// A DNS label.
    label(63) = [rule::DNS_LABEL];
    /// The name of an object.
    object_name(253) = [rule::DNS_SUBDOMAIN];
    /// The key of a Secret or ConfigMap.
    data_key(253) = [rule::DATA_KEY];
    audience(512) = [rule::AUDIENCE];
    scope(256) = [rule::SCOPE];
    tenant(128) = [rule::TENANT];
    claim(128) = [rule::CLAIM];
    tool_name(128) = [rule::TOOL_NAME];
    pointer(256) = [rule::POINTER];
    url(2048) = [rule::URL];
    /// A URL from which keys are fetched, or by which tokens name their issuer.
    key_url(2048) = [rule::URL, rule::ENCRYPTED];
    issuer(512) = [rule::URL_WITHOUT_QUERY, rule::ENCRYPTED];
    public_url(2048) = [rule::URL_WITHOUT_QUERY, rule::ENCRYPTED_OR_LOOPBACK];
    agent_url(2048) = [rule::URL, rule::ENCRYPTED];
    path(1024) = [rule::HTTP_PATH];
    image(512) = [rule::IMAGE];
    header(64) = [rule::HEADER];
    header_prefix(64) = [rule::HEADER_PREFIX];
    digest(71) = [rule::DIGEST];
    fingerprint(128) = [rule::FINGERPRINT];
    card_fingerprint(128) = [rule::CARD_SCHEME];
    rate(10) = [rule::RATE];
    /// How long one call may take.
    timeout(16) = [rule::TIMEOUT];
    second_to_hour(16) = [rule::SECOND_TO_HOUR];
    up_to_day(16) = [rule::UP_TO_DAY];
    second_to_day(16) = [rule::SECOND_TO_DAY];
}

/// The name of a pinned prompt, template or resource: these may be titles or URIs.
pub(crate) fn item_name(_: &mut SchemaGenerator) -> Schema {
    text(1024)
}

/// One line that a person wrote.
pub(crate) fn line(_: &mut SchemaGenerator) -> Schema {
    text(1024)
}

/// The subject of a token, compared byte for byte.
pub(crate) fn subject(_: &mut SchemaGenerator) -> Schema {
    text(255)
}

/// Up to 128 words of a command line.
pub(crate) fn words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 128,
        "x-kubernetes-list-type": "atomic",
        "items": {"type": "string", "maxLength": 8192},
    })
}

fn byte_count(rule: Rule) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 12,
        "x-kubernetes-validations": rules(&[rule]),
    })
}

/// How large a request may be.
pub(crate) fn request_bytes(_: &mut SchemaGenerator) -> Schema {
    byte_count(rule::REQUEST_BYTES)
}

/// How large a result may be.
pub(crate) fn result_bytes(_: &mut SchemaGenerator) -> Schema {
    byte_count(rule::RESULT_BYTES)
}

/// The revisions of the protocol that clients may speak.
pub(crate) fn revisions(_: &mut SchemaGenerator) -> Schema {
    let items = json_schema!({"type": "string", "enum": crate::server::REVISIONS});
    let mut schema = set(8, &items);
    schema.insert("minItems".to_owned(), json!(1));
    schema
}

pub(crate) fn extensions(_: &mut SchemaGenerator) -> Schema {
    set(16, &string(128, &[rule::EXTENSION]))
}

pub(crate) fn hosts(_: &mut SchemaGenerator) -> Schema {
    set(32, &string(261, &[rule::HOST]))
}

pub(crate) fn origins(_: &mut SchemaGenerator) -> Schema {
    set(32, &string(269, &[rule::ORIGIN]))
}

/// The tenants that may be here: names, or `*` alone.
pub(crate) fn admitted_tenants(_: &mut SchemaGenerator) -> Schema {
    with_rules(set(256, &string(128, &[rule::TENANT_OR_ANY])), &[rule::ANY_STANDS_ALONE])
}

/// The tenants of a delegation: at least one, by name.
pub(crate) fn delegated_tenants(_: &mut SchemaGenerator) -> Schema {
    with_rules(set(64, &string(128, &[rule::TENANT])), &[rule::TENANTS_NOT_EMPTY])
}

/// Scopes, possibly none.
pub(crate) fn scopes(_: &mut SchemaGenerator) -> Schema {
    set(64, &string(256, &[rule::SCOPE]))
}

/// The scopes of a delegation: at least one.
pub(crate) fn delegated_scopes(generator: &mut SchemaGenerator) -> Schema {
    with_rules(scopes(generator), &[rule::SCOPES_NOT_EMPTY])
}

/// The effects of a delegation: at least one.
pub(crate) fn delegated_effects(_: &mut SchemaGenerator) -> Schema {
    let items = json_schema!({"type": "string", "enum": ["Read", "Write", "Destructive", "External"]});
    with_rules(set(4, &items), &[rule::EFFECTS_NOT_EMPTY])
}

/// Patterns of tool names.
pub(crate) fn tool_globs(_: &mut SchemaGenerator) -> Schema {
    with_rules(set(128, &string(128, &[rule::TOOL_GLOB])), &[rule::TOOLS_NOT_EMPTY])
}

/// What is left out of a fingerprint.
pub(crate) fn pointers(_: &mut SchemaGenerator) -> Schema {
    set(16, &string(256, &[rule::POINTER]))
}

/// Bounded strings in a status, which only the operator writes.
pub(crate) fn status_strings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 256, "items": {"type": "string", "maxLength": 1024}})
}

/// Counts in a status, which only the operator writes.
pub(crate) fn status_counts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": crate::delegation::MAX_RUNS,
        "additionalProperties": {"type": "integer", "format": "int64", "minimum": 0},
    })
}

/// One bounded string in a status, which only the operator writes.
pub(crate) fn status_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 2048})
}

/// `metav1.Condition`, merged by type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "description": "What the condition says."},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "True, False, or Unknown where it could not be told."},
                "reason": {"type": "string", "maxLength": 1024, "description": "Why, in one word that does not change."},
                "message": {"type": "string", "maxLength": 32768, "description": "What is so, where, and what to do about it."},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0, "description": "The metadata.generation that this was said about."},
                "lastTransitionTime": {"type": "string", "format": "date-time", "description": "When the status last changed."},
            },
        },
    })
}

/// Name and version of a server, both compared.
pub(crate) fn pinned_server_info(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["name", "version"],
        "properties": {"name": text(256), "version": text(256)},
    })
}

/// Claims that a token must have.
pub(crate) fn claims(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": string(256, &[rule::CLAIM_VALUE]).to_value(),
        "x-kubernetes-validations": rules(&[rule::CLAIMS_NOT_EMPTY, rule::CLAIM_NAMES]),
    })
}

/// Operations of an agent: at least one.
pub(crate) fn operations(_: &mut SchemaGenerator) -> Schema {
    let items = json_schema!({"type": "string", "enum": crate::delegation::OPERATIONS});
    with_rules(set(16, &items), &[rule::OPERATIONS_NOT_EMPTY])
}

pub(crate) fn media_types(_: &mut SchemaGenerator) -> Schema {
    set(32, &string(128, &[rule::MEDIA_TYPE]))
}

/// Keys with which a card may be signed.
pub(crate) fn thumbprints(_: &mut SchemaGenerator) -> Schema {
    set(8, &string(43, &[rule::THUMBPRINT]))
}
