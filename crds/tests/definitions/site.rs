//! Every place of a schema that a manifest fills.

use serde_json::Value;

/// A place of a schema, and a value that stands there.
pub(crate) struct Site<'a> {
    /// JSON pointer into the object.
    pub(crate) pointer: String,
    /// The path as a local check writes it, and the API server where the structure is wrong.
    pub(crate) path: String,
    /// The path as the API server writes it where a rule fails: keys of maps are in brackets.
    pub(crate) rule_path: String,
    /// The path without indices and keys of maps: the place in the schema.
    pub(crate) place: String,
    pub(crate) schema: &'a Value,
}

/// The places of the schema below `spec` that this object fills.
pub(crate) fn filled<'a>(schema: &'a Value, object: &Value) -> Vec<Site<'a>> {
    let mut sites = vec![];
    let root =
        Site { pointer: String::new(), path: String::new(), rule_path: String::new(), place: String::new(), schema };
    if let (Some(schema), Some(spec)) = (schema.pointer("/properties/spec"), object.get("spec")) {
        walk(below(&root, "spec", ["spec"; 3], schema), spec, &mut sites);
    }
    sites
}

fn below<'a>(site: &Site<'_>, token: &str, [path, rule_path, place]: [&str; 3], schema: &'a Value) -> Site<'a> {
    let join =
        |a: &str, b: &str| if a.is_empty() || b.starts_with('[') { format!("{a}{b}") } else { format!("{a}.{b}") };
    let token = token.replace('~', "~0").replace('/', "~1");
    Site {
        pointer: format!("{}/{token}", site.pointer),
        path: join(&site.path, path),
        rule_path: join(&site.rule_path, rule_path),
        place: join(&site.place, place),
        schema,
    }
}

fn walk<'a>(site: Site<'a>, value: &Value, sites: &mut Vec<Site<'a>>) {
    if let (Some(properties), Some(members)) = (site.schema.get("properties"), value.as_object()) {
        for (name, schema) in properties.as_object().unwrap() {
            if let Some(member) = members.get(name) {
                walk(below(&site, name, [name; 3], schema), member, sites);
            }
        }
    }
    if let (Some(schema), Some(members)) = (site.schema.get("additionalProperties"), value.as_object()) {
        for (name, member) in members {
            walk(below(&site, name, [name, &format!("[{name}]"), "[]"], schema), member, sites);
        }
    }
    if let (Some(schema), Some(elements)) = (site.schema.get("items"), value.as_array()) {
        for (at, element) in elements.iter().enumerate() {
            let (token, index) = (at.to_string(), format!("[{at}]"));
            walk(below(&site, &token, [&index, &index, "[]"], schema), element, sites);
        }
    }
    sites.push(site);
}

/// Every place of a schema with its own schema, named as [`Site::place`].
pub(crate) fn declared(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = vec![];
    let mut open = vec![(String::new(), schema)];
    while let Some((place, schema)) = open.pop() {
        for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            open.push((if place.is_empty() { name.clone() } else { format!("{place}.{name}") }, child));
        }
        for keyword in ["items", "additionalProperties"] {
            open.extend(
                schema.get(keyword).filter(|child| child.is_object()).map(|child| (format!("{place}[]"), child)),
            );
        }
        found.push((place, schema));
    }
    found
}

/// The rules of a place: their messages.
pub(crate) fn messages(schema: &Value) -> Vec<&str> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().map(|rule| rule["message"].as_str().unwrap()).collect()
}

/// The schemas of all kinds, by kind.
pub(crate) fn schemas() -> Vec<(String, Value)> {
    let schema = |crd: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition| {
        let version = crd.spec.versions.into_iter().next().unwrap();
        let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
        (crd.spec.names.kind, serde_json::to_value(schema).unwrap())
    };
    cotter_crds::install::all().into_iter().map(schema).collect()
}
