//! Numbers, in the text form of Prometheus. Labels come from closed lists, never from what a caller sends.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use cotter_core::{reason::DenyReason, report::Knowledge};

use crate::state::{Enforced, Shared};

/// Methods that are told apart; all others are one.
const METHODS: [&str; 6] = ["initialize", "ping", "server/discover", "tools/list", "tools/call", "other"];

/// Upper ends of the latency classes, in microseconds.
const CLASSES: [u64; 12] = [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    allowed: [AtomicU64; METHODS.len()],
    refused: Vec<AtomicU64>,
    classes: [AtomicU64; CLASSES.len()],
    micros: AtomicU64,
    decided: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            allowed: Default::default(),
            refused: DenyReason::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            classes: Default::default(),
            micros: AtomicU64::new(0),
            decided: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// Counts one decision.
    pub fn decided(&self, method: Option<&str>, refused: Option<DenyReason>, took: Duration) {
        let place = match refused {
            Some(reason) => {
                DenyReason::ALL.iter().position(|other| *other == reason).and_then(|at| self.refused.get(at))
            }
            None => {
                let known = METHODS.iter().position(|known| Some(*known) == method).unwrap_or(METHODS.len() - 1);
                self.allowed.get(known)
            }
        };
        if let Some(place) = place {
            place.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.decided.fetch_add(1, Ordering::Relaxed);
        if let Some(class) = CLASSES.iter().position(|end| micros <= *end).and_then(|at| self.classes.get(at)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All numbers of a sidecar.
    #[must_use]
    pub fn page(shared: &Shared) -> String {
        let mut page = String::with_capacity(4096);
        shared.metrics.requests(&mut page);
        shared.metrics.latency(&mut page);
        let mut gauge = |name: &str, help: &str, value: String| {
            let _ = writeln!(page, "# HELP cotter_{name} {help}\n# TYPE cotter_{name} gauge\ncotter_{name} {value}");
        };
        gauge("sessions", "Open legacy sessions.", shared.sessions.count().to_string());
        gauge(
            "conversations",
            "Principals of the modern era that hold a conversation.",
            shared.conversations.count().to_string(),
        );
        gauge("in_flight", "Requests in flight.", shared.in_flight.count().to_string());
        let stuck = cotter_policies::stuck().to_string();
        gauge("evaluations_stuck", "Evaluations of policy that have not ended for 10 s.", stuck);
        gauge("audit_records_lost", "Audit records that the sink did not take.", shared.audit.lost().to_string());
        if let Some(contact) = &shared.contact {
            gauge(
                "operator_silence_seconds",
                "Time since the operator was heard.",
                contact.silence().as_secs_f64().to_string(),
            );
        }
        if let Some(enforced) = shared.enforced.load_full() {
            of_enforced(&enforced, &mut gauge);
        }
        page
    }

    fn requests(&self, page: &mut String) {
        page.push_str("# HELP cotter_requests_total Decisions.\n# TYPE cotter_requests_total counter\n");
        for (method, count) in METHODS.iter().zip(&self.allowed) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(page, "cotter_requests_total{{outcome=\"allowed\",method=\"{method}\"}} {count}");
        }
        for (reason, count) in DenyReason::ALL.iter().zip(&self.refused) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let _ = writeln!(page, "cotter_requests_total{{outcome=\"refused\",reason=\"{reason}\"}} {count}");
            }
        }
    }

    fn latency(&self, page: &mut String) {
        let name = "cotter_request_duration_seconds";
        let _ = writeln!(page, "# HELP {name} Time from request to answer.\n# TYPE {name} histogram");
        let mut below = 0;
        for (end, count) in CLASSES.iter().zip(&self.classes) {
            below += count.load(Ordering::Relaxed);
            let _ = writeln!(page, "{name}_bucket{{le=\"{}\"}} {below}", Duration::from_micros(*end).as_secs_f64());
        }
        let decided = self.decided.load(Ordering::Relaxed);
        let sum = Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(page, "{name}_bucket{{le=\"+Inf\"}} {decided}\n{name}_sum {sum}\n{name}_count {decided}");
    }
}

/// What is enforced, in numbers.
fn of_enforced(enforced: &Enforced, gauge: &mut impl FnMut(&str, &str, String)) {
    let verified = u8::from(matches!(enforced.knowledge, Knowledge::Verified));
    gauge("catalogue_verified", "1 where the last reading of the tool list was whole.", verified.to_string());
    let entries = enforced.catalogue.entries().count();
    let callable = if enforced.catalogue().is_ok() { enforced.catalogue.callable().count() } else { 0 };
    gauge("tools_declared", "Declared tools.", enforced.snapshot().tools.len().to_string());
    gauge("tools_callable", "Declared tools that can be called.", callable.to_string());
    gauge(
        "tools_quarantined",
        "Declared tools that are offered and cannot be called.",
        (entries - callable.min(entries)).to_string(),
    );
    let (partly, not) = enforced.schemas.gaps();
    gauge("tools_partly_checked", "Callable tools of whose schema a part cannot be enforced.", partly.to_string());
    gauge("tools_unchecked", "Callable tools whose schema cannot be enforced at all.", not.to_string());
    gauge("tools_unlisted", "Offered tools that nobody declared.", enforced.catalogue.unlisted().to_string());
    gauge(
        "snapshot_generation",
        "Generation of the McpServer that the snapshot was made from.",
        enforced.snapshot().generation.to_string(),
    );
}
