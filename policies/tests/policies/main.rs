//! The rule set as its callers see it: cases that an auditor reads, the same decision for list and call, and what each guard refuses.

// `cfg(test)` is true of the whole program; clippy asks for it before it lets a fixture unwrap.
#[cfg(test)]
mod agreement;
#[cfg(test)]
mod annotations;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod chance;
#[cfg(test)]
mod coverage;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod dice;
#[cfg(test)]
mod freshness;
#[cfg(test)]
mod grammar;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod hiding;
#[cfg(test)]
mod modules;
#[cfg(test)]
mod narrowing;
#[cfg(test)]
mod order;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod reasons;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod remembering;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod world;
