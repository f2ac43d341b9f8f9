//! Where in an object something is.

use std::fmt;

use serde_json::Value;

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

    /// Reads `a.b[0].c` and `a..b`, as rules are reported. A member's name may have dots in it, so the object decides where
    /// a name ends; what is not in the object ends at the next dot or bracket.
    pub(super) fn resolve(text: &str, object: &Value) -> Self {
        let (mut steps, mut at, mut rest) = (Vec::new(), Some(object), text.trim_start_matches('.'));
        while !rest.is_empty() {
            let (step, after) = next_step(rest, at);
            at = match &step {
                Step::Key(name) => at.and_then(|value| value.get(name)),
                Step::Index(index) => at.and_then(|value| value.get(index)),
            };
            steps.push(step);
            rest = after.trim_start_matches('.');
        }
        Self(steps)
    }
}

fn next_step<'a>(text: &'a str, at: Option<&Value>) -> (Step, &'a str) {
    if let Some((index, after)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return (index.parse().map_or_else(|_| Step::Key(index.to_owned()), Step::Index), after);
    }
    let ends = |after: &str| after.is_empty() || after.starts_with(['.', '[']);
    let members = at.and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys);
    let fitting = members.filter_map(|name| text.strip_prefix(name.as_str()).filter(|after| ends(after)));
    let split = text.get(1..).and_then(|tail| tail.find(['.', '['])).map_or(text.len(), |at| at + 1);
    let unknown = text.get(split..).unwrap_or_default();
    let after = fitting.min_by_key(|after| after.len()).unwrap_or(unknown);
    let name = text.strip_suffix(after).unwrap_or(text);
    (Step::Key(name.to_owned()), after)
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if at == 0 => f.write_str(name)?,
                Step::Key(name) => write!(f, ".{name}")?,
                Step::Index(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_with_dots_is_one_step() {
        let object = json!({"limits": {"nvidia.com/gpu": 1, "nvidia": {}}, "list": [{"a": 1}]});
        let path = FieldPath::resolve("limits.nvidia.com/gpu", &object);
        assert_eq!(path.pointer(), "/limits/nvidia.com~1gpu");
        assert_eq!(FieldPath::resolve("list[0].a", &object).pointer(), "/list/0/a");
        assert_eq!(FieldPath::resolve("list[0]..gone.b", &object).to_string(), "list[0].gone.b");
        assert!(FieldPath::resolve("", &object).is_root());
    }
}
