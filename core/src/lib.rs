//! The domain of Cotter, pure: names, tool definitions, fingerprints, drift, grants, decisions, snapshots, reports.
//!
//! Nothing here does IO, reads a clock or knows Kubernetes. A time that matters is passed in.

pub mod decision;
pub mod effect;
pub mod grant;
pub mod name;
pub mod principal;
pub mod reason;
