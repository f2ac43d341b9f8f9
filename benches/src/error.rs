//! Why a measurement ends early.

use std::{error::Error, fmt::Display, io};

/// Why a measurement ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The system refused something.
    #[error("failed to {doing}")]
    System {
        /// What.
        doing: String,
        /// Why.
        source: io::Error,
    },
    /// Something is not as it has to be.
    #[error("{0}")]
    Wrong(String),
}

impl BenchError {
    /// For `map_err` of what the system does.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }

    /// For `map_err` of everything else.
    pub(crate) fn wrong<E: Error>(doing: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self::Wrong(format!("failed to {doing}: {error}"))
    }
}
