//! The domain of Cotter, pure: names, tool definitions, fingerprints, drift, grants, decisions, snapshots, reports.
//!
//! Nothing here does IO, reads a clock or knows Kubernetes. A time that matters is passed in.

pub mod ambiguity;
pub mod audit;
pub mod budget;
pub mod catalogue;
pub mod decision;
pub mod drift;
pub mod effect;
pub mod fingerprint;
pub mod grant;
pub mod name;
pub mod normalise;
pub mod pointer;
pub mod principal;
pub mod reason;
pub mod report;
pub mod scan;
pub mod snapshot;
pub mod strict;
pub mod tool;
