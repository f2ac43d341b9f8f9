use super::*;

const NOW: Duration = Duration::from_secs(1000);
const QUIET: Duration = Duration::ZERO;

fn bound(name: &str, calls: Option<u64>, per_minute: Option<u64>) -> Bound {
    Bound { key: format!("n/{name}"), budget: Budget { name: name.to_owned(), uid: None, calls, per_minute } }
}

fn namespace() -> Namespace {
    "n".parse().unwrap()
}

fn tell(ledger: &Ledger, now: Duration, shares: &[(&str, u64, u64, u32, u32)]) {
    let share = |elsewhere, recent, sidecars, place| Share { elsewhere, recent, sidecars, place };
    let shares = shares.iter().map(|(key, e, r, n, p)| ((*key).to_owned(), share(*e, *r, *n, *p))).collect();
    ledger.told_at(&namespace(), &shares, now);
}

/// How many calls are permitted at one time.
fn permitted(ledger: &Ledger, bounds: &[Bound], now: Duration) -> usize {
    (0..1000).take_while(|_| ledger.charge_at(bounds, QUIET, now).is_ok()).count()
}

#[test]
fn a_chain_is_charged_whole_or_not_at_all() {
    let ledger = Ledger::alone();
    let (child, sibling, parent) = (bound("a", Some(9), None), bound("b", Some(9), None), bound("p", Some(5), None));
    assert_eq!(permitted(&ledger, &[child.clone(), parent.clone()], NOW), 5);
    let refused = ledger.charge_at(&[sibling.clone(), parent.clone()], QUIET, NOW).unwrap_err();
    assert_eq!((refused.what, refused.whose.as_str()), (UsedUp::Calls(5), "p"));
    assert_eq!(["a", "b", "p"].map(|key| ledger.charged("n", key)), [5, 0, 5]);
    assert_eq!(permitted(&ledger, &[child], NOW), 4, "what the chain refused was not charged to the child");
    assert_eq!(ledger.charges().charged, BTreeMap::from([("a".to_owned(), 9), ("p".to_owned(), 5)]));
}

#[test]
fn a_bound_that_changes_counts_at_once_and_from_what_was_charged() {
    let ledger = Ledger::alone();
    assert_eq!(permitted(&ledger, &[bound("a", Some(3), Some(100))], NOW), 3);
    assert_eq!(permitted(&ledger, &[bound("a", Some(5), Some(100))], NOW), 2);
    assert_eq!(permitted(&ledger, &[bound("a", Some(4), Some(100))], NOW), 0);
    assert_eq!(permitted(&ledger, &[bound("a", None, Some(7))], NOW), 2);
}

#[test]
fn the_longest_wait_of_a_chain_is_told() {
    let ledger = Ledger::alone();
    let (minute, calls) = (bound("a", None, Some(1)), bound("p", Some(1), None));
    assert_eq!(permitted(&ledger, std::slice::from_ref(&minute), NOW), 1);
    let refused = |bounds: &[Bound]| ledger.charge_at(bounds, QUIET, NOW + Duration::from_secs(10)).unwrap_err().what;
    assert_eq!(refused(std::slice::from_ref(&minute)), UsedUp::Minute(Duration::from_secs(51)));
    assert_eq!(permitted(&ledger, std::slice::from_ref(&calls), NOW), 1);
    assert_eq!(refused(&[minute.clone(), calls.clone()]), UsedUp::Calls(1));
    assert_eq!(permitted(&ledger, &[minute], NOW + Duration::from_secs(61)), 1);
}

#[test]
fn nothing_is_permitted_before_the_operator_told_what_was_charged_elsewhere() {
    let (ledger, bounds) = (Ledger::governed(), [bound("a", Some(10), None)]);
    assert_eq!(ledger.charge_at(&bounds, QUIET, NOW).unwrap_err().what, UsedUp::Unknown);
    tell(&ledger, NOW, &[("a", 7, 0, 1, 0)]);
    assert_eq!(permitted(&ledger, &bounds, NOW), 3);
    tell(&ledger, NOW, &[("a", 2, 0, 1, 0)]);
    assert_eq!(permitted(&ledger, &bounds, NOW), 0, "an operator that knows less than before takes nothing back");
    tell(&ledger, NOW, &[("other", 0, 0, 1, 0)]);
    assert_eq!(ledger.charge_at(&bounds, QUIET, NOW).unwrap_err().what, UsedUp::Unknown);
}

