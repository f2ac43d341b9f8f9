//! The JSON Schemas of the input and the decision are generated from the types and committed.

use std::{fs, path::Path};

use cotter_policies::document::{Input, Output};

/// Writes the files anew when `UPDATE` is set, and compares them otherwise.
fn same(file: &str, schema: &schemars::Schema) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(file);
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        committed,
        text,
        "{} is not what the types say: run `UPDATE=1 cargo test -p cotter-policies schema`",
        path.display()
    );
}

#[test]
fn the_schema_of_the_input_is_committed() {
    same("input.json", &schemars::schema_for!(Input));
}

#[test]
fn the_schema_of_the_decision_is_committed() {
    same("decision.json", &schemars::schema_for!(Output));
}
