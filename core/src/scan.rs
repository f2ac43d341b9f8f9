//! The injection scan: a backstop that a reviewer sees, never a boundary and never relied upon.
//!
//! It looks through every string of an object, names of members included, for phrases that talk to a model and for
//! code points that a person does not see.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pointer::push;

/// Phrases that server text has little reason to hold. Compared without case, with invisible code points taken out and
/// every run of white space as one space.
pub const PHRASES: [&str; 6] = ["ignore previous", "ignore all", "disregard", "reveal", "exfiltrate", "send your"];

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Finding {
    /// One of [`PHRASES`].
    Phrase,
    /// Tag characters (U+E0000–U+E007F), variation selectors in a row, fillers, controls: text that nobody sees.
    InvisibleCodePoints,
    /// Controls that change the order in which text is shown.
    BidiControls,
    /// Code points without width, which split a word for a program and not for a person.
    ZeroWidth,
}

/// One finding and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Found {
    /// The kind.
    pub finding: Finding,
    /// The string, or the member whose name it is.
    pub pointer: String,
    /// The phrase, or the first code point of the kind as `U+XXXX` and how many there are.
    pub detail: String,
}

/// Most findings that are listed; one is enough to look.
const MAX_FOUND: usize = 100;

/// Longest pointer of a finding, in bytes; a longer one is cut.
const MAX_POINTER: usize = 1024;

/// What is found in all strings of a value and in the names of its members, sorted. A name comes with the pointer of
/// its member.
#[must_use]
pub fn scan(value: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    walk(value, &mut String::new(), &mut found);
    sorted(found)
}

/// What is found in texts, each given with its place, sorted.
#[must_use]
pub fn scan_texts<'t>(texts: impl IntoIterator<Item = (String, &'t str)>) -> Vec<Found> {
    let mut found = Vec::new();
    texts.into_iter().for_each(|(pointer, text)| scan_text(text, &pointer, &mut found));
    sorted(found)
}

fn sorted(mut found: Vec<Found>) -> Vec<Found> {
    found.sort();
    found.dedup();
    found
}

fn walk(value: &Value, path: &mut String, found: &mut Vec<Found>) {
    match value {
        Value::String(text) => scan_text(text, path, found),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let before = path.len();
                push(path, &index.to_string());
                walk(item, path, found);
                path.truncate(before);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let before = path.len();
                push(path, name);
                scan_text(name, path, found);
                walk(member, path, found);
                path.truncate(before);
            }
        }
        _ => {}
    }
}

fn scan_text(text: &str, pointer: &str, found: &mut Vec<Found>) {
    if found.len() >= MAX_FOUND {
        return;
    }
    for kind in [Finding::InvisibleCodePoints, Finding::BidiControls, Finding::ZeroWidth] {
        let mut of_kind = kinds(text).filter(|(_, other)| *other == Some(kind)).map(|(char, _)| char);
        if let Some(first) = of_kind.next() {
            let detail = format!("U+{:04X} ×{}", u32::from(first), 1 + of_kind.count());
            found.push(Found { finding: kind, pointer: cut(pointer), detail });
        }
    }
    let plain = plain(text);
    for phrase in PHRASES.iter().filter(|phrase| plain.contains(**phrase)) {
        found.push(Found { finding: Finding::Phrase, pointer: cut(pointer), detail: (*phrase).to_owned() });
    }
}

fn cut(pointer: &str) -> String {
    if pointer.len() <= MAX_POINTER {
        return pointer.to_owned();
    }
    let end = pointer.floor_char_boundary(MAX_POINTER);
    format!("{}…", pointer.get(..end).unwrap_or_default())
}

/// The text with everything that nobody sees written out as `\u{…}`, for a person who reviews it.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (char, kind) in kinds(text) {
        match kind {
            Some(Finding::Phrase) | None => out.push(char),
            Some(_) => out.extend(char.escape_unicode()),
        }
    }
    out
}

