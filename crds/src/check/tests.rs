use serde_json::json;

use super::*;

fn server() -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "McpServer", "metadata": {"name": "support"},
        "spec": {"audience": "support://mcp", "upstream": {"remote": {"url": "https://mcp.example.com/mcp"}}},
    })
}

fn problems(change: impl FnOnce(&mut Value), place: Place) -> Vec<String> {
    let mut object = server();
    change(&mut object);
    validate(&object, place).iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_object_has_no_problem() {
    assert_eq!(problems(|_| {}, Place::Cluster), Vec::<String>::new());
}

#[test]
fn an_unknown_field_is_named_with_what_was_meant() {
    let found =
        problems(|o| o["spec"]["tools"] = json!([{"name": "a", "scopes": "x", "effect": "Read"}]), Place::Cluster);
    assert!(found[0].starts_with("spec.tools[0].scopes: unknown field \"scopes\"; did you mean scope?"), "{found:?}");
    assert_eq!(found[1], "spec.tools[0].scope: is required");
}

#[test]
fn unknown_fields_are_found_without_judging_the_rest() {
    let object = json!({"spec": {"audienc": 7, "upstream": {"remote": {"URL": 1}}}, "status": {"x": 1}});
    let found: Vec<String> =
        unknown_fields("McpServer", &object).iter().map(|problem| problem.path.to_string()).collect();
    assert_eq!(found, ["spec.audienc", "spec.upstream.remote.URL", "status.x"]);
    assert_eq!(unknown_fields("McpServer", &server()), vec![]);
}

#[test]
fn null_is_not_a_value() {
    let found = problems(|o| o["spec"]["audience"] = Value::Null, Place::Cluster);
    assert_eq!(found, ["spec.audience: has to be a string, not null"]);
}

#[test]
fn status_and_metadata_are_the_api_servers() {
    let change = |o: &mut Value| {
        o["status"] = json!({"anything": 1});
        o["metadata"]["labels"] = json!({"a": "b"});
    };
    assert_eq!(problems(change, Place::Cluster), Vec::<String>::new());
}

#[test]
fn another_kind_or_version_is_one_problem() {
    let found = problems(|o| o["kind"] = json!("McpSever"), Place::Cluster);
    assert_eq!(
        found,
        ["kind: \"McpSever\" is not one of McpServer, ToolPin, AgentDelegation; did you mean McpServer?"]
    );
    let found = problems(|o| o["apiVersion"] = json!("cotter.dev/v1"), Place::Cluster);
    assert_eq!(found, ["apiVersion: has to be cotter.dev/v1alpha1, not \"cotter.dev/v1\""]);
}

#[test]
fn loopback_is_accepted_on_a_laptop_only() {
    let loopback = |o: &mut Value| o["spec"]["upstream"]["remote"]["url"] = json!("http://127.0.0.1:8000/mcp");
    assert!(problems(loopback, Place::Cluster)[0].starts_with("spec.upstream.remote.url: url is plain http://"));
    assert_eq!(problems(loopback, Place::Laptop), Vec::<String>::new());
    let elsewhere = |o: &mut Value| o["spec"]["upstream"]["remote"]["url"] = json!("http://10.0.0.1:8000/mcp");
    assert_eq!(problems(elsewhere, Place::Laptop).len(), 1);
}

#[test]
fn every_rule_of_the_definitions_compiles() {
    for definition in DEFINITIONS.iter() {
        let mut nodes = vec![&definition.rules];
        let mut rules = 0;
        while let Some(node) = nodes.pop() {
            assert!(!node.has_errors(), "{}: {:?}", definition.kind, node.compilation_errors());
            rules += node.validations.len();
            nodes.extend(node.properties.values());
            nodes.extend(node.items.as_deref().into_iter().chain(node.additional_properties.as_deref()));
        }
        assert!(rules > 10, "{} has {rules} rules", definition.kind);
    }
}

/// What [`structure`] judges, and what is for the API server alone or says nothing about values.
const KEYWORDS: [&str; 24] = [
    "type",
    "format",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "items",
    "additionalProperties",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "description",
    "default",
    "title",
    "example",
];

#[test]
fn the_definitions_use_no_keyword_that_is_not_judged() {
    let mut schemas: Vec<&Value> = DEFINITIONS.iter().map(|definition| &definition.schema).collect();
    while let Some(schema) = schemas.pop() {
        for keyword in schema.as_object().unwrap().keys() {
            assert!(KEYWORDS.contains(&keyword.as_str()), "{keyword}");
        }
        schemas.extend(schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|p| p.values()));
        schemas
            .extend(["items", "additionalProperties"].iter().filter_map(|k| schema.get(k)).filter(|s| s.is_object()));
    }
}
