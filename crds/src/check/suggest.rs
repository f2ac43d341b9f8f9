//! What somebody probably meant.

/// `; did you mean "…"?` for the candidate nearest to what was written, or nothing where none is near.
pub(super) fn phrase<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, candidates).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// The candidate at the smallest distance, where that is at most a third of what was written.
fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let budget = written.chars().count().div_ceil(3);
    let measured = candidates.into_iter().map(|name| (distance(written, name), name));
    measured.filter(|(distance, _)| *distance <= budget).min().map(|(_, name)| name)
}

/// Edit distance in which a change of case alone costs nothing and two swapped neighbours cost one.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(128).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(128).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&row, j) + usize::from(x != y)).min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let fields = ["scope", "effect", "approval", "idempotencyKey"];
        assert_eq!(nearest("scopes", fields), Some("scope"));
        assert_eq!(nearest("efefct", fields), Some("effect"));
        assert_eq!(nearest("idempotencykey", fields), Some("idempotencyKey"));
        assert_eq!(nearest("timeout", fields), None);
    }
}
