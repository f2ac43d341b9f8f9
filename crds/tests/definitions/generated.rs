//! The committed definitions are the generated ones.
//!
//! After a change of the types: `COTTER_UPDATE=1 cargo test -p cotter-crds --test definitions`, and commit `crds/yaml`.

use std::{env, fs, path::Path};

/// Well below the 256 KiB at which client-side `kubectl apply` stops.
const MAX_BYTES: usize = 120 * 1024;

#[test]
fn committed_definitions_are_the_generated_ones() {
    for crd in cotter_crds::install::all() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("yaml").join(format!("{}.yaml", crd.spec.names.plural));
        let generated = cotter_crds::install::to_yaml(&crd).unwrap();
        if env::var_os("COTTER_UPDATE").is_some() {
            fs::write(&path, &generated).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == generated,
            "{} is out of date: run COTTER_UPDATE=1 cargo test -p cotter-crds --test definitions and commit crds/yaml",
            path.display()
        );
        assert!(generated.len() < MAX_BYTES, "{} has {} bytes", path.display(), generated.len());
    }
}

#[test]
fn one_stream_has_all_three() {
    let stream = cotter_crds::install::yaml().unwrap();
    let kinds: Vec<serde_json::Value> = serde_saphyr::from_multiple(&stream).unwrap();
    let names: Vec<&str> = kinds.iter().filter_map(|crd| crd["spec"]["names"]["kind"].as_str()).collect();
    assert_eq!(names, ["McpServer", "ToolPin", "AgentDelegation"]);
}
