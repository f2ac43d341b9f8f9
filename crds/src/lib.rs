//! The resource types of Cotter and their CustomResourceDefinitions.
//!
//! The structs hold what a manifest says, as text; parsing into the names of the domain is the compiler's. The schema
//! that is installed is [`install::all`], and the same schema checks local files ([`check`]), so that a folder is judged
//! as the API server would judge it.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type_, which the lint takes for a repetition"
)]

pub mod check;
pub mod condition;
pub mod delegation;
pub mod duration;
mod embedded;
pub mod install;
pub mod pin;
pub mod quantity;
pub mod rate;
pub mod reference;
mod rule;
mod schema;
pub mod server;

pub use delegation::{AgentDelegation, AgentDelegationSpec, AgentDelegationStatus};
pub use pin::{ToolPin, ToolPinSpec, ToolPinStatus};
pub use server::{McpServer, McpServerSpec, McpServerStatus};

/// The API group of all kinds.
pub const GROUP: &str = "cotter.dev";
/// The version of all kinds.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of all kinds.
pub const API_VERSION: &str = "cotter.dev/v1alpha1";
