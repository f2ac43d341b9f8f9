//! `compile` from the outside: worlds in, plans out.

mod children;
mod delegations;
mod desk;
mod local;
mod pins;
mod snapshot;
mod status;
mod validation;
