use std::collections::BTreeSet;

use super::*;

fn time(text: &str) -> Time {
    serde_json::from_value(serde_json::json!(text)).unwrap()
}

#[test]
fn transition_time_moves_only_with_status() {
    let (first, second) = (time("2026-01-01T00:00:00Z"), time("2026-01-02T00:00:00Z"));
    let old = merge(&[], &[accepted("a"), programming("1 of 2")], 1, &first);

    let new = merge(&old, &[accepted("b"), programmed("2 of 2")], 2, &second);

    assert_eq!(new[0].last_transition_time, first, "same status, other message");
    assert_eq!(new[1].last_transition_time, second, "other status");
    assert!(new.iter().all(|c| c.observed_generation == Some(2)));
}

#[test]
fn unchanged_outcomes_make_equal_conditions() {
    let outcomes = [accepted("a"), expired("b")];
    let old = merge(&[], &outcomes, 3, &time("2026-01-01T00:00:00Z"));
    assert_eq!(merge(&old, &outcomes, 3, &time("2026-01-02T00:00:00Z")), old);
}

#[test]
fn what_is_not_said_again_is_gone() {
    let now = time("2026-01-01T00:00:00Z");
    let old = merge(&[], &[accepted(""), no_issuer("")], 1, &now);
    let types: Vec<String> = merge(&old, &[accepted("")], 1, &now).into_iter().map(|c| c.type_).collect();
    assert_eq!(types, ["Accepted"]);
}

#[test]
fn ready_repeats_the_first_failure_and_false_before_unknown() {
    let (yes, unknown, no) = (accepted(""), unreachable("gone"), no_sidecar("none"));
    assert!(ready_from(&[&yes]).is_true());
    let summary = ready_from(&[&yes, &unknown]);
    assert_eq!((summary.type_, summary.status, summary.reason), ("Ready", Status::Unknown, "Unreachable"));
    let summary = ready_from(&[&yes, &unknown, &no]);
    assert_eq!((summary.status, summary.reason, summary.message.as_str()), (Status::False, "NoSidecar", "none"));
}

#[test]
fn a_message_is_one_bounded_visible_line() {
    let message = invalid(format!("a\nb\u{1b}[31m\u{202e}{}", "x".repeat(5000))).message;
    assert!(message.starts_with("a b\\u{1b}[31m\\u{202e}xxx"), "{message}");
    assert!(message.chars().count() < 1100);
}

#[test]
fn a_reason_is_one_word_and_means_one_status_of_its_type() {
    let mut seen = BTreeSet::new();
    for (type_, _, reason) in OUTCOMES {
        assert!(reason.chars().all(char::is_alphanumeric), "{reason}");
        assert!(seen.insert((type_, reason)), "{type_} {reason} twice");
    }
}
