//! The CustomResourceDefinitions as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use kube::CustomResourceExt;

use crate::{AgentDelegation, McpServer, ToolPin, rule};

/// Why the definitions cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {name} as YAML")]
pub struct YamlError {
    name: String,
    #[source]
    source: serde_saphyr::ser::Error,
}

/// The three definitions. This is what is installed; `McpServer::crd()` lacks the last touches that a derive cannot give.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    let server = finish(McpServer::crd(), &[rule::OBJECT_NAME]);
    let pin = finish(ToolPin::crd(), &[]);
    let delegation = finish(AgentDelegation::crd(), &[rule::NOT_ITS_OWN_PARENT]);
    vec![server, pin, delegation]
}

/// One definition as YAML, for a file or for `kubectl apply`.
///
/// # Errors
/// When the definition cannot be written, which does not happen with definitions from [`all`].
pub fn to_yaml(crd: &CustomResourceDefinition) -> Result<String, YamlError> {
    let name = crd.metadata.name.clone().unwrap_or_default();
    serde_saphyr::to_string(crd).map_err(|source| YamlError { name, source })
}

/// The three definitions as one stream of YAML documents.
///
/// # Errors
/// As [`to_yaml`].
pub fn yaml() -> Result<String, YamlError> {
    let documents: Result<Vec<String>, YamlError> = all().iter().map(to_yaml).collect();
    Ok(documents?.join("---\n"))
}

/// Adds the rules over the whole object and takes `nullable` away: a field is present with a value or absent, as in the
/// core API, and `null` is an error that names the field.
fn finish(mut crd: CustomResourceDefinition, rules: &[rule::Rule]) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) else {
            continue;
        };
        walk(schema);
        let rules = rules.iter().map(|(rule, message)| ValidationRule {
            rule: (*rule).to_owned(),
            message: Some((*message).to_owned()),
            ..ValidationRule::default()
        });
        schema.x_kubernetes_validations.get_or_insert_default().extend(rules);
        if schema.x_kubernetes_validations.as_ref().is_some_and(Vec::is_empty) {
            schema.x_kubernetes_validations = None;
        }
    }
    crd
}

fn walk(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        walk(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => walk(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(walk),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        walk(values);
    }
}
