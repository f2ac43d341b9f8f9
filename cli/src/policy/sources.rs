//! Rego files of a person: modules, their tests, and cases.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use cotter_policies::check::{self, Finding, LeftOut};

use crate::failure::{Doing as _, Failure};

/// Bytes of a file of cases.
pub(super) const MAX_CASES: u64 = 4 << 20;
/// Bytes of a module that is too large which are read beyond what is taken, to show the line.
const BEYOND: usize = 160;
/// Files that are read: a rule set has 32 modules at most, and each can have tests and cases.
const MAX_FILES: usize = 1000;
/// Folders inside each other.
const MAX_DEPTH: usize = 16;

/// What some paths hold.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Modules, by path.
    pub(crate) modules: BTreeMap<String, String>,
    /// Tests in Rego, by path.
    pub(crate) tests: BTreeMap<String, String>,
    /// Cases, by path.
    pub(crate) cases: BTreeMap<String, String>,
    /// Files that are not text, or too much of it.
    pub(crate) unreadable: Vec<Finding>,
    /// Modules among them.
    pub(crate) left_out: LeftOut,
}

impl Sources {
    /// Reads files, and the `.rego`, `.yaml` and `.yml` files below folders. Hidden ones are passed over, as are links to folders: a mounted
    /// ConfigMap shows each of its files a second time that way.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut sources = Self::default();
        for path in paths {
            let metadata = fs::metadata(path).doing(format!("read {}", path.display()))?;
            if metadata.is_dir() { sources.folder(path, MAX_DEPTH)? } else { sources.file(path)? }
        }
        Ok(sources)
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), Failure> {
        let entries = fs::read_dir(folder).doing(format!("read {}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.retain(|path| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b".")));
        paths.sort();
        for path in paths {
            let metadata = fs::symlink_metadata(&path).doing(format!("read {}", path.display()))?;
            if metadata.is_dir() {
                let deeper = depth.checked_sub(1);
                let deeper = deeper.ok_or_else(|| Failure::cannot(format!("{} lies too deep", path.display())))?;
                self.folder(&path, deeper)?;
            } else if !path.is_dir()
                && path.extension().is_some_and(|extension| extension == "rego" || is_yaml(extension))
            {
                self.file(&path)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        if self.modules.len() + self.tests.len() + self.cases.len() + self.unreadable.len() >= MAX_FILES {
            return Err(Failure::cannot(format!("there are more than {MAX_FILES} files here: name fewer")));
        }
        let name = path.display().to_string();
        let is_cases = path.extension().is_some_and(is_yaml);
        let read = if is_cases { cases(path, &name)? } else { rego(path, &name)? };
        let to = match () {
            () if name.ends_with("_test.rego") => &mut self.tests,
            () if is_cases => &mut self.cases,
            () => {
                read.as_ref().err().iter().for_each(|(_, beginning)| self.left_out.add(beginning));
                &mut self.modules
            }
        };
        match read {
            Ok(text) => drop(to.insert(name, text)),
            Err((finding, _)) => self.unreadable.push(finding),
        }
        Ok(())
    }
}

/// The text of a file, or why there is none, with what can be read of it.
type Read = Result<String, (Finding, String)>;

fn rego(path: &Path, name: &str) -> Result<Read, Failure> {
    let (mut bytes, limit) = (Vec::new(), check::MAX_BYTES);
    let file = fs::File::open(path).doing(format!("read {name}"))?;
    file.take((limit + BEYOND) as u64).read_to_end(&mut bytes).doing(format!("read {name}"))?;
    let is_too_large = bytes.len() > limit;
    let found = if is_too_large { Err(check::beyond(name, &bytes)) } else { check::utf8(name, &bytes) };
    Ok(found.map_err(|finding| (finding, String::from_utf8_lossy(&bytes).into_owned())))
}

fn cases(path: &Path, name: &str) -> Result<Read, Failure> {
    let Some(bytes) = bytes(path, MAX_CASES)? else {
        let message = format!("the file has more than the {MAX_CASES} bytes that are taken");
        let (file, help) = (name.to_owned(), "split it by concern".to_owned());
        return Ok(Err((Finding { file, line: 1, column: 1, message, help, source: String::new() }, String::new())));
    };
    Ok(check::utf8(name, &bytes).map_err(|finding| (finding, String::new())))
}

fn is_yaml(extension: &OsStr) -> bool {
    extension == "yaml" || extension == "yml"
}

/// The bytes of a file; nothing where there are more than the limit. No more than that is read, whatever the file says of its length.
pub(super) fn bytes(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    let name = path.display();
    let file = fs::File::open(path).doing(format!("read {name}"))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).doing(format!("read {name}"))?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}
