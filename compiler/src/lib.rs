//! `compile(World) -> Plan`: from resources, key sets, policies and reports to the snapshot that sidecars enforce, the
//! objects that a cluster is to have, and what status says. Pure: no clock, no IO, no cluster.

mod build;
mod chain;
mod compile;
pub mod delegation;
mod delegations;
mod keys;
mod local;
mod notice;
pub mod plan;
pub mod problem;
pub mod server;
mod snapshot;
mod upstream;
pub mod validate;
mod verdict;
pub mod world;

pub use build::{LABEL_SERVER, MANAGED_BY, OPERATOR_AUDIENCE, observed_name, service_account_name};
pub use compile::compile;
pub use delegations::Delegations;
pub use plan::Plan;
pub use verdict::{
    delegation::{Servers, delegation_status},
    pin::orphan_pin_status,
};
pub use world::World;
