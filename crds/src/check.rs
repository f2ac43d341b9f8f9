//! Judges a local file as the API server would: by the schema and the CEL rules of the installed definitions.
//!
//! Order as in the API server: fields that are not declared, then types, bounds and required fields, and only where these
//! are in order the CEL rules (so one problem is not reported twice).

use std::sync::LazyLock;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use crate::{API_VERSION, install};

mod laptop;
mod path;
mod structure;
mod suggest;

pub use path::{FieldPath, Step};

/// Where an object is going to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a cluster: exactly as its API server judges.
    Cluster,
    /// With `cotter up`: plain http:// to loopback is accepted as well, since nobody else is on that path.
    Laptop,
}

/// What is wrong with an object, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The field, as the API server writes it.
    pub path: FieldPath,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_root() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

/// A kind's schema, as JSON and with its rules compiled.
struct Definition {
    kind: String,
    schema: Value,
    rules: CompiledSchema,
}

static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let definition =
        |crd: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition| {
            let version = crd.spec.versions.into_iter().next()?;
            let schema = serde_json::to_value(version.schema?.open_api_v3_schema?).ok()?;
            Some(Definition { kind: crd.spec.names.kind, rules: compile_schema(&schema), schema })
        };
    install::all().into_iter().filter_map(definition).collect()
});

/// The kinds that [`validate`] knows.
#[must_use]
pub fn kinds() -> Vec<&'static str> {
    DEFINITIONS.iter().map(|definition| definition.kind.as_str()).collect()
}

/// What the API server would refuse about this object: nothing if it would be accepted.
///
/// `status` and all metadata but the name are left to the API server. An object of another kind or version is one problem.
#[must_use]
pub fn validate(object: &Value, place: Place) -> Vec<Problem> {
    let definition = match definition_of(object) {
        Ok(definition) => definition,
        Err(problem) => return vec![problem],
    };
    let object = without_status(object);
    let mut problems = structure::check(&definition.schema, &object);
    problems.extend(metadata_problems(&object));
    if problems.is_empty() {
        problems = rule_problems(definition, &object);
        if place == Place::Laptop {
            problems.retain(|problem| !laptop::accepts(problem, &object));
        }
    }
    problems
}

/// The fields of an object that its kind does not have, each with what was probably meant.
#[must_use]
pub fn unknown_fields(kind: &str, object: &Value) -> Vec<Problem> {
    let definition = DEFINITIONS.iter().find(|definition| definition.kind == kind);
    definition.map(|definition| structure::unknown_fields(&definition.schema, object)).unwrap_or_default()
}

fn definition_of(object: &Value) -> Result<&'static Definition, Problem> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != API_VERSION {
        let message = format!("has to be {API_VERSION}, not {version:?}");
        return Err(Problem { path: FieldPath::root().key("apiVersion"), message });
    }
    let found = DEFINITIONS.iter().find(|definition| definition.kind == kind);
    found.ok_or_else(|| {
        let message = format!("{kind:?} is not one of {}{}", kinds().join(", "), suggest::phrase(kind, kinds()));
        Problem { path: FieldPath::root().key("kind"), message }
    })
}

/// The status of an applied object counts for nothing: the API server drops it too.
fn without_status(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    object
}

fn metadata_problems(object: &Value) -> Vec<Problem> {
    let path = FieldPath::root().key("metadata").key("name");
    match object.pointer("/metadata/name") {
        Some(Value::String(name)) if structure::is_object_name(name) => vec![],
        Some(Value::String(name)) => {
            let message = format!("{name:?} is not a name: write lower-case letters, digits, '-' and '.', at most 253");
            vec![Problem { path, message }]
        }
        Some(_) => vec![Problem { path, message: "has to be a string".to_owned() }],
        None => vec![Problem { path, message: "is required".to_owned() }],
    }
}

fn rule_problems(definition: &Definition, object: &Value) -> Vec<Problem> {
    let Err(errors) = Validator::new().validate_compiled(&definition.rules, object, None) else { return vec![] };
    let problem = |error: kube_cel::ValidationError| Problem {
        path: FieldPath::resolve(&error.field_path, object),
        message: error.message,
    };
    errors.into_vec().into_iter().map(problem).collect()
}

#[cfg(test)]
mod tests;
