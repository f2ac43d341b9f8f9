//! The schemas of real servers: each of them is checked whole, and by it a call that a client would make passes.

use std::path::Path;

use cotter_arguments::{Checker, Coverage, Fault};
use cotter_core::tool::{ToolObject, parse_list_result};
use serde_json::{Map, Value, json};

/// Every tool of every release that was captured, with the release.
fn tools() -> Vec<(String, ToolObject)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/captures");
    let mut tools = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let capture: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for page in capture["raw_tools_list"].as_array().unwrap() {
            let page: Value = serde_json::from_str(page.as_str().unwrap()).unwrap();
            let page = parse_list_result(page["result"].to_string().as_bytes()).unwrap();
            tools.extend(page.tools.into_iter().map(|tool| (path.display().to_string(), tool)));
        }
    }
    assert!(tools.len() > 500, "{} tools", tools.len());
    tools
}

/// A value that a schema of the plain kind lets pass.
fn sample(root: &Value, schema: &Value) -> Value {
    if let Some(at) = schema["$ref"].as_str() {
        return root.pointer(at.trim_start_matches('#')).map_or(Value::Null, |target| sample(root, target));
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)).or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(first) = schema["anyOf"].get(0).or_else(|| schema["oneOf"].get(0)) {
        return sample(root, first);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].get(0).and_then(Value::as_str));
    match kind.unwrap_or("object") {
        "string" => json!("a".repeat(usize::try_from(schema["minLength"].as_u64().unwrap_or(1)).unwrap())),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "null" => Value::Null,
        "array" => (0..schema["minItems"].as_u64().unwrap_or(1)).map(|_| sample(root, &schema["items"])).collect(),
        _ => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let names = required.iter().filter_map(Value::as_str);
            names.map(|name| (name.to_owned(), sample(root, &schema["properties"][name]))).collect::<Map<_, _>>().into()
        }
    }
}

#[test]
fn every_schema_of_every_release_is_checked_whole() {
    for (release, tool) in tools() {
        let checker = Checker::new(&tool.value["inputSchema"]);
        assert_eq!(checker.coverage(), &Coverage::Whole, "{} of {release}", tool.name);
    }
}

#[test]
fn what_a_tool_asks_for_passes_and_without_it_nothing_does() {
    let (mut passed, mut refused) = (0, 0);
    for (release, tool) in tools() {
        let schema = &tool.value["inputSchema"];
        let checker = Checker::new(schema);
        let good = sample(schema, schema);
        assert_eq!(checker.check(Some(&good.to_string())), Ok(()), "{} of {release}: {good}", tool.name);
        passed += 1;
        let Some(needed) = schema["required"].get(0).and_then(Value::as_str) else { continue };
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(needed);
        let Err(Fault::Broken(problems)) = checker.check(Some(&bad.to_string())) else {
            panic!("{} of {release} passes without {needed}", tool.name)
        };
        assert_eq!(problems[0].keyword, "required", "{} of {release}", tool.name);
        refused += 1;
    }
    assert!(passed > 500 && refused > 300, "{passed} {refused}");
}

#[test]
fn the_metered_values_and_the_librarys_own_are_judged_alike() {
    let odd = [
        json!({}),
        json!({"path": 1}),
        json!({"a": 1.0, "b": [1, "x", null], "path": "p"}),
        json!({"query": "q", "limit": 0.5}),
    ];
    let mut told_apart = [0, 0];
    for (release, tool) in tools() {
        let schema = &tool.value["inputSchema"];
        let library = jsonschema::options().should_validate_formats(false).build(schema).unwrap();
        let checker = Checker::new(schema);
        for arguments in odd.iter().chain([&sample(schema, schema)]) {
            let valid = library.is_valid(arguments);
            assert_eq!(
                checker.check(Some(&arguments.to_string())).is_ok(),
                valid,
                "{} of {release}: {arguments}",
                tool.name
            );
            told_apart[usize::from(valid)] += 1;
        }
    }
    assert!(told_apart.iter().all(|count| *count > 300), "{told_apart:?}");
}
