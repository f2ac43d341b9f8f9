//! The interpreter, bounded: modules parsed once, engines kept and lent, one evaluation at a time under a budget.

use std::{
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cotter_core::reason::DenyReason;
use regorus::{Engine, Value, utils::limits::ExecutionTimerConfig};
use rustix::time::{ClockId, clock_gettime};

mod growth;
mod turns;

pub(crate) use growth::{begin, bound};
pub use turns::stuck;

/// What one evaluation may take. A decision takes 40 µs; what takes 500 times as long is not a policy.
pub(crate) const BUDGET: Duration = Duration::from_millis(20);
/// How often the interpreter looks at the clock, in steps: at 64 it costs 3 %, at 1 it costs 24 %.
const CHECK_INTERVAL: NonZeroU32 = match NonZeroU32::new(64) {
    Some(steps) => steps,
    None => NonZeroU32::MIN,
};
/// How often a timeout is tried again while the thread hardly worked.
const PATIENCE: u32 = 20;
/// How the engine says that the time is over. It keeps no type with the message; what a rule does is always reported with its place
/// before the message, so no rule can say this.
const TIMEOUT: &str = "execution exceeded time limit";
/// Engines kept for reuse. More are made when more threads ask at once, and dropped afterwards.
const KEPT: usize = 32;
/// Bytes of arguments that an idle engine may hold on to; as values they are several times as large.
const KEPT_INPUT: usize = 16 * 1024;

pub(crate) const WARM_UP: &str = "data.cotter.scopes.stated";

/// Engines that hold the same prepared modules.
pub(crate) struct Engines {
    prepared: Engine,
    idle: Mutex<Vec<Engine>>,
    rules: u64,
}

/// Why an evaluation gave no value.
#[derive(Debug)]
pub(crate) struct EvalError {
    /// `PolicyTimeout` or `PolicyError`; `ArgumentsNotExact` where there was nothing to evaluate on.
    pub(crate) code: DenyReason,
    /// What the engine says, on one line. For the owner's log.
    pub(crate) message: String,
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engines").finish_non_exhaustive()
    }
}

impl Engines {
    /// Parses and analyses the library and the modules. Each is a name and a text that passed the earlier stages of [`crate::check`].
    ///
    /// # Errors
    /// What the engine says of a module, with its name, line and column.
    pub(crate) fn new<'a>(modules: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut engine = Engine::new();
        engine.set_strict_builtin_errors(true);
        bound(&mut engine)?;
        for (name, source) in modules {
            engine.add_policy(name.to_owned(), source.to_owned()).map_err(|error| error.to_string())?;
        }
        // The first evaluation analyses all modules; every later engine is a clone that has it. This rule reads one member of an empty
        // input, so what fails here is the analysis: a variable that nothing binds, a function defined twice.
        engine.set_input(Value::new_object());
        engine.eval_rule(WARM_UP.to_owned()).map_err(|error| error.to_string())?;
        Ok(Self { prepared: engine, idle: Mutex::default(), rules: turns::rules() })
    }

    /// The value of a rule for an input; `Undefined` where it has none.
    ///
    /// An engine holds its last input. One that saw a large input is not kept, nor is one whose evaluation failed.
    pub(crate) fn eval(&self, rule: &str, input: &Value, size: usize, budget: Duration) -> Result<Value, EvalError> {
        let turn =
            turns::begin(self.rules).map_err(|message| EvalError { code: DenyReason::PolicyTimeout, message })?;
        let kept = self.idle().pop();
        let mut engine = kept.unwrap_or_else(|| self.prepared.clone());
        let outcome = eval(&mut engine, rule, input, budget);
        drop(turn);
        let value = outcome?;
        if size <= KEPT_INPUT {
            let mut idle = self.idle();
            if idle.len() < KEPT {
                idle.push(engine);
            }
        }
        Ok(value)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Engine>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of a rule for an input, under a budget.
///
/// The engine measures the time that passes, so on a busy machine a thread that lost its core looks like a slow rule. A timeout is
/// therefore tried again, and counts when the thread itself worked for half of the budget, or when patience ends.
pub(crate) fn eval(engine: &mut Engine, rule: &str, input: &Value, budget: Duration) -> Result<Value, EvalError> {
    engine.set_execution_timer_config(timer(budget));
    let mut outcome = eval_once(engine, rule, input, budget);
    for _ in 0..PATIENCE {
        if !matches!(&outcome, Err(error) if error.code == DenyReason::PolicyTimeout) {
            break;
        }
        let before = worked();
        outcome = eval_once(engine, rule, input, budget);
        if worked().saturating_sub(before) >= budget / 2 {
            break;
        }
    }
    outcome
}

/// A builtin that panics (the engine's `sprintf` can) refuses this one decision; such an engine must not be used again.
///
/// At some of its steps the engine loses an error and takes what failed for undefined, so that a rule that refuses may seem to say nothing. An
/// answer that came after the time was over, or after a function failed, is therefore none, whatever it is.
fn eval_once(engine: &mut Engine, rule: &str, input: &Value, budget: Duration) -> Result<Value, EvalError> {
    engine.set_input(input.clone());
    begin();
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| engine.eval_rule(rule.to_owned())));
    let outcome = outcome.map_err(|_| EvalError::new(false, "the engine failed"))?;
    let value = outcome.map_err(|error| {
        let text = error.to_string();
        EvalError::new(text.starts_with(TIMEOUT), &text)
    })?;
    match growth::failure() {
        _ if began.elapsed() > budget => Err(EvalError::new(true, TIMEOUT)),
        Some(message) => Err(EvalError::new(false, &message)),
        None => Ok(value),
    }
}

