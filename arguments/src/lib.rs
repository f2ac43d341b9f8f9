//! The arguments of a tool call, checked against the schema that the tool was approved with.
//!
//! Both sides are foreign: the schema is the server's, the arguments are the caller's, and neither may make the check slow, large or
//! fail. [`Checker::new`] looks a schema over before the library sees it, and leaves out what cannot be enforced; [`Checker::check`]
//! gives the library values that cost fuel to look at. This is the only crate that names the schema library
//! (`docs/decisions/0012-arguments.md`).

mod checker;
mod keyword;
mod mend;
mod metered;
mod problem;
mod survey;

pub use checker::{Checker, Coverage, Fault};
pub use problem::{MOST, Problem};
