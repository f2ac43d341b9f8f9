//! What is shown: medians of all rounds, and the sidecar beside the floor.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Value, json};

use crate::{
    load::Outcome,
    plan::Peer,
    units::{Units, median},
};

/// One run and what came of it.
#[derive(Debug)]
pub(crate) struct Run {
    /// Who answered.
    pub(crate) peer: Peer,
    /// How many asked at once.
    pub(crate) connections: u16,
    /// Which round it was.
    pub(crate) round: u8,
    /// What came of it.
    pub(crate) outcome: Outcome,
}

impl Peer {
    /// How it is called in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Floor => "floor",
            Self::Sidecar => "sidecar",
        }
    }
}

impl Run {
    /// For a person who waits.
    pub(crate) fn line(&self) -> String {
        let Outcome { rate, p50, p99, cpu, others, .. } = &self.outcome;
        let (round, peer, connections) = (self.round + 1, self.peer.name(), self.connections);
        format!(
            "round {round} {peer:>8} {connections:>4} connections: {rate:>7.0} calls/s, p50 {p50} µs, p99 {p99} µs, {cpu:.1} µs of CPU a call, others {others:.2} cores"
        )
    }

    /// For a program.
    pub(crate) fn json(&self) -> Value {
        json!({"peer": self.peer.name(), "connections": self.connections, "round": self.round, "outcome": self.outcome})
    }
}

/// All that there is to show, in Markdown.
pub(crate) fn render(runs: &[Run], units: Option<&Units>) -> String {
    let mut groups: BTreeMap<(Peer, u16), Vec<&Outcome>> = BTreeMap::new();
    for run in runs {
        groups.entry((run.peer, run.connections)).or_default().push(&run.outcome);
    }
    let mut page = String::from(
        "| proxy | connections | calls/s | p50 µs | p99 µs | CPU µs/call | core busy | RSS idle MiB | of it own | RSS after MiB | others | faults |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for ((peer, connections), outcomes) in &groups {
        row(&mut page, *peer, *connections, outcomes);
    }
    ratios(&mut page, runs);
    if let Some(units) = units {
        parts(&mut page, units);
    }
    page
}

fn row(page: &mut String, peer: Peer, connections: u16, outcomes: &[&Outcome]) {
    let of = |value: fn(&Outcome) -> f64| median(outcomes.iter().map(|outcome| value(outcome)));
    let faults: u64 = outcomes.iter().flat_map(|outcome| outcome.faults.values()).sum();
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "| {} | {connections} | {:.0} | {:.0} | {:.0} | {:.1} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2} | {} |",
        peer.name(),
        of(|outcome| outcome.rate),
        of(|outcome| outcome.p50.into()),
        of(|outcome| outcome.p99.into()),
        of(|outcome| outcome.cpu),
        of(|outcome| outcome.busy),
        of(|outcome| outcome.idle_kib as f64 / 1024.0),
        of(|outcome| outcome.idle_own_kib as f64 / 1024.0),
        of(|outcome| outcome.after_kib as f64 / 1024.0),
        of(|outcome| outcome.others),
        if faults == 0 { "none".to_owned() } else { faults.to_string() },
    );
}

/// The sidecar and the floor of the same round: what disturbs both in the same way falls out.
fn ratios(page: &mut String, runs: &[Run]) {
    let mut pairs: BTreeMap<u16, Vec<(&Outcome, &Outcome)>> = BTreeMap::new();
    for sidecar in runs.iter().filter(|run| run.peer == Peer::Sidecar) {
        let same = |run: &&Run| {
            run.peer == Peer::Floor && (run.round, run.connections) == (sidecar.round, sidecar.connections)
        };
        if let Some(floor) = runs.iter().find(same) {
            pairs.entry(sidecar.connections).or_default().push((&sidecar.outcome, &floor.outcome));
        }
    }
    if pairs.is_empty() {
        return;
    }
    page.push_str(
        "\n| sidecar against floor | throughput | CPU per call | added CPU µs | added p50 µs | added p99 µs |\n\
         |---|---|---|---|---|---|\n",
    );
    for (connections, pairs) in &pairs {
        let of =
            |value: fn(&Outcome, &Outcome) -> f64| median(pairs.iter().map(|(sidecar, floor)| value(sidecar, floor)));
        let _ = writeln!(
            page,
            "| {connections} connections | {:.0} % | {:.2} × | {:.1} | {:.0} | {:.0} |",
            of(|sidecar, floor| 100.0 * sidecar.rate / floor.rate.max(1.0)),
            of(|sidecar, floor| sidecar.cpu / floor.cpu.max(0.1)),
            of(|sidecar, floor| sidecar.cpu - floor.cpu),
            of(|sidecar, floor| f64::from(sidecar.p50) - f64::from(floor.p50)),
            of(|sidecar, floor| f64::from(sidecar.p99) - f64::from(floor.p99)),
        );
    }
}

fn parts(page: &mut String, units: &Units) {
    let Units { prepare, token, authority, cold, again } = units;
    let _ = write!(
        page,
        "\n| part of a decision | µs |\n|---|---|\n\
         | policy of a new snapshot, prepared once | {prepare:.0} |\n\
         | token that was never seen (ES256) | {token:.1} |\n\
         | its principal, made known to the policy | {authority:.1} |\n\
         | decision that was never made | {cold:.1} |\n\
         | the same decision again | {again:.2} |\n"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(peer: Peer, round: u8, rate: f64, cpu: f64) -> Run {
        let (faults, calls) = (BTreeMap::new(), 1000);
        let outcome = Outcome {
            calls,
            rate,
            p50: 10,
            p99: 20,
            cpu,
            busy: 1.0,
            others: 0.0,
            idle_kib: 2048,
            idle_own_kib: 1024,
            after_kib: 4096,
            faults,
        };
        Run { peer, connections: 16, round, outcome }
    }

    #[test]
    fn the_table_shows_medians_and_the_ratios_those_of_one_round() {
        let runs = [
            run(Peer::Floor, 0, 100.0, 20.0),
            run(Peer::Sidecar, 0, 50.0, 40.0),
            run(Peer::Floor, 1, 200.0, 10.0),
            run(Peer::Sidecar, 1, 100.0, 20.0),
            run(Peer::Floor, 2, 120.0, 20.0),
            run(Peer::Sidecar, 2, 60.0, 40.0),
        ];
        let page = render(&runs, None);
        assert!(
            page.contains("| floor | 16 | 120 | 10 | 20 | 20.0 | 1.00 | 2.0 | 1.0 | 4.0 | 0.00 | none |"),
            "{page}"
        );
        assert!(page.contains("| 16 connections | 50 % | 2.00 × | 20.0 | 0 | 0 |"), "{page}");
        assert!(!render(&runs[..1], None).contains("sidecar against floor"));
    }
}
