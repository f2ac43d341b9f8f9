//! From resources to the names of the domain: every field parsed, every problem collected.
//!
//! The API server has already checked most of this by schema and CEL; a folder on a laptop has not been through it, and
//! a cluster without the webhook shows the rest as a condition. So everything is checked here, by the same parser.

mod access;
mod delegation;
mod limits;
mod pin;
mod pod;
mod server;
mod upstream;

pub use delegation::delegation;
pub use pin::{Definitions, PinCheck, conflict, pin};
pub use server::server;

/// Where a server is to run: some things are possible only in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a cluster.
    Cluster,
    /// On a laptop.
    Laptop,
}
