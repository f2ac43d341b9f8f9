//! Modules that an earlier stage refused. The others go on without them, and what those would have brought is not missed there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::MAX_BYTES;
use crate::syntax::Step;

/// Where the rules of modules live that are given and cannot be looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    packages: BTreeSet<Vec<String>>,
    /// One of them can be anywhere.
    unknown: bool,
}

impl LeftOut {
    /// Notes one, by what can be read of its text.
    pub fn add(&mut self, text: &str) {
        let beginning = text.as_bytes().get(..MAX_BYTES).unwrap_or(text.as_bytes());
        match package(&String::from_utf8_lossy(beginning)) {
            Some(package) => self.add_package(package),
            None => self.unknown = true,
        }
    }

    pub(super) fn add_package(&mut self, package: Vec<String>) {
        self.packages.insert(package);
    }

    pub(super) fn is_none(&self) -> bool {
        !self.unknown && self.packages.is_empty()
    }

    /// Whether one of them can have rules of this package.
    pub(super) fn share(&self, package: &[String]) -> bool {
        self.unknown || self.packages.contains(package)
    }

    /// Whether what a path of `data` leads to can be in one of them.
    pub(super) fn may_have(&self, path: &[Step]) -> bool {
        let is = |step: &Step, name: &str| match step {
            Step::Name(step) => step == name,
            Step::Any => true,
        };
        let meets = |package: &Vec<String>| path.iter().zip(package).all(|(step, name)| is(step, name));
        let below_user = || path.iter().zip(["cotter", "user"]).all(|(step, name)| is(step, name));
        self.packages.iter().any(meets) || (self.unknown && below_user())
    }
}

/// The package that a text names on the first line that is neither empty nor a comment, where that is all that the line says.
fn package(text: &str) -> Option<Vec<String>> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let rest = line.strip_prefix("package")?;
    let name = rest.split('#').next().unwrap_or_default().trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let is_whole = rest.starts_with([' ', '\t']) && !name.is_empty() && name.chars().all(is_plain);
    is_whole.then(|| name.split('.').map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Vec<Step> {
        path.split('.').map(|name| if name == "*" { Step::Any } else { Step::Name(name.to_owned()) }).collect()
    }

    #[test]
    fn what_a_package_can_have_is_at_it_below_it_and_above_it() {
        let mut left = LeftOut::default();
        left.add("# about\n\npackage cotter.user.a.b # more\nx := [[[");
        for (reference, may) in [
            ("cotter.user.a.b.x", true),
            ("cotter.user.a", true),
            ("cotter.user.*.b", true),
            ("cotter.user.a.c", false),
            ("cotter.user.b", false),
            ("cotter.scopes", false),
        ] {
            assert_eq!(left.may_have(&path(reference)), may, "{reference}");
        }
        assert!(left.share(&["cotter", "user", "a", "b"].map(ToOwned::to_owned)) && !left.share(&[]));
    }

    #[test]
    fn a_text_that_names_no_package_can_be_anywhere() {
        for text in ["", "package", "package cotter.user[\"a\"]", "x := 1\npackage cotter.user.a"] {
            let mut left = LeftOut::default();
            left.add(text);
            assert!(left.may_have(&path("cotter.user.z")) && !left.may_have(&path("cotter.scopes")), "{text}");
        }
        assert!(LeftOut::default().is_none());
    }
}
