//! The arrows between the crates, held by a test: if a name is on the wrong side of one, the concept moves, not the arrow.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// What each crate may know of ours.
const ARROWS: [(&str, &[&str]); 10] = [
    ("cotter-core", &[]),
    ("cotter-arguments", &["cotter-core"]),
    ("cotter-policies", &["cotter-core"]),
    ("cotter-crds", &["cotter-core"]),
    ("cotter-compiler", &["cotter-core", "cotter-crds", "cotter-policies"]),
    ("cotter-proxy", &["cotter-arguments", "cotter-core", "cotter-policies"]),
    ("cotter-operator", &["cotter-core", "cotter-crds", "cotter-compiler"]),
    ("cotter-cli", &["cotter-core", "cotter-crds", "cotter-compiler", "cotter-policies", "cotter-proxy"]),
    ("cotter-bench", &["cotter-core", "cotter-policies", "cotter-proxy"]),
    ("support-desk", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Every dependency of every crate of ours, by name; those for tests only are left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let names = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .collect()
    };
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), names(package))).collect()
}

fn is_ours(name: &str) -> bool {
    ARROWS.iter().any(|(ours, _)| *ours == name)
}

#[test]
fn crates_know_only_what_they_may() {
    let dependencies = dependencies();
    for (name, allowed) in ARROWS {
        let known: BTreeSet<&str> =
            dependencies[name].iter().map(String::as_str).filter(|name| is_ours(name)).collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        assert!(known.is_subset(&allowed), "{name} knows {known:?} and may know {allowed:?}");
    }
}

#[test]
fn every_crate_has_its_arrows_stated() {
    let stated: BTreeSet<String> =
        ARROWS.iter().map(|(name, _)| (*name).to_owned()).chain(["cotter-tests".to_owned()]).collect();
    let found: BTreeSet<String> = dependencies().into_keys().collect();
    assert_eq!(found, stated);
}

#[test]
fn kube_is_unknown_to_the_data_plane_and_to_the_domain() {
    let dependencies = dependencies();
    for name in ["cotter-core", "cotter-arguments", "cotter-policies", "cotter-proxy"] {
        let kube: Vec<_> =
            dependencies[name].iter().filter(|name| name.starts_with("kube") || *name == "k8s-openapi").collect();
        assert!(kube.is_empty(), "{name} knows {kube:?}");
    }
    assert!(dependencies["cotter-operator"].contains("kube"), "this test looks at the wrong names");
    assert_eq!(mentions("proxy/src", &["kube::", "k8s_openapi", "cotter_crds"]), Vec::<String>::new());
}

#[test]
fn regorus_is_known_to_policies_alone() {
    for (name, known) in dependencies() {
        assert_eq!(known.contains("regorus"), name == "cotter-policies", "{name}");
    }
}

#[test]
fn jsonschema_is_known_to_arguments_alone() {
    for (name, known) in dependencies() {
        assert_eq!(known.contains("jsonschema"), name == "cotter-arguments", "{name}");
    }
}

/// Lines of Rust below a folder that say one of the words, as `file:line`.
fn mentions(folder: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in rust_files(&root().join(folder)) {
        for (index, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) && !line.trim_start().starts_with("//") {
                found.push(format!("{}:{}", file.display(), index + 1));
            }
        }
    }
    found
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => files.extend(rust_files(&path)),
            Some(extension) if extension == "rs" => files.push(path),
            _ => {}
        }
    }
    files
}

/// Lines that no file of ours may grow beyond.
const LONGEST_FILE: usize = 400;

#[test]
fn no_file_has_outgrown_its_room() {
    for (name, _) in ARROWS {
        let folder = match name {
            "support-desk" => "examples/support-desk",
            "cotter-bench" => "benches",
            name => name.trim_start_matches("cotter-"),
        };
        for file in rust_files(&root().join(folder).join("src")) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            assert!(lines <= LONGEST_FILE, "{} has {lines} lines: split it by concern", file.display());
        }
    }
}
