//! How a command ends: 0 done or clean, 1 refused or differing, 2 could not do or could not check.

use std::{fmt, process::ExitCode};

/// A command that did not succeed: the message for the person, and the code for the script.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The answer is no: refused, differing, drifted.
    pub(crate) fn no(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// It could not be done or checked.
    pub(crate) fn cannot(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// The exit code, with the message on standard error. An empty message has been told already.
    pub(crate) fn tell(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("cotter: {}", self.message);
        }
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Says what was being done when something else failed.
pub(crate) trait Doing<T> {
    /// `doing` reads after "failed to".
    fn doing(self, doing: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, doing: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::cannot(format!("failed to {doing}: {error}")))
    }
}

/// What a command returns.
pub(crate) type Outcome = Result<(), Failure>;
