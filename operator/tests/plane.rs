//! The operator against a real API server: what it makes, what it says, and whom it believes.
//!
//! `KUBECONFIG=… cargo test -p cotter-operator --test plane -- --ignored`. No node is needed: pods are made by the
//! controllers and never run. The sidecars are played by the tests, with real tokens of real pods.

#[path = "plane/children.rs"]
mod children;
#[path = "plane/cluster.rs"]
mod cluster;
#[path = "plane/enforcement.rs"]
mod enforcement;
#[path = "plane/robustness.rs"]
mod robustness;
#[path = "plane/sidecar.rs"]
mod sidecar;
