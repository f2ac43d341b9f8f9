//! A folder of manifests that a test may change: a copy of an example.

use std::{fs, path::Path};

use jiff::{Timestamp, ToSpan as _};
use tempfile::TempDir;

use crate::programs::root;

/// A copy of an example's manifests and files.
#[derive(Debug)]
pub struct Folder {
    temp: TempDir,
    name: String,
}

impl Folder {
    /// Copies an example. Delegations are made to expire a month from now: a date in an example passes, and its test should not.
    ///
    /// # Panics
    /// If the example is not there.
    #[must_use]
    pub fn of_example(name: &str) -> Self {
        let folder = Self { temp: tempfile::tempdir().unwrap(), name: name.to_owned() };
        copy(&root().join("examples").join(name), &folder.path());
        folder
    }

    /// An empty folder.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn empty(name: &str) -> Self {
        let folder = Self { temp: tempfile::tempdir().unwrap(), name: name.to_owned() };
        fs::create_dir_all(folder.path()).unwrap();
        folder
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> std::path::PathBuf {
        self.temp.path().join(&self.name)
    }

    /// A place beside it, for state.
    #[must_use]
    pub fn state(&self) -> std::path::PathBuf {
        self.temp.path().join("state")
    }

    /// Writes a file.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).unwrap();
    }

    /// Changes a file, and asserts that there was something to change.
    ///
    /// # Panics
    /// If the text is not in the file.
    pub fn replace(&self, file: &str, from: &str, to: &str) {
        let path = self.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} does not say {from:?}");
        fs::write(path, text.replace(from, to)).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        let is_manifest = path.extension().is_some_and(|extension| extension == "yaml");
        if path.is_dir() && !path.ends_with("src") {
            copy(&path, &target);
        } else if is_manifest {
            fs::write(target, with_time_left(&fs::read_to_string(&path).unwrap())).unwrap();
        } else if path.is_file() && path.extension().is_none_or(|extension| extension != "toml") {
            fs::copy(&path, target).unwrap();
        }
    }
}

/// The manifest with every `expiresAt` a month from now.
///
/// # Panics
/// If time itself is out of range.
#[must_use]
pub fn with_time_left(text: &str) -> String {
    let month = Timestamp::from_second(Timestamp::now().checked_add((30 * 24).hours()).unwrap().as_second()).unwrap();
    let line = |line: &str| match line.split_once("expiresAt:") {
        Some((before, _)) => format!("{before}expiresAt: \"{month}\"\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}
