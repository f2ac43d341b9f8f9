//! The operator against a real API server: what it makes, what it says, and whom it believes.
//!
//! `KUBECONFIG=… cargo test -p cotter-operator --test plane -- --ignored`. No node is needed: pods are made by the
//! controllers and never run. The sidecars are played by the tests, with real tokens of real pods.

// `cfg(test)` is true of the whole program; clippy asks for it before it lets a fixture unwrap.
#[path = "plane/budget.rs"]
#[cfg(test)]
mod budget;
#[path = "plane/children.rs"]
#[cfg(test)]
mod children;
#[path = "plane/cluster.rs"]
#[cfg(test)]
mod cluster;
#[path = "plane/enforcement.rs"]
#[cfg(test)]
mod enforcement;
#[path = "plane/policies.rs"]
#[cfg(test)]
mod policies;
#[path = "plane/robustness.rs"]
#[cfg(test)]
mod robustness;
#[path = "plane/sidecar.rs"]
#[cfg(test)]
mod sidecar;
