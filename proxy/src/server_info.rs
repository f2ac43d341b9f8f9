//! How the server is introduced to clients: by what it says of itself, bounded. Nothing is decided on it.

use serde::Serialize;

use crate::state::Enforced;

/// `serverInfo` (2025-11-25), and the same under `_meta` (2026-07-28).
#[derive(Debug, Serialize)]
pub struct ServerInfo<'a> {
    name: &'a str,
    version: &'a str,
}

impl<'a> ServerInfo<'a> {
    /// What the server said at the last handshake; before the first one, the name that its owner gave it.
    #[must_use]
    pub fn of(enforced: &'a Enforced) -> Self {
        match &enforced.surface {
            Some(surface) => Self { name: &surface.server_name, version: &surface.server_version },
            None => Self { name: enforced.snapshot().server.name.as_str(), version: "" },
        }
    }
}
