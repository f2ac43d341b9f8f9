//! The sidecar of Cotter: verifies, decides, forwards, proves.
//!
//! One request goes through [`front`] in one fixed order: hygiene, token, strict JSON, revision and headers, session, method,
//! limits, verified catalogue, decision, forwarding, audit. Everything that can refuse does so through [`respond`].

pub mod authorize;
pub mod reader;
pub mod upstream;
