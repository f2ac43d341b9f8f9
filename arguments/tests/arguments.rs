//! What is checked, what is refused, and that nobody can make the check slow or fail.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]
#![allow(clippy::too_many_lines, reason = "tables of cases")]

#[path = "arguments/captures.rs"]
mod captures;
#[path = "arguments/families.rs"]
mod families;
#[path = "arguments/faults.rs"]
mod faults;
#[path = "arguments/hostile.rs"]
mod hostile;
