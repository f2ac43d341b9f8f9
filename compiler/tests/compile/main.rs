//! `compile` from the outside: worlds in, plans out.
//!
//! `UPDATE=1 cargo test -p cotter-compiler` writes the golden file anew; review it before committing.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy.toml allows them in tests, and does not see that functions beside a test belong to it"
)]

mod children;
mod delegations;
mod desk;
mod examples;
mod forest;
mod local;
mod order;
mod pins;
mod policies;
mod snapshot;
mod status;
mod validation;
