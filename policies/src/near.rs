//! Names that a person may have meant.

/// How many of them are told.
const TOLD: usize = 3;

/// Letters that have to be added, removed, exchanged or swapped to make one name of the other. Capitals count for nothing.
pub(crate) fn distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(&one.to_lowercase(), &other.to_lowercase())
}

/// Those of the names that are nearest to one, nearest first.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|other| (distance(name, other), (*other).to_owned()));
    names.truncate(TOLD);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_capitals_do_not_count() {
        assert_eq!(nearest("principle", ["tool", "args", "Principal", "protocol"])[0], "Principal");
        assert_eq!((distance("denny", "deny"), distance("dney", "deny"), distance("DENY", "deny")), (1, 1, 0));
    }
}
