use super::*;

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn charges(run: &str, calls: u64) -> Charges {
    forgetful(run, calls, calls)
}

/// Of a run that made more calls than it knows of.
fn forgetful(run: &str, made: u64, calls: u64) -> Charges {
    Charges { run: run.to_owned(), made, charged: BTreeMap::from([("k".to_owned(), calls)]) }
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.know("k", &Charged::default(), at(0));
    ledger
}

/// Elsewhere, recent, sidecars, place.
fn told(ledger: &mut Ledger, run: &str, now: u64) -> (u64, u64, u32, u32) {
    let share = ledger.share("k", Some(run), |_| true, at(now));
    (share.elsewhere, share.recent, share.sidecars, share.place)
}

#[test]
fn what_others_charged_is_elsewhere_and_ones_own_is_not() {
    let mut ledger = ledger();
    assert!(ledger.connect("s", "p1", "a", at(0)) && ledger.connect("t", "p2", "b", at(0)));
    let moved = ledger.charge("s", "p1", &charges("a", 5), at(1)).unwrap();
    assert_eq!(moved, [Moved { key: "k".to_owned(), before: 0, after: 5 }]);
    assert_eq!(ledger.charge("s", "p1", &charges("a", 5), at(1)), Some(vec![]), "the same again is no news");
    ledger.charge("t", "p2", &charges("b", 2), at(100)).unwrap();
    assert_eq!((told(&mut ledger, "a", 100), told(&mut ledger, "b", 100)), ((2, 2, 2, 0), (5, 0, 2, 1)));
    assert_eq!(ledger.charged("k").calls, 7);
    let only_s = ledger.share("k", Some("a"), |server| server == "s", at(100));
    assert_eq!((only_s.elsewhere, only_s.sidecars), (2, 1), "t does not name it any more, and what it charged counts");
}

#[test]
fn only_a_connected_run_of_that_pod_charges() {
    let mut ledger = ledger();
    assert_eq!(ledger.charge("s", "p1", &charges("a", 5), at(1)), None);
    assert!(ledger.connect("s", "p1", "a", at(0)));
    assert_eq!(ledger.charge("s", "p2", &charges("a", 5), at(1)), None, "another pod");
    assert!(!ledger.connect("s", "p2", "a", at(1)), "another pod's run");
    assert!(ledger.charge("s", "p1", &charges("a", 5), at(1)).is_some());
    ledger.disconnect("a", at(2));
    assert_eq!(ledger.charge("s", "p1", &charges("a", 6), at(3)), None);
    assert_eq!(ledger.charged("k").calls, 5);
    let unknown = Charges { charged: BTreeMap::from([("x".to_owned(), 1)]), ..charges("a", 7) };
    assert!(ledger.connect("s", "p1", "a", at(4)));
    assert_eq!(ledger.charge("s", "p1", &unknown, at(4)), Some(vec![]));
    assert_eq!(ledger.charged("x"), Charged::default());
}

#[test]
fn a_run_that_starts_again_is_told_what_the_last_one_charged() {
    let mut ledger = ledger();
    ledger.connect("s", "p1", "a", at(0));
    ledger.charge("s", "p1", &charges("a", 5), at(10)).unwrap();
    ledger.disconnect("a", at(11));
    ledger.connect("s", "p1", "b", at(12));
    assert_eq!(told(&mut ledger, "b", 12), (5, 5, 1, 0));
    ledger.connect("s", "p1", "b", at(12));
    assert_eq!(ledger.charge("s", "p1", &charges("a", 9), at(13)), None, "a late word of the run that ended");
    ledger.charge("s", "p1", &charges("b", 1), at(13)).unwrap();
    ledger.sweep(|_| true, at(100));
    assert_eq!(
        ledger.charged("k"),
        Charged { calls: 6, runs: BTreeMap::from([("b".to_owned(), 1)]), uses: None },
        "folded"
    );
    assert_eq!(told(&mut ledger, "b", 100), (5, 0, 1, 0));
}

