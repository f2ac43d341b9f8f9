//! The Rego library of Cotter, its cases and the engine that decides.
//!
//! [`Policy::prepare`] takes a snapshot's rule set in, once; [`Policy::decide`] answers for one tool and [`Policy::visible`] for a list,
//! by the same rules. Neither does IO nor reads a clock. This is the only crate that names the engine.
//!
//! Fail closed: whatever is undefined, malformed, wrong, or too slow is a refusal with its own reason.

mod answer;
mod arguments;
mod ask;
mod authority;
pub mod cases;
pub mod check;
mod contract;
pub mod document;
mod engine;
mod exact;
mod facts;
pub mod guard;
mod input;
pub mod library;
mod modules;
mod names;
mod near;
mod policy;
mod reads;
mod sandbox;
mod syntax;
mod value;

pub use ask::{Ask, ListAsk, Listed, PinFacts, Verdict};
pub use authority::Authority;
pub use contract::unlike;
pub use engine::stuck;
pub use policy::{Policy, PolicyError};
pub use reads::Reads;
pub use sandbox::{
    Coverage, Evaluation, Explanation, Layer, Report, Row, RuleReport, Sandbox, SandboxError, Stop, Suite, Test,
};
