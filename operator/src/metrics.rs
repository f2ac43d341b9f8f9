//! Counters of the operator, as Prometheus text. Names are stable; nothing here has an unbounded label.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $help:literal,)+) => {
        /// Everything that is counted. Increases only.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[$doc])* pub $name: Counter,)+
        }
        impl Metrics {
            /// The counters as Prometheus text.
            #[must_use]
            pub fn text(&self) -> String {
                let mut text = String::new();
                $(line(&mut text, concat!("cotter_operator_", stringify!($name), "_total"), "counter", $help, self.$name.get());)+
                text
            }
        }
    };
}

counters! {
    /// Passes over one server.
    passes: "Passes over one server, good or not.",
    /// Passes that failed and come again.
    failed_passes: "Passes that failed and are tried again.",
    /// Writes of child objects.
    applies: "Child objects written.",
    /// Deleted child objects.
    prunes: "Child objects deleted.",
    /// Writes of status.
    status_writes: "Status objects written.",
    /// Objects that could not be read.
    undecodable: "Objects that could not be read.",
    /// New snapshots.
    snapshots: "New snapshots published.",
    /// Streams that sidecars opened.
    streams: "Snapshot streams opened.",
    /// Reports that were believed.
    reports: "Reports accepted.",
    /// Requests on the stream port that were refused.
    refused: "Requests on the stream port that were refused.",
}

/// A number that only goes up.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Appends one metric without labels.
pub fn line(text: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    // Writing into a String cannot fail.
    let _infallible = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_prometheus_text() {
        let metrics = Metrics::default();
        metrics.passes.add();
        metrics.passes.add();
        let text = metrics.text();
        assert!(
            text.contains("# TYPE cotter_operator_passes_total counter\ncotter_operator_passes_total 2\n"),
            "{text}"
        );
        assert!(text.contains("cotter_operator_applies_total 0\n"));
    }
}