/// How long this thread has been running on a core.
pub(crate) fn worked() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

pub(crate) fn timer(limit: Duration) -> ExecutionTimerConfig {
    ExecutionTimerConfig { limit, check_interval: CHECK_INTERVAL }
}

/// What the engine said: where, where it says so, and what. Its form is `--> file:line:column`, the line, and `error: message`.
pub(crate) struct Said<'a> {
    /// The file, the line and the column.
    pub(crate) place: Option<(&'a str, u32, u32)>,
    /// The first line of the message.
    pub(crate) message: &'a str,
}

impl<'a> Said<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let place = text.split("--> ").nth(1).and_then(|rest| rest.lines().next()).and_then(|line| {
            let mut parts = line.trim().rsplitn(3, ':');
            let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let shown = text.lines().find_map(|shown| shown.trim_start().strip_prefix(&format!("{line} | ")));
            Some((parts.next()?, line, shown.map_or(column, |shown| characters(shown, column))))
        });
        let message = text.split("error: ").nth(1).unwrap_or(text);
        let message = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given");
        Self { place, message }
    }
}

/// The engine counts a tab as four columns.
fn characters(line: &str, column: u32) -> u32 {
    let mut at = 1;
    let mut characters = 1;
    for c in line.chars() {
        if at >= column {
            return characters;
        }
        at += if c == '\t' { 4 } else { 1 };
        characters += 1;
    }
    characters + column.saturating_sub(at)
}

impl EvalError {
    fn new(timeout: bool, text: &str) -> Self {
        let code = if timeout { DenyReason::PolicyTimeout } else { DenyReason::PolicyError };
        let said = Said::of(text);
        let message = match said.place {
            Some((file, line, column)) => format!("{file}:{line}:{column}: {}", said.message),
            None => said.message.to_owned(),
        };
        Self { code, message: message.chars().take(256).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, library};

    const RULES: &str = "package cotter.user.m\n\ndeny contains \"text\" if input.tool.pin.class == \"Text\"\n\n\
                         deny contains \"night\" if {\n\t\"night\" in input.principal.groups\n\tupper(input.tool.name) == \"CASE_TAG\"\n}\n";

    /// The clock is looked at once, at each step in turn, when the time is over already.
    #[test]
    fn an_evaluation_whose_time_is_over_has_no_answer_at_whatever_step_that_is_seen() {
        let engines = check::check(&[("m".to_owned(), RULES.to_owned())].into()).unwrap().engines;
        let mut input: serde_json::Value = serde_saphyr::from_str(include_str!("../cases/base.yaml")).unwrap();
        input["principal"]["groups"] = serde_json::json!(["night"]);
        let input = Value::from(input);
        let whole = eval_once(&mut engines.prepared.clone(), library::DECISION, &input, BUDGET * 100).unwrap();
        assert_eq!(whole["allow"], Value::from(false));
        let mut seen = 0;
        for step in 1..2000 {
            let mut engine = engines.prepared.clone();
            let check_interval = NonZeroU32::new(step).unwrap();
            engine.set_execution_timer_config(ExecutionTimerConfig { limit: Duration::ZERO, check_interval });
            match eval_once(&mut engine, library::DECISION, &input, Duration::ZERO) {
                Err(error) => seen += u32::from(error.code == DenyReason::PolicyTimeout),
                Ok(answer) => panic!("step {step}: {answer}"),
            }
            engine.set_execution_timer_config(timer(BUDGET * 100));
            let next = eval_once(&mut engine, library::DECISION, &input, BUDGET * 100).unwrap();
            assert_eq!(next, whole, "what was cut off at step {step} leaves nothing behind");
        }
        assert_eq!(seen, 1999);
    }
}
