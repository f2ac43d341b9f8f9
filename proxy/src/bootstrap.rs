//! What a sidecar in a pod starts with: where its operator is, whom it guards, and the snapshot as of the pod's start.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use cotter_core::{
    name::ServerRef,
    snapshot::{Digest, SealError, Sealed},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The bootstrap file.
#[derive(Debug, Deserialize)]
pub struct Bootstrap {
    /// The operator's URL.
    pub operator: String,
    /// The certificates that the operator's chain ends in, as PEM.
    pub ca: String,
    /// The server that the sidecar guards.
    pub server: ServerRef,
    /// The snapshot, where it fits into the file.
    #[serde(default)]
    pub snapshot: Option<Announced>,
}

/// A snapshot with the digest that it has to have.
#[derive(Debug, Deserialize)]
pub struct Announced {
    digest: Digest,
    snapshot: Box<RawValue>,
}

/// Why there is no bootstrap.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The file cannot be read.
    #[error("failed to read the bootstrap file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("failed to understand the bootstrap file {path}: {source}; it has to hold operator, ca and server")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl Bootstrap {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, BootstrapError> {
        let text = fs::read(path).map_err(|source| BootstrapError::Read { path: path.to_owned(), source })?;
        serde_json::from_slice(&text).map_err(|source| BootstrapError::Parse { path: path.to_owned(), source })
    }
}

impl Announced {
    /// Opens the snapshot.
    ///
    /// # Errors
    /// The bytes are not what the digest names, or not a snapshot.
    pub fn open(&self) -> Result<Sealed, SealError> {
        Sealed::open(self.snapshot.get(), Some(self.digest))
    }
}
