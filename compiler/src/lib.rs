//! `compile(World) -> Plan`: from resources, key sets, policies and reports to the snapshot that sidecars enforce, the
//! objects that a cluster is to have, and what status says. Pure: no clock, no IO, no cluster.

pub mod build;
mod chain;
mod compile;
pub mod delegation;
mod delegations;
pub mod gate;
mod keys;
mod local;
pub mod modules;
mod notice;
pub mod plan;
pub mod problem;
pub mod server;
mod snapshot;
mod upstream;
pub mod validate;
mod verdict;
pub mod world;

pub use build::service_account_name;
pub use compile::compile;
/// The child that checks policy modules, for the programs that start it.
pub use cotter_policies::guard;
pub use delegations::Delegations;
pub use plan::{Children, Evidence, Notice, Observed, Plan, Process, SecretFile};
pub use verdict::{
    delegation::{Servers, delegation_status},
    pin::orphan_pin_status,
};
pub use world::{
    Charged, ClusterIssuer, ClusterSettings, Data, LONGEST_DELEGATION, Ledger, LocalSettings, Mode, Resolved,
    Unresolved, World,
};
