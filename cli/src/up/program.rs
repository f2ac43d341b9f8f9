//! Which program a manifest's command starts, and whether it is still the same one.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Finds a command as a shell would, and after that beside this program: the examples are built there.
pub(crate) fn find(command: &str, folder: &Path) -> Option<PathBuf> {
    if command.contains('/') {
        let path = folder.join(command);
        return is_program(&path).then_some(path);
    }
    let own = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_path_buf));
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(own).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| Some(folder.join(command)).filter(|path| is_program(path)))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What tells one release of a program from the next: the file behind every link, and when it was last put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Release {
    /// The release that a path leads to now; nothing while there is none, as in the middle of an upgrade.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let found = fs::metadata(&path).ok()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), size: found.size(), changed, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_on_the_path_or_in_the_folder() {
        assert!(find("sh", Path::new("/")).is_some_and(|path| path.is_absolute()));
        assert_eq!(find("bin/sh", Path::new("/")), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find("no-such-program-here", Path::new("/")), None);
        assert_eq!(find("./no-such-program-here", Path::new("/")), None);
    }

    #[test]
    fn a_file_that_is_replaced_is_another_release() {
        let folder = std::env::temp_dir().join(format!("cotter-release-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, next) = (folder.join("program"), folder.join("next"));
        fs::write(&path, "one").unwrap();
        let first = Release::of(&path);
        assert!(first.is_some());
        assert_eq!(first, Release::of(&path));
        fs::write(&next, "two").unwrap();
        fs::rename(&next, &path).unwrap();
        assert_ne!(first, Release::of(&path));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(Release::of(&path), None);
    }
}
