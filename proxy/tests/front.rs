//! The sidecar as a client sees it: real sockets on both sides, and a server in this process where a real one could not be made
//! to say what the test needs.

#[path = "front/desk.rs"]
mod desk;
#[path = "front/issuer.rs"]
mod issuer;
#[path = "front/rig.rs"]
mod rig;

#[path = "front/catalogue.rs"]
mod catalogue;
#[path = "front/decision.rs"]
mod decision;
#[path = "front/delegation.rs"]
mod delegation;
#[path = "front/hygiene.rs"]
mod hygiene;
#[path = "front/legacy.rs"]
mod legacy;
#[path = "front/limits.rs"]
mod limits;
#[path = "front/messages.rs"]
mod messages;
#[path = "front/modern.rs"]
mod modern;
#[path = "front/tokens.rs"]
mod tokens;
