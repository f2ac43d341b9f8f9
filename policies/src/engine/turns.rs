//! Evaluations that are under way, in the whole process: how many at once by the same rules, and which of them do not end.
//!
//! The timer looks between steps, and a step can be endless (docs/decisions/0010-what-one-evaluation-may-make.md). A thread that is in
//! one cannot be stopped; what can be done is to lose no other one to the same rules.

use std::{
    collections::BTreeMap,
    sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// An evaluation that runs for so long is in one step that no timer looks at, and may never end.
const STUCK: Duration = Duration::from_secs(10);
/// How long one waits for a turn before it is refused.
const WAIT: Duration = Duration::from_secs(5);
/// Evaluations at once by the same rules: more would only take turns on the cores. No more threads than this are lost to them.
static AT_ONCE: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from).saturating_mul(2).max(4));

static TURNS: Turns = Turns { state: Mutex::new(State { next: 0, running: BTreeMap::new() }), ended: Condvar::new() };

struct Turns {
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    next: u64,
    /// By whose rules, and since when; oldest first.
    running: BTreeMap<u64, (u64, Instant)>,
}

/// What comes of the wish to evaluate.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Granted(u64),
    Full,
    Stuck(Duration),
}

/// One evaluation; it ends with the value.
#[derive(Debug)]
pub(crate) struct Turn(u64);

/// A number for rules that were not there before.
pub(crate) fn rules() -> u64 {
    TURNS.lock().number()
}

/// Begins an evaluation, once there is a turn.
///
/// # Errors
/// An evaluation by these rules does not end.
pub(crate) fn begin(rules: u64) -> Result<Turn, String> {
    let mut state = TURNS.lock();
    let wanted = Instant::now();
    loop {
        match state.begin(rules, *AT_ONCE, Instant::now()) {
            Wish::Granted(number) => return Ok(Turn(number)),
            Wish::Stuck(passed) => {
                return Err(format!("an evaluation of these rules has not ended for {} s", passed.as_secs()));
            }
            Wish::Full if wanted.elapsed() > WAIT => {
                return Err(format!("there was no turn to evaluate these rules for {} s", WAIT.as_secs()));
            }
            Wish::Full => {
                let woken = TURNS.ended.wait_timeout(state, WAIT);
                (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Evaluations that have not ended for so long that they may never.
#[must_use]
pub fn stuck() -> u32 {
    u32::try_from(TURNS.lock().stuck(Instant::now())).unwrap_or(u32::MAX)
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn begin(&mut self, rules: u64, at_once: usize, now: Instant) -> Wish {
        let mut own = self.running.values().filter(|(whose, _)| *whose == rules);
        let Some((_, oldest)) = own.next() else { return self.grant(rules, now) };
        let passed = now.saturating_duration_since(*oldest);
        if passed > STUCK {
            return Wish::Stuck(passed);
        }
        if 1 + own.count() < at_once { self.grant(rules, now) } else { Wish::Full }
    }

    fn grant(&mut self, rules: u64, now: Instant) -> Wish {
        let number = self.number();
        self.running.insert(number, (rules, now));
        Wish::Granted(number)
    }

    fn stuck(&self, now: Instant) -> usize {
        self.running.values().filter(|(_, began)| now.saturating_duration_since(*began) > STUCK).count()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.lock().running.remove(&self.0);
        TURNS.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State { next: 0, running: BTreeMap::new() }
    }

    #[test]
    fn while_an_evaluation_does_not_end_nothing_else_is_evaluated_by_the_same_rules() {
        let (mut state, began) = (state(), Instant::now());
        assert_eq!(state.begin(7, 4, began), Wish::Granted(1));
        assert_eq!(state.begin(7, 4, began + STUCK), Wish::Granted(2), "it may be a busy machine");
        state.running.remove(&2);
        let later = began + Duration::from_secs(12);
        assert_eq!((state.begin(7, 4, later), state.stuck(later)), (Wish::Stuck(Duration::from_secs(12)), 1));
        assert_eq!(state.begin(8, 4, later), Wish::Granted(3), "other rules");
        state.running.remove(&1);
        assert_eq!((state.begin(7, 4, later), state.stuck(later)), (Wish::Granted(4), 0));
    }

    #[test]
    fn no_more_begin_at_once_than_may_be_lost() {
        let (mut state, began) = (state(), Instant::now());
        assert_eq!([state.begin(7, 2, began), state.begin(7, 2, began)], [Wish::Granted(1), Wish::Granted(2)]);
        assert_eq!(state.begin(7, 2, began), Wish::Full);
        assert_eq!(state.begin(8, 2, began), Wish::Granted(3));
        state.running.remove(&1);
        assert_eq!(state.begin(7, 2, began), Wish::Granted(4));
    }

    #[test]
    fn who_waits_has_a_turn_when_another_ends() {
        let rules = rules();
        let held: Vec<Turn> = (0..*AT_ONCE).map(|_| begin(rules).unwrap()).collect();
        let waiting = thread::spawn(move || begin(rules).is_ok());
        thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        drop(held);
        assert!(waiting.join().unwrap());
    }
}
