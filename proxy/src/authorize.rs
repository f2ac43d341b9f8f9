//! The permit: proof that the decision allowed one call. Sending a call demands one, so forgetting a check does not compile.

use std::sync::Arc;

use cotter_core::{fingerprint::Fingerprint, name::ToolName};

/// What was allowed. Only the decision in this crate makes one; it is used up by one call.
#[derive(Debug)]
pub struct Permit {
    tool: ToolName,
    fingerprint: Option<Fingerprint>,
    delegation: Option<Arc<str>>,
}

impl Permit {
    /// The tool that may be called.
    #[must_use]
    pub const fn tool(&self) -> &ToolName {
        &self.tool
    }
    /// The verified definition that was decided on.
    #[must_use]
    pub const fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_ref()
    }
    /// The delegation that permitted it.
    #[must_use]
    pub const fn delegation(&self) -> Option<&Arc<str>> {
        self.delegation.as_ref()
    }
}
