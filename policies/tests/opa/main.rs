//! The rules mean the same in the public engine: `opa` checks and tests the library, and decides as Cotter does on every case, on
//! generated inputs and on malformed ones.

// `cfg(test)` is true of the whole program; clippy asks for it before it lets a fixture unwrap.
#[cfg(test)]
mod answers;
#[cfg(test)]
mod bodies;
#[cfg(test)]
mod cases;
#[cfg(test)]
#[path = "../policies/dice.rs"]
mod dice;
#[cfg(test)]
mod differences;
#[cfg(test)]
mod functions;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod inputs;
#[cfg(test)]
mod library;
#[cfg(test)]
mod malformed;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod program;
