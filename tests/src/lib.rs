//! What the tests of the whole share: the programs as a user runs them, copies of the examples, and public clients.
//!
//! Everything here is for tests, and a test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

pub mod client;
pub mod cluster;
pub mod folder;
pub mod programs;
pub mod transcript;
pub mod up;
