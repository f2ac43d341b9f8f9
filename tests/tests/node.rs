//! The whole on a cluster whose node runs pods: what its user applies, sees and calls.
//!
//! `tests/run --only node` sets the stage: images loaded, the chart installed as `cotter` in `cotter-system`. Each test has a
//! namespace of its own; they take turns, because one of them takes the operator away.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

#[path = "node/desk.rs"]
mod desk;
#[path = "node/filesystem.rs"]
mod filesystem;
#[path = "node/isolation.rs"]
mod isolation;
#[path = "node/refused.rs"]
mod refused;
#[path = "node/remote.rs"]
mod remote;
#[path = "node/restart.rs"]
mod restart;
#[path = "node/said.rs"]
mod said;
#[path = "node/transcript.rs"]
mod transcript;
