//! The programs under test and the installed ones, found as `tests/run` lays them out.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The root of the checkout.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// A program of ours: in `COTTER_TEST_BIN`, else beside the test that runs.
#[must_use]
pub fn ours(name: &str) -> PathBuf {
    let folder = env::var_os("COTTER_TEST_BIN").map(PathBuf::from).unwrap_or_else(|| {
        let test = env::current_exe().unwrap();
        test.parent().and_then(Path::parent).unwrap().to_path_buf()
    });
    let path = folder.join(name);
    assert!(path.is_file(), "{} is not built: cargo build --workspace", path.display());
    path
}

/// The installed public programs.
#[must_use]
pub fn tools() -> PathBuf {
    let path = env::var_os("COTTER_TEST_TOOLS").map_or_else(|| root().join(".cache/tools"), PathBuf::from);
    assert!(path.is_dir(), "{} is missing: tests/run --only tools", path.display());
    path
}

/// What a program said.
#[derive(Debug)]
pub struct Said {
    /// The exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run(command: &mut Command) -> Self {
        Self::of(command.output().unwrap())
    }

    /// What a program that ended has said.
    #[must_use]
    pub fn of(output: Output) -> Self {
        let Output { status, stdout, stderr } = output;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// Asserts that a command succeeded.
    ///
    /// # Panics
    /// If it did not.
    pub fn succeeded(&self) {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
    }

    /// The standard output of a command that succeeded.
    ///
    /// # Panics
    /// If it did not.
    #[must_use]
    pub fn good(self) -> String {
        self.succeeded();
        self.out
    }
}
