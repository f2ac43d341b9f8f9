//! The command line of Cotter.
fn main() {}
