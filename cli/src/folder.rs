//! A folder of manifests: every object of every file, and every problem with file, line and column.
//!
//! One broken file never stops the others. A file that was good and is now broken keeps its objects: in a cluster too, an apply
//! that fails changes nothing.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cotter_crds::check;
use serde_json::Value;

use crate::{
    columns::{self, Kind},
    located::{self, Document, Place},
};

/// A manifest is at most this large; what the API server takes is less.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Something that is wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    file: PathBuf,
    place: Place,
    line: String,
    message: String,
}

impl Problem {
    /// The problem as a person reads it: where, what, and the line itself.
    pub(crate) fn text(&self) -> String {
        let Place { line, column } = self.place;
        let mut text = format!("{}:{line}:{column}: {}\n", self.file.display(), self.message);
        if !self.line.trim().is_empty() {
            text.push_str(&format!("  {line:>4} | {}\n", self.line));
        }
        text
    }
}

/// One object of a file.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    /// As written, with the namespace filled in.
    pub(crate) value: Value,
    file: PathBuf,
    place: Place,
}

impl Manifest {
    /// What no two objects may share.
    fn key(&self) -> (String, String, String) {
        let text = |pointer: &str| self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    }
}

/// The folder as it was last read.
#[derive(Debug)]
pub(crate) struct Folder {
    files: BTreeMap<PathBuf, File>,
    namespace: String,
}

impl Default for Folder {
    fn default() -> Self {
        Self::in_namespace("default")
    }
}

#[derive(Debug, Default)]
struct File {
    text: String,
    good: Vec<Manifest>,
    problems: Vec<Problem>,
}

impl Folder {
    /// A folder whose manifests are in this namespace where they name none.
    pub(crate) fn in_namespace(namespace: &str) -> Self {
        Self { files: BTreeMap::new(), namespace: namespace.to_owned() }
    }

    /// Reads what changed. `Ok(true)` where anything did.
    pub(crate) fn reload(&mut self, root: &Path) -> std::io::Result<bool> {
        let mut changed = false;
        let paths = manifests(root)?;
        self.files.retain(|path, _| {
            let kept = paths.contains(path);
            changed |= !kept;
            kept
        });
        for path in paths {
            let file = self.files.entry(path.clone()).or_default();
            let text = read(&path);
            if file.text == *text.as_deref().unwrap_or_else(|error| error) && !file.is_new() {
                continue;
            }
            changed = true;
            file.load(path.strip_prefix(root).unwrap_or(&path), text, &self.namespace);
        }
        Ok(changed)
    }

    /// Every good object, the first where two have one name.
    pub(crate) fn objects(&self) -> Vec<&Manifest> {
        let mut seen = BTreeMap::new();
        for manifest in self.files.values().flat_map(|file| &file.good) {
            seen.entry(manifest.key()).or_insert(manifest);
        }
        seen.into_values().collect()
    }

    /// Every problem, by file and place.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.files.values().flat_map(|file| file.problems.clone()).collect();
        problems.extend(self.twins());
        problems.sort();
        problems
    }

    fn twins(&self) -> Vec<Problem> {
        let mut seen: BTreeMap<_, &Manifest> = BTreeMap::new();
        let mut twins = Vec::new();
        for manifest in self.files.values().flat_map(|file| &file.good) {
            if let Some(first) = seen.get(&manifest.key()) {
                let (kind, _, name) = manifest.key();
                let (file, place) = (first.file.display(), first.place);
                let message =
                    format!("a second {kind} named {name:?}: the first is in {file}:{} and counts", place.line);
                twins.push(Problem {
                    file: manifest.file.clone(),
                    place: manifest.place,
                    line: String::new(),
                    message,
                });
            } else {
                seen.insert(manifest.key(), manifest);
            }
        }
        twins
    }
}

impl File {
    fn is_new(&self) -> bool {
        self.text.is_empty() && self.good.is_empty() && self.problems.is_empty()
    }

    fn load(&mut self, name: &Path, text: Result<String, String>, namespace: &str) {
        let problem = |place: Place, line: &str, message: String| Problem {
            file: name.to_path_buf(),
            place,
            line: line.to_owned(),
            message,
        };
        let start = Place { line: 1, column: 1 };
        self.problems.clear();
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                self.problems.push(problem(start, "", error.clone()));
                self.text = error;
                return;
            }
        };
        let line = |place: Place| nth_line(&text, place.line).to_owned();
        match located::read(&text) {
            Err(error) => self.problems.push(problem(error.place, &line(error.place), error.message)),
            Ok(documents) => {
                let mut good = Vec::new();
                for document in &documents {
                    let found = judge(document);
                    if found.is_empty() {
                        good.extend(manifest(document, name, namespace));
                    }
                    self.problems
                        .extend(found.into_iter().map(|(place, message)| problem(place, &line(place), message)));
                }
                self.keep(good);
            }
        }
        self.text = text;
    }

    /// Takes the good objects; while the file has problems, what it had before stays for the objects that are not good now.
    fn keep(&mut self, good: Vec<Manifest>) {
        if self.problems.is_empty() {
            self.good = good;
            return;
        }
        for manifest in good {
            self.good.retain(|old| old.key() != manifest.key());
            self.good.push(manifest);
        }
    }
}

/// The problems of one document.
fn judge(document: &Document) -> Vec<(Place, String)> {
    let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
    let Some(kind) = text("/kind") else {
        return vec![(
            document.place(""),
            "not a Kubernetes object: apiVersion, kind and metadata.name are required".to_owned(),
        )];
    };
    if text("/metadata/name").is_none_or(str::is_empty) {
        return vec![(document.place("/metadata"), format!("this {kind} has no metadata.name"))];
    }
    if Kind::of(&document.value).is_none() {
        return Vec::new();
    }
    let problems = check::validate(&document.value, check::Place::Laptop);
    problems.into_iter().map(|problem| (document.place(&problem.path.pointer()), problem.to_string())).collect()
}

fn manifest(document: &Document, file: &Path, namespace: &str) -> Option<Manifest> {
    let mut value = document.value.clone();
    let metadata = value.get_mut("metadata")?.as_object_mut()?;
    metadata.entry("namespace").or_insert_with(|| Value::String(namespace.to_owned()));
    let manifest = Manifest { value, file: file.to_path_buf(), place: document.place("") };
    (!columns::name(&manifest.value).is_empty()).then_some(manifest)
}

/// The YAML and JSON files of a folder, not of its subfolders, sorted.
fn manifests(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        let is_manifest =
            path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if is_manifest && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| format!("failed to read: {error}"))?.len();
    if size > MAX_BYTES {
        return Err(format!("a manifest of {size} bytes: the limit is {MAX_BYTES}"));
    }
    let bytes = fs::read(path).map_err(|error| format!("failed to read: {error}"))?;
    String::from_utf8(bytes).map_err(|error| format!("not UTF-8 from byte {} on", error.utf8_error().valid_up_to()))
}

fn nth_line(text: &str, line: u64) -> &str {
    let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    text.lines().nth(index).unwrap_or_default()
}
