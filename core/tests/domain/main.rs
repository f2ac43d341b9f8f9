//! The cases of the domain: data that an auditor can read, run over the public functions of the crate.
//!
//! `UPDATE=1 cargo test -p cotter-core --test domain` writes the golden files anew; review them before committing.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy.toml allows them in tests, and does not see that functions beside a test belong to it"
)]

mod captures;
mod drift;
mod fingerprint;
mod normalise;
mod properties;
mod releases;
mod strict;

use std::path::PathBuf;

use serde::de::DeserializeOwned;

/// A file below `tests/`.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// The cases of a YAML file.
fn cases<T: DeserializeOwned>(name: &str) -> T {
    let file = path("cases").join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
