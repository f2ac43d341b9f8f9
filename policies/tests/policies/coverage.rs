//! What the cases reach: not one line of the library is there without a case that an auditor can read.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use cotter_policies::{Sandbox, cases::Cases, library::FILES};
use serde_json::Value;

/// The file that is written anew where a case has modules.
const GLUE: &str = "cotter/modules.rego";

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What a list asks; a case asks about one tool. List and call are compared a million times in `agreement`.
const OF_LISTS: &str = "decisions := ";

/// Lines that can be reached, and those of them that no case reaches, by file.
fn reached_by_cases() -> BTreeMap<String, (BTreeSet<u32>, BTreeSet<u32>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let base: Value = read(&folder.join("base.yaml"));
    let mut lines: BTreeMap<String, (BTreeSet<u32>, BTreeSet<u32>)> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("base.yaml") {
            continue;
        }
        let cases: Cases = read(&path);
        let mut sandbox = Sandbox::new(&cases.modules).unwrap();
        cases.run(&base, &mut sandbox).unwrap();
        let of_library = |file: &str| FILES.iter().any(|(name, _)| *name == file);
        let coverage = sandbox.coverage().into_iter().filter(|file| of_library(&file.file));
        for file in coverage.filter(|file| file.file != GLUE || cases.modules.is_empty()) {
            let (all, missed) = lines.entry(file.file.clone()).or_insert_with(|| {
                let all: BTreeSet<u32> = file.covered.iter().chain(&file.missed).copied().collect();
                (all.clone(), all)
            });
            let (_, text) = FILES.iter().find(|(name, _)| *name == file.file).unwrap();
            let of_lists = |line: &u32| text.lines().nth(*line as usize - 1).unwrap().starts_with(OF_LISTS);
            missed.retain(|line| !of_lists(line));
            all.extend(file.covered.iter().chain(&file.missed));
            missed.retain(|line| !file.covered.contains(line));
        }
    }
    lines
}

#[test]
fn every_line_of_the_library_is_reached_by_a_case() {
    let lines = reached_by_cases();
    for (file, (all, missed)) in &lines {
        println!("figure: {file}: {} of {} lines are reached by a case", all.len() - missed.len(), all.len());
    }
    let files: Vec<&str> = lines.keys().map(String::as_str).collect();
    let mut expected: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(files, expected, "a file of which no line is known is not reached");
    let missed: Vec<_> = lines.iter().filter(|(_, (_, missed))| !missed.is_empty()).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
