//! Names of one list that a person, a model or a server could take for each other.
//!
//! Two tools of one name, or of names that are equal after case folding or confusable folding (UTS #39), make all of
//! them uncallable: whichever a caller meant, somebody else could have meant the other.

use std::collections::HashMap;

use unicode_security::skeleton;

use crate::scan::is_invisible;

/// What makes the names of a group ambiguous, the plainest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// The same name twice.
    Same,
    /// Equal after case folding.
    Case,
    /// Equal after confusable folding, or but for code points that nobody sees.
    Confusable,
}

/// Names that cannot be told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// The plainest likeness that holds the whole group together.
    pub likeness: Likeness,
    /// The names in the order given, with repetitions.
    pub names: Vec<String>,
}

/// Groups of names of one list that are ambiguous, in the order of their first name. A name in none of them is fine.
#[must_use]
pub fn ambiguous(names: &[&str]) -> Vec<Ambiguity> {
    let mut groups = Groups::new(names.len());
    for key in [same as fn(&str) -> String, case, confusable, seen] {
        let mut first: HashMap<String, usize> = HashMap::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let other = *first.entry(key(name)).or_insert(index);
            groups.join(index, other);
        }
    }
    groups.collect(names)
}

fn same(name: &str) -> String {
    name.to_owned()
}

/// Case folding without context, so that the two forms of a small sigma and `ß` against `SS` come out equal.
fn case(name: &str) -> String {
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// The skeleton of UTS #39, of what is visible.
fn confusable(name: &str) -> String {
    let visible: String = name.chars().filter(|char| !is_invisible(*char)).collect();
    skeleton(&visible).collect()
}

/// Both foldings, until they add nothing: `l0g` looks like `lOg`, which differs from `log` only in case.
fn seen(name: &str) -> String {
    case(&confusable(&case(name)))
}

/// Disjoint sets over the indices of the names.
struct Groups {
    parent: Vec<usize>,
}

impl Groups {
    fn new(len: usize) -> Self {
        Self { parent: (0..len).collect() }
    }

    fn root(&self, mut index: usize) -> usize {
        while let Some(&parent) = self.parent.get(index)
            && parent != index
        {
            index = parent;
        }
        index
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(parent) = self.parent.get_mut(a.max(b)) {
            *parent = a.min(b);
        }
    }

    fn collect(&self, names: &[&str]) -> Vec<Ambiguity> {
        let mut members: Vec<Vec<String>> = vec![Vec::new(); names.len()];
        for (index, name) in names.iter().enumerate() {
            if let Some(group) = members.get_mut(self.root(index)) {
                group.push((*name).to_owned());
            }
        }
        let groups = members.into_iter().filter(|group| group.len() > 1);
        groups.map(|names| Ambiguity { likeness: likeness(&names), names }).collect()
    }
}

fn likeness(names: &[String]) -> Likeness {
    let one = |key: fn(&str) -> String| {
        let mut keys = names.iter().map(|name| key(name));
        let first = keys.next();
        keys.all(|key| Some(key) == first)
    };
    if one(same) {
        Likeness::Same
    } else if one(case) {
        Likeness::Case
    } else {
        Likeness::Confusable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(names: &[&str]) -> Vec<(Likeness, Vec<String>)> {
        ambiguous(names).into_iter().map(|group| (group.likeness, group.names)).collect()
    }

    #[test]
    fn names_that_differ_are_left_alone() {
        assert!(groups(&["case_tag", "case_tags", "policy_lookup", "case-tag", "list", "lists", ""]).is_empty());
    }

    #[test]
    fn one_name_twice_is_ambiguous() {
        assert_eq!(groups(&["a", "b", "a"]), [(Likeness::Same, vec!["a".into(), "a".into()])]);
    }

    #[test]
    fn names_equal_but_for_case_are_ambiguous() {
        assert_eq!(groups(&["readFile", "x", "readfile"])[0].0, Likeness::Case);
        assert_eq!(groups(&["straße", "STRASSE"])[0].0, Likeness::Case);
        assert_eq!(groups(&["σας", "σασ"])[0].0, Likeness::Case);
    }

    #[test]
    fn names_that_look_alike_are_ambiguous() {
        assert_eq!(groups(&["case_tag", "c\u{430}se_tag"])[0].0, Likeness::Confusable, "a Cyrillic a");
        assert_eq!(groups(&["case_tag", "case_tag\u{200b}"])[0].0, Likeness::Confusable, "a zero-width space");
        assert_eq!(groups(&["case_tag", "case\u{e0041}_tag"])[0].0, Likeness::Confusable, "a tag character");
        assert_eq!(groups(&["case_tag", "case_\u{fff9}tag"])[0].0, Likeness::Confusable, "an annotation anchor");
        assert_eq!(groups(&["log", "l0g"])[0].0, Likeness::Confusable, "looks like lOg, which is log but for case");
        assert_eq!(groups(&["list", "Iist"])[0].0, Likeness::Confusable, "a capital i");
    }

    #[test]
    fn a_group_takes_in_everything_that_is_alike_through_another() {
        let found = groups(&["log", "lOg", "l0g", "other"]);
        assert_eq!(found, [(Likeness::Confusable, vec!["log".into(), "lOg".into(), "l0g".into()])]);
    }
}
