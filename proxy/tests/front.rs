//! The sidecar as a client sees it: real sockets on both sides, and a server in this process where a real one could not be made
//! to say what the test needs.

#[cfg(test)]
#[path = "front/desk.rs"]
mod desk;
#[cfg(test)]
#[path = "front/issuer.rs"]
mod issuer;
#[cfg(test)]
#[path = "front/rig.rs"]
mod rig;

#[cfg(test)]
#[path = "front/agreement.rs"]
mod agreement;
#[cfg(test)]
#[path = "front/arguments.rs"]
mod arguments;
#[cfg(test)]
#[path = "front/budget.rs"]
mod budget;
#[cfg(test)]
#[path = "front/catalogue.rs"]
mod catalogue;
#[cfg(test)]
#[path = "front/decision.rs"]
mod decision;
#[cfg(test)]
#[path = "front/delegation.rs"]
mod delegation;
#[cfg(test)]
#[path = "front/hygiene.rs"]
mod hygiene;
#[cfg(test)]
#[path = "front/legacy.rs"]
mod legacy;
#[cfg(test)]
#[path = "front/limits.rs"]
mod limits;
#[cfg(test)]
#[path = "front/messages.rs"]
mod messages;
#[cfg(test)]
#[path = "front/modern.rs"]
mod modern;
#[cfg(test)]
#[path = "front/staleness.rs"]
mod staleness;
#[cfg(test)]
#[path = "front/swap.rs"]
mod swap;
#[cfg(test)]
#[path = "front/tokens.rs"]
mod tokens;
