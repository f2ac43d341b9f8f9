//! One tool's schema, compiled, and the check of one call's arguments against it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::{Draft, PatternCache, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;

use crate::{
    mend::Mended,
    metered::{Metered, Seen, with_fuel},
    problem::{self, Problem},
    survey::{Why, survey},
};

/// Looks at values that one check may take: a tenth of them is what the largest real schemas take for a kilobyte of arguments.
const FUEL: u64 = 500_000;
/// And for each byte of the arguments, so that large arguments have as much as small ones.
const FUEL_PER_BYTE: u64 = 16;
/// Looks that finding words for a refusal may take.
const FUEL_FOR_WORDS: u64 = 20_000;
/// Faults of one schema that are mended.
const MENDS: usize = 32;
/// Bytes of one compiled pattern, which bounds what a byte of text costs: some 700 states of an automaton.
const PATTERN: usize = 64 * 1024;
/// Bytes of the states that a pattern remembers between texts.
const PATTERN_MEMORY: usize = 256 * 1024;

/// How much of a schema is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// All of it.
    Whole,
    /// All but these keywords, as pointers into the schema.
    Partly(Vec<String>),
    /// Nothing, and why.
    Nothing(Why),
}

/// Why arguments are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// They break the schema, here at first; the list may be empty where there were no words for it.
    Broken(Vec<Problem>),
    /// Checking them takes more than a check may.
    TooCostly,
}

/// One tool's schema.
#[derive(Debug)]
pub struct Checker {
    validator: Option<Validator<Metered>>,
    coverage: Coverage,
}

impl Checker {
    /// Compiles a schema, as far as it can be. Total: whatever is wrong with it is told by [`Checker::coverage`]. Takes up to some
    /// milliseconds, so it belongs beside the requests, not into one.
    #[must_use]
    pub fn new(schema: &Value) -> Self {
        match compile(schema) {
            Ok((validator, gaps)) if gaps.is_empty() => Self { validator: Some(validator), coverage: Coverage::Whole },
            Ok((validator, gaps)) => Self { validator: Some(validator), coverage: Coverage::Partly(gaps) },
            Err(why) => Self { validator: None, coverage: Coverage::Nothing(why) },
        }
    }

    /// How much of the schema is checked.
    #[must_use]
    pub const fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Checks the arguments of one call: the text of a JSON object that was read strictly before; `None` stands for none given.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn check(&self, arguments: Option<&str>) -> Result<(), Fault> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let text = arguments.unwrap_or("{}");
        // Strictly read before: no name twice, none that the library takes for a sign, and no deeper than its own limit.
        let Ok(arguments) = serde_json::from_str::<Value>(text) else { return Err(Fault::Broken(Vec::new())) };
        let fuel = FUEL.saturating_add(FUEL_PER_BYTE.saturating_mul(text.len() as u64));
        let valid = catch_unwind(AssertUnwindSafe(|| with_fuel(fuel, || validator.is_valid(Seen(&arguments)))));
        match valid {
            Ok(Some(true)) => Ok(()),
            Ok(Some(false)) => Err(Fault::Broken(words(validator, &arguments))),
            Ok(None) | Err(_) => Err(Fault::TooCostly),
        }
    }
}

/// The first problems, as far as there is fuel for them.
fn words(validator: &Validator<Metered>, arguments: &Value) -> Vec<Problem> {
    let find = || {
        with_fuel(FUEL_FOR_WORDS, || {
            validator.iter_errors(Seen(arguments)).take(problem::MOST).map(|error| Problem::of(&error)).collect()
        })
    };
    catch_unwind(AssertUnwindSafe(find)).ok().flatten().unwrap_or_default()
}

fn compile(schema: &Value) -> Result<(Validator<Metered>, Vec<String>), Why> {
    let options = options(draft(schema));
    let mut mended = Mended::new(schema)?;
    for _ in 0..MENDS {
        survey(&mended.schema)?;
        // The library has places that it takes to be beyond reach.
        let built = catch_unwind(AssertUnwindSafe(|| options.build(&mended.schema)));
        match built.map_err(|_| "the schema cannot be compiled")? {
            Ok(validator) => return Ok((validator, mended.gaps)),
            Err(error) => mended.leave_out(error.instance_path().as_str())?,
        }
    }
    Err("the schema has too many faults")
}

/// `format` and the content keywords say something to a reader and are not checked (2020-12 makes them annotations, and older servers
/// hold to them as loosely); patterns are matched in time by the length of the text, or not at all.
fn options(draft: Draft) -> ValidationOptions<'static, std::sync::Arc<dyn jsonschema::Retrieve>, Metered> {
    let patterns = PatternOptions::regex().size_limit(PATTERN).dfa_size_limit(PATTERN_MEMORY);
    jsonschema::options_for::<Metered>()
        .with_draft(draft)
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64")
        .with_pattern_options(patterns)
        // Each pattern is compiled once, however often the schema is mended.
        .with_pattern_cache(PatternCache::new())
        .offline()
}

/// The draft that a schema says it is written in; 2020-12 where it says nothing, as MCP has it, or something that nobody knows.
fn draft(schema: &Value) -> Draft {
    let said = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let known = [
        ("draft-04", Draft::Draft4),
        ("draft-06", Draft::Draft6),
        ("draft-07", Draft::Draft7),
        ("2019-09", Draft::Draft201909),
    ];
    known.into_iter().find(|(name, _)| said.contains(name)).map_or(Draft::Draft202012, |(_, draft)| draft)
}