/// Whether a code point has no place in a text that a person reads: it is not seen, or it moves what is. A variation selector has one:
/// emoji are written with it.
#[must_use]
pub fn is_hidden(char: char) -> bool {
    kind(char).is_some()
}

/// Whether a code point leaves nothing to see, wherever it stands.
#[must_use]
pub fn is_invisible(char: char) -> bool {
    is_hidden(char) || is_variation_selector(char)
}

/// Each code point with its kind. One variation selector is how an emoji is written, two in a row carry something.
fn kinds(text: &str) -> impl Iterator<Item = (char, Option<Finding>)> + '_ {
    let mut after_selector = false;
    text.chars().map(move |char| {
        let selector = is_variation_selector(char);
        let kind = if selector && after_selector { Some(Finding::InvisibleCodePoints) } else { kind(char) };
        after_selector = selector;
        (char, kind)
    })
}

fn is_variation_selector(char: char) -> bool {
    matches!(char, '\u{fe00}'..='\u{fe0f}')
}

fn kind(char: char) -> Option<Finding> {
    match char {
        '\t' | '\n' | '\r' => None,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(Finding::InvisibleCodePoints),
        '\u{e0000}'..='\u{e0fff}' => Some(Finding::InvisibleCodePoints),
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => {
            Some(Finding::InvisibleCodePoints)
        }
        '\u{2061}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => {
            Some(Finding::InvisibleCodePoints)
        }
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(Finding::BidiControls)
        }
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => Some(Finding::ZeroWidth),
        _ => None,
    }
}

fn plain(text: &str) -> String {
    let seen: String = text.chars().filter(|char| !is_invisible(*char)).collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(text: &str) -> Vec<Finding> {
        scan(&json!({ "description": text })).into_iter().map(|found| found.finding).collect()
    }

    #[test]
    fn plain_text_has_no_findings() {
        assert!(
            findings("Apply a reviewed routing tag to a support case.\n\tSee the guide \u{2764}\u{fe0f}.").is_empty()
        );
        assert!(findings("Ignores case. Sends the receipt.").is_empty());
    }

    #[test]
    fn each_phrase_is_found_whatever_its_case_and_spacing() {
        for phrase in PHRASES {
            assert_eq!(findings(&format!("Please {phrase} now")), [Finding::Phrase], "{phrase}");
        }
        assert_eq!(findings("IGNORE\n  Previous instructions"), [Finding::Phrase]);
    }

    #[test]
    fn a_phrase_split_by_what_nobody_sees_is_found() {
        assert_eq!(findings("ig\u{200b}nore previous"), [Finding::Phrase, Finding::ZeroWidth]);
    }

    #[test]
    fn code_points_that_nobody_sees_are_found() {
        assert_eq!(findings("a\u{e0041}\u{e0042}"), [Finding::InvisibleCodePoints]);
        assert_eq!(findings("a\u{fe01}\u{fe02}"), [Finding::InvisibleCodePoints]);
        assert_eq!(findings("a\u{1b}[8m"), [Finding::InvisibleCodePoints]);
        assert_eq!(findings("a\u{202e}b"), [Finding::BidiControls]);
        assert_eq!(findings("a\u{feff}b"), [Finding::ZeroWidth]);
    }

    #[test]
    fn every_string_and_every_name_is_looked_at() {
        let found = scan(&json!({"inputSchema": {"properties": {"reveal\u{200b}": {"enum": ["x", "disregard"]}}}}));
        let found: Vec<_> = found.iter().map(|found| (found.pointer.as_str(), found.detail.as_str())).collect();
        assert_eq!(
            found,
            [
                ("/inputSchema/properties/reveal\u{200b}", "reveal"),
                ("/inputSchema/properties/reveal\u{200b}/enum/1", "disregard"),
                ("/inputSchema/properties/reveal\u{200b}", "U+200B ×1"),
            ]
        );
    }

    #[test]
    fn the_reviewer_sees_what_is_invisible() {
        assert_eq!(visible("a\u{e0041}\u{202e}b\n"), "a\\u{e0041}\\u{202e}b\n");
    }
}