#[test]
fn a_run_that_was_away_is_counted_once() {
    let mut ledger = ledger();
    ledger.connect("s", "p1", "a", at(0));
    ledger.charge("s", "p1", &charges("a", 5), at(1)).unwrap();
    ledger.disconnect("a", at(2));
    ledger.sweep(|_| true, at(2 + ENDED.as_secs()));
    ledger.connect("s", "p1", "a", at(3000));
    ledger.charge("s", "p1", &charges("a", 8), at(3000)).unwrap();
    assert_eq!(ledger.charged("k").calls, 8);
    ledger.disconnect("a", at(3000));
    ledger.sweep(|_| true, at(3001 + ENDED.as_secs()));
    assert_eq!(ledger.charged("k"), Charged { calls: 8, runs: BTreeMap::new(), uses: None });
}

#[test]
fn a_count_that_restarts_is_added() {
    let mut ledger = ledger();
    ledger.connect("s", "p1", "a", at(0));
    for (made, calls) in [(7, 7), (9, 2), (10, 3)] {
        ledger.charge("s", "p1", &forgetful("a", made, calls), at(1)).unwrap();
    }
    assert_eq!((ledger.charged("k").calls, told(&mut ledger, "a", 1).0), (10, 7));
}

#[test]
fn a_message_that_comes_late_is_not_taken_for_a_count_that_restarts() {
    let mut ledger = ledger();
    ledger.connect("s", "p1", "a", at(0));
    ledger.charge("s", "p1", &charges("a", 7), at(1)).unwrap();
    assert_eq!(
        ledger.charge("s", "p1", &charges("a", 5), at(2)),
        Some(vec![]),
        "accepted, so that nobody tells it again"
    );
    ledger.charge("s", "p1", &charges("a", 8), at(3)).unwrap();
    assert_eq!((ledger.charged("k").calls, told(&mut ledger, "a", 3).0), (8, 0));
}

/// Whatever happens, an operator that starts from what the last one persisted comes to the same count.
#[test]
fn an_operator_that_starts_anew_goes_on_counting() {
    let mut first = ledger();
    first.connect("s", "p0", "old", at(0));
    first.charge("s", "p0", &charges("old", 3), at(0)).unwrap();
    first.disconnect("old", at(0));
    first.connect("s", "p1", "a", at(1));
    first.connect("s", "p2", "b", at(1));
    first.charge("s", "p1", &charges("a", 10), at(2)).unwrap();
    let persisted = first.charged("k");
    assert_eq!((persisted.calls, persisted.runs.len()), (13, 2));

    let mut second = Ledger::default();
    second.know("k", &persisted, at(0));
    assert!(second.connect("s", "p2", "b", at(1)));
    assert_eq!(told(&mut second, "b", 1).0, 13, "before the other one is back");
    second.charge("s", "p2", &charges("b", 4), at(1)).unwrap();
    assert!(second.connect("s", "p1", "a", at(2)));
    second.charge("s", "p1", &charges("a", 12), at(2)).unwrap();
    assert_eq!(second.charged("k").calls, 3 + 12 + 4);
    assert_eq!((told(&mut second, "a", 2).0, told(&mut second, "b", 2).0), (7, 15));
    second.know("k", &Charged { calls: 99, ..Charged::default() }, at(3));
    assert_eq!(second.charged("k").calls, 19, "what is counted is not read again");
}

#[test]
fn a_delegation_that_is_gone_is_forgotten() {
    let mut ledger = ledger();
    ledger.connect("s", "p1", "a", at(0));
    ledger.charge("s", "p1", &charges("a", 5), at(1)).unwrap();
    ledger.sweep(|_| false, at(2));
    assert_eq!(ledger.charge("s", "p1", &charges("a", 6), at(3)), Some(vec![]));
    assert_eq!(ledger.charged("k"), Charged::default());
}

#[test]
fn who_names_no_run_is_told_everything() {
    let mut ledger = ledger();
    ledger.connect("s", "p1", "a", at(0));
    ledger.charge("s", "p1", &charges("a", 5), at(1)).unwrap();
    let share = ledger.share("k", None, |_| true, at(1));
    assert_eq!((share.elsewhere, share.sidecars, share.place), (5, 2, 1));
}
