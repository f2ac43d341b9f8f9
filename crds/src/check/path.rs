//! Where in an object something is.

use std::fmt;

/// One step down into an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into a member.
    Key(String),
    /// Into an element.
    Index(usize),
}

/// A path in an object, written as the API server writes it: `spec.tools[0].scope`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// The object itself.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// The steps, from the object down.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether it is the object itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of a member.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        self.then(Step::Key(name.to_owned()))
    }

    /// The path of an element.
    #[must_use]
    pub fn index(&self, at: usize) -> Self {
        self.then(Step::Index(at))
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The same as a JSON pointer (RFC 6901).
    #[must_use]
    pub fn pointer(&self) -> String {
        let token = |step: &Step| match step {
            Step::Key(name) => name.replace('~', "~0").replace('/', "~1"),
            Step::Index(at) => at.to_string(),
        };
        self.0.iter().map(|step| format!("/{}", token(step))).collect()
    }

    /// Reads `a.b[0].c` and `.a.b`, as rules are reported. What is in brackets and no number is a key.
    pub(super) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        for part in text.split('.').filter(|part| !part.is_empty()) {
            let mut pieces = part.split('[');
            steps.extend(pieces.next().filter(|name| !name.is_empty()).map(|name| Step::Key(name.to_owned())));
            steps.extend(pieces.map(|piece| {
                let inner = piece.trim_end_matches(']').trim_matches(['"', '\'']);
                inner.parse().map_or_else(|_| Step::Key(inner.to_owned()), Step::Index)
            }));
        }
        Self(steps)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if name.contains(['.', '/', '[']) => write!(f, "[{name}]")?,
                Step::Key(name) if at == 0 => f.write_str(name)?,
                Step::Key(name) => write!(f, ".{name}")?,
                Step::Index(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}
