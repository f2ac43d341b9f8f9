//! What is wrong with a resource: every problem at once, each with the path of its field.

use std::{fmt, str::FromStr};

/// What kind of problem it is: the reason that a condition names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It contradicts itself or cannot be read.
    Invalid,
    /// It is meaningful, and this version does not do it.
    Unsupported,
    /// A delegation lasts longer than the operator permits.
    PeriodTooLong,
    /// A definition does not hash to its fingerprint.
    DefinitionMismatch,
}

/// One problem: where, what, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its kind.
    pub kind: Kind,
    /// The field, as `spec.tools[2].scope`.
    pub path: String,
    /// What is wrong with it and what to write instead.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All problems of one resource, in the order of its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// A condition names this many problems and counts the rest: a person fixes a few at a time, and a status is bounded.
const SHOWN: usize = 8;

impl Problems {
    /// Adds a problem with what is written.
    pub fn add(&mut self, path: impl Into<String>, message: impl fmt::Display) {
        self.add_as(Kind::Invalid, path, message);
    }

    /// Adds a problem of another kind.
    pub fn add_as(&mut self, kind: Kind, path: impl Into<String>, message: impl fmt::Display) {
        self.0.push(Problem { kind, path: path.into(), message: message.to_string() });
    }

    /// The kind of the whole: the one that has to be put right first.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.iter().map(|problem| problem.kind).min().unwrap_or(Kind::Invalid)
    }

    /// Parses a field, and notes the problem where it does not parse.
    pub fn parse<T: FromStr>(&mut self, path: impl Into<String>, text: &str) -> Option<T>
    where
        T::Err: fmt::Display,
    {
        self.take(path, text.parse())
    }

    /// The value, or its error noted.
    pub fn take<T, E: fmt::Display>(&mut self, path: impl Into<String>, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(path, error);
                None
            }
        }
    }

    /// Parses each member of a list.
    pub fn parse_all<T: FromStr, C: FromIterator<T>>(&mut self, path: &str, texts: &[String]) -> C
    where
        T::Err: fmt::Display,
    {
        texts.iter().enumerate().filter_map(|(at, text)| self.parse(format!("{path}[{at}]"), text)).collect()
    }

    /// The problems.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value where there is no problem. A value that could not be made always has a problem that says why.
    ///
    /// # Errors
    /// The problems.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            None if self.0.is_empty() => {
                self.add("spec", "cannot be read");
                Err(self)
            }
            _ => Err(self),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "; " })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_together_and_bounded() {
        let mut problems = Problems::default();
        for at in 0..10 {
            problems.add(format!("spec.tools[{at}].scope"), "is empty");
        }
        let text = problems.to_string();
        assert!(text.starts_with("spec.tools[0].scope: is empty; spec.tools[1].scope"), "{text}");
        assert!(text.ends_with("spec.tools[7].scope: is empty; and 2 more"), "{text}");
    }

    #[test]
    fn a_value_with_a_problem_is_no_value() {
        let mut problems = Problems::default();
        assert_eq!(problems.clone().finish(Some(1)), Ok(1));
        problems.add("spec", "is wrong");
        assert!(problems.finish(Some(1)).is_err());
        assert!(Problems::default().finish(None::<i32>).is_err());
    }
}
