//! The interpreter, bounded: modules parsed once, engines kept and lent, one evaluation at a time under a budget.

use std::{
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use cotter_core::reason::DenyReason;
use regorus::{Engine, LimitError, Value, utils::limits::ExecutionTimerConfig};

/// What one evaluation may take. A decision takes 40 µs; what takes 500 times as long is not a policy.
pub(crate) const BUDGET: Duration = Duration::from_millis(20);
/// How often the interpreter looks at the clock, in steps: at 64 it costs 3 %, at 1 it costs 24 %.
const CHECK_INTERVAL: NonZeroU32 = match NonZeroU32::new(64) {
    Some(steps) => steps,
    None => NonZeroU32::MIN,
};
/// Engines kept for reuse. More are made when more threads ask at once, and dropped afterwards.
const KEPT: usize = 32;

const WARM_UP: &str = "data.cotter.scopes.stated";

/// Engines that hold the same prepared modules.
pub(crate) struct Engines {
    prepared: Engine,
    idle: Mutex<Vec<Engine>>,
}

/// Why an evaluation gave no value.
#[derive(Debug)]
pub(crate) struct EvalError {
    /// `PolicyTimeout` or `PolicyError`.
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
        for (name, source) in modules {
            engine.add_policy(name.to_owned(), source.to_owned()).map_err(|error| error.to_string())?;
        }
        // The first evaluation analyses all modules; every later engine is a clone that has it. This rule reads one member of an empty
        // input, so what fails here is the analysis: a variable that nothing binds, a function defined twice.
        engine.set_input(Value::new_object());
        engine.eval_rule(WARM_UP.to_owned()).map_err(|error| error.to_string())?;
        Ok(Self { prepared: engine, idle: Mutex::new(Vec::new()) })
    }

    /// The value of a rule for an input; `Undefined` where it has none.
    ///
    /// A timeout is tried once more: a thread that lost its core for a while is not a slow rule, and a slow rule is slow twice.
    pub(crate) fn eval(&self, rule: &str, input: &Value, budget: Duration) -> Result<Value, EvalError> {
        match self.eval_once(rule, input, budget) {
            Err(error) if error.code == DenyReason::PolicyTimeout => self.eval_once(rule, input, budget),
            outcome => outcome,
        }
    }

    fn eval_once(&self, rule: &str, input: &Value, budget: Duration) -> Result<Value, EvalError> {
        let mut engine = self.take();
        engine.set_execution_timer_config(timer(budget));
        engine.set_input(input.clone());
        // A builtin that panics (the engine's `sprintf` can) refuses this one decision; its engine is not used again.
        let outcome = catch_unwind(AssertUnwindSafe(|| engine.eval_rule(rule.to_owned())));
        let outcome = outcome.map_err(|_| EvalError::new(false, "the engine failed"))?;
        let value = outcome.map_err(|error| {
            let timeout = matches!(error.downcast_ref::<LimitError>(), Some(LimitError::TimeLimitExceeded { .. }));
            EvalError::new(timeout, &error.to_string())
        })?;
        self.give_back(engine);
        Ok(value)
    }

    fn take(&self) -> Engine {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| self.prepared.clone())
    }

    fn give_back(&self, engine: Engine) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(engine);
        }
    }
}

fn timer(limit: Duration) -> ExecutionTimerConfig {
    ExecutionTimerConfig { limit, check_interval: CHECK_INTERVAL }
}

impl EvalError {
    fn new(timeout: bool, text: &str) -> Self {
        let code = if timeout { DenyReason::PolicyTimeout } else { DenyReason::PolicyError };
        let message = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        Self { code, message: message.chars().take(256).collect() }
    }
}
