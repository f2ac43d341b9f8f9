//! Rego files of a person: modules, their tests, and cases.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cotter_policies::check::{self, Finding};

use crate::failure::{Doing as _, Failure};

/// Bytes of a file of cases.
const MAX_CASES: u64 = 4 << 20;

/// What some paths hold.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Modules, by path.
    pub(crate) modules: BTreeMap<String, String>,
    /// Tests in Rego, by path.
    pub(crate) tests: BTreeMap<String, String>,
    /// Cases, by path.
    pub(crate) cases: BTreeMap<String, String>,
    /// Files that are not text.
    pub(crate) unreadable: Vec<Finding>,
}

impl Sources {
    /// Reads files, and the `.rego` and `.yaml` files below folders.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut sources = Self::default();
        for path in paths {
            let metadata = fs::metadata(path).doing(format!("read {}", path.display()))?;
            if metadata.is_dir() { sources.folder(path)? } else { sources.file(path)? }
        }
        Ok(sources)
    }

    fn folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let entries = fs::read_dir(folder).doing(format!("read {}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.folder(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rego" || extension == "yaml") {
                self.file(&path)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        let name = path.display().to_string();
        let is_cases = name.ends_with(".yaml") || name.ends_with(".yml");
        let limit = if is_cases { MAX_CASES } else { check::MAX_BYTES as u64 };
        let size = fs::metadata(path).doing(format!("read {name}"))?.len();
        if size > limit {
            self.unreadable.push(too_large(name, size, limit));
            return Ok(());
        }
        let bytes = fs::read(path).doing(format!("read {name}"))?;
        let text = match check::utf8(&name, &bytes) {
            Ok(text) => text,
            Err(finding) => {
                self.unreadable.push(finding);
                return Ok(());
            }
        };
        let to = match () {
            () if name.ends_with("_test.rego") => &mut self.tests,
            () if is_cases => &mut self.cases,
            () => &mut self.modules,
        };
        to.insert(name, text);
        Ok(())
    }
}

/// A file that is not even read.
fn too_large(file: String, size: u64, limit: u64) -> Finding {
    let message = format!("the file has {size} bytes and at most {limit} are taken");
    let help = "split it by concern, or bring data in as claims, labels or arguments".to_owned();
    Finding { file, line: 1, column: 1, message, help, source: String::new() }
}
