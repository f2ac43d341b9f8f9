//! The sidecar of Cotter: verifies, decides, forwards, proves.
//!
//! One request goes through [`front`] in one fixed order: hygiene, token, strict JSON, revision and headers, session, method,
//! limits, verified catalogue, decision, forwarding, audit. Everything that can refuse does so through [`respond`].

pub mod admin;
pub mod audit;
pub mod authorize;
pub mod bootstrap;
pub mod contact;
pub mod control;
pub mod conversation;
pub mod envelope;
pub mod exchange;
pub mod front;
pub mod hygiene;
pub mod keeper;
pub mod ledger;
pub mod legacy;
pub mod limit;
pub mod listen;
pub mod metadata;
pub mod metrics;
pub mod modern;
pub mod random;
pub mod reader;
pub mod respond;
pub mod revision;
pub mod schemas;
pub mod server_info;
pub mod session;
pub mod sidecar;
pub mod socket;
pub mod spending;
pub mod state;
pub mod token;
pub mod tools;
pub mod upstream;
pub mod uses;

pub use sidecar::{Config, Sidecar, StartError};
