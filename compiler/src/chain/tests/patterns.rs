//! Containment and overlap of patterns, against every word there is up to a length.

use super::{super::contained, glob, overlap, within};

/// Every text over some letters, from one letter up to a length.
fn texts(letters: &str, longest: usize) -> Vec<String> {
    let (mut all, mut last) = (Vec::new(), vec![String::new()]);
    for _ in 0..longest {
        last = last.iter().flat_map(|text| letters.chars().map(move |letter| format!("{text}{letter}"))).collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// `*` takes any run, every other character itself.
fn fits(pattern: &[u8], word: &[u8]) -> bool {
    match pattern.split_first() {
        None => word.is_empty(),
        Some((b'*', rest)) => (0..=word.len()).any(|taken| fits(rest, &word[taken..])),
        Some((letter, rest)) => word.first() == Some(letter) && fits(rest, &word[1..]),
    }
}

/// Patterns over two letters with the words that fit each, one bit a word. The words have a third letter: names have more letters than
/// any pattern names.
fn language(longest: usize) -> Vec<(String, Vec<u64>)> {
    let words = texts("abc", 6);
    let language = |pattern: &String| {
        words
            .chunks(64)
            .map(|chunk| {
                chunk.iter().fold(0, |bits, word| bits << 1 | u64::from(fits(pattern.as_bytes(), word.as_bytes())))
            })
            .collect()
    };
    texts("ab*", longest).into_iter().map(|pattern| (pattern.clone(), language(&pattern))).collect()
}

fn is_subset(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).all(|(one, other)| one & !other == 0)
}

#[test]
fn a_pattern_matches_exactly_the_words_that_fit_it() {
    let words = texts("abc", 6);
    let mut fitting = 0;
    for pattern in texts("ab*", 4) {
        let parsed = glob(&pattern);
        for word in &words {
            let right = fits(pattern.as_bytes(), word.as_bytes());
            assert_eq!(parsed.matches(word), right, "{pattern} {word}");
            fitting += usize::from(right);
        }
    }
    assert!(fitting > 10_000, "{fitting}");
}

#[test]
fn containment_and_overlap_are_what_all_words_say() {
    let all = language(4);
    let (mut inside, mut common) = (0, 0);
    for (one, words) in &all {
        for (other, others) in &all {
            let contained = is_subset(words, others);
            assert_eq!(within(&glob(one), &glob(other)), contained, "{one} in {other}");
            let meets = words.iter().zip(others).any(|(one, other)| one & other != 0);
            assert_eq!(overlap(&glob(one), &glob(other)), meets, "{one} and {other}");
            inside += usize::from(contained);
            common += usize::from(meets);
        }
    }
    assert_eq!(all.len(), 120);
    assert!(inside > 1_000 && common > inside, "{inside} {common}");
}

/// What [`contained`] builds on: two patterns hold a third together only where one of them does.
#[test]
fn two_patterns_hold_a_third_only_where_one_of_them_does() {
    let all = language(3);
    let mut held = 0;
    for (inner, words) in &all {
        for (at, (one, ones)) in all.iter().enumerate() {
            for (other, others) in &all[at..] {
                let both: Vec<u64> = ones.iter().zip(others).map(|(one, other)| one | other).collect();
                let right = is_subset(words, &both);
                assert_eq!(contained(&[glob(inner)], &[glob(one), glob(other)]), right, "{inner} in {one}, {other}");
                held += usize::from(right);
            }
        }
    }
    assert!(held > 1_000, "{held}");
}