#[test]
fn beside_others_nothing_is_permitted_once_the_operator_fell_silent() {
    let (ledger, bounds) = (Ledger::governed(), [bound("a", Some(10), None)]);
    let late = SILENCE + Duration::from_millis(1);
    tell(&ledger, NOW, &[("a", 0, 0, 2, 0)]);
    assert!(ledger.charge_at(&bounds, SILENCE, NOW).is_ok());
    assert_eq!(ledger.charge_at(&bounds, late, NOW).unwrap_err().what, UsedUp::Unknown);
    tell(&ledger, NOW, &[("a", 0, 0, 1, 0)]);
    assert!(ledger.charge_at(&bounds, late, NOW).is_ok(), "one that is alone knows everything");
}

#[test]
fn sidecars_share_a_minute() {
    for sidecars in 1..5 {
        let mut all = 0;
        for place in 0..sidecars {
            let ledger = Ledger::governed();
            tell(&ledger, NOW, &[("a", 0, 0, sidecars, place)]);
            all += permitted(&ledger, &[bound("a", None, Some(10))], NOW);
        }
        assert_eq!(all, 10, "{sidecars}");
    }
}

#[test]
fn a_share_grows_a_minute_later_and_shrinks_at_once() {
    let (ledger, bounds) = (Ledger::governed(), [bound("a", None, Some(12))]);
    let second = |seconds| NOW + Duration::from_secs(seconds);
    tell(&ledger, NOW, &[("a", 0, 0, 3, 0)]);
    tell(&ledger, second(1), &[("a", 0, 0, 2, 0)]);
    tell(&ledger, second(2), &[("a", 0, 0, 1, 0)]);
    assert_eq!(permitted(&ledger, &bounds, second(61)), 4, "the two others may have used 4 each");
    assert_eq!(permitted(&ledger, &bounds, second(62)), 8);
    tell(&ledger, second(200), &[("a", 0, 0, 6, 0)]);
    assert_eq!(permitted(&ledger, &bounds, second(200)), 2);
}

#[test]
fn a_run_that_begins_leaves_what_the_last_one_used_in_the_minute() {
    let (ledger, bounds) = (Ledger::governed(), [bound("a", None, Some(10))]);
    tell(&ledger, NOW, &[("a", 7, 7, 1, 0)]);
    assert_eq!(permitted(&ledger, &bounds, NOW), 3);
    assert_eq!(permitted(&ledger, &bounds, NOW + MINUTE), 7);
}

#[test]
fn budgets_that_no_snapshot_names_are_remembered_up_to_a_bound() {
    let (ledger, server) = (Ledger::alone(), serde_json::from_str(r#"{"namespace":"n","name":"s"}"#).unwrap());
    let budgets = |names: &[String]| {
        Budgets([("d".to_owned(), names.iter().map(|name| bound(name, Some(9), None)).collect())].into())
    };
    let names: Vec<String> = (0..2 * GONE).map(|number| format!("b{number}")).collect();
    for (at, name) in names.iter().enumerate() {
        let now = Duration::from_secs(at as u64);
        ledger.keep(&server, &budgets(std::slice::from_ref(name)));
        ledger.charge_at(&[bound(name, Some(9), None)], QUIET, now).unwrap();
    }
    ledger.keep(&server, &budgets(&names[..1]));
    let count = |name: &String| ledger.charged("n", name);
    assert_eq!((count(&names[2 * GONE - 1]), count(&names[GONE])), (1, 1), "those of late stay");
    assert_eq!((count(&names[1]), ledger.lock().accounts.len()), (0, GONE), "and the others do not");
}

#[test]
fn many_at_once_never_have_more_than_there_is() {
    let (ledger, bounds) = (Ledger::alone(), [bound("a", Some(500), None), bound("p", None, Some(300))]);
    let calls = || (0..100).filter(|_| ledger.charge_at(&bounds, QUIET, NOW).is_ok()).count();
    let permitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32).map(|_| scope.spawn(calls)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((permitted, ledger.charged("n", "a")), (300, 300));
}

#[tokio::test]
async fn one_that_stops_waits_until_what_it_charged_last_was_accepted() {
    let ledger = Ledger::alone();
    ledger.told_all().await;
    assert_eq!(permitted(&ledger, &[bound("a", Some(2), None)], NOW), 2);
    let waits =
        async |ledger: &Ledger| tokio::time::timeout(Duration::from_millis(20), ledger.told_all()).await.is_err();
    let charges = ledger.charges();
    assert_eq!(permitted(&ledger, &[bound("a", Some(3), None)], NOW), 1, "one more while the operator answers");
    ledger.accepted(charges.made);
    assert!(waits(&ledger).await);
    ledger.accepted(ledger.charges().made);
    ledger.accepted(charges.made);
    assert!(!waits(&ledger).await, "an older answer takes nothing back");
}
