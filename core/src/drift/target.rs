//! Properties that can name a target: where something is sent, read from, or run.

use serde_json::Value;

use crate::normalise::below;

/// Words that make a property one that can name a target, in singular; the plural counts too. They are compared
/// with the whole words of a name, split at `camelCase`, `snake_case`, `kebab-case`, dots and digits, so that
/// `profile` does not count as `file`.
#[rustfmt::skip] // one meaning a line
pub const TARGET_WORDS: &[&str] = &[
    // URL
    "url", "uri", "urn", "link", "href", "endpoint", "site", "website", "origin", "redirect", "proxy",
    // path
    "path", "file", "filename", "filepath", "dir", "directory", "folder", "cwd", "bucket", "repo", "repository",
    "mount", "volume",
    // host
    "host", "hostname", "domain", "server", "address", "addr", "ip", "port", "cluster", "database",
    // recipient
    "recipient", "to", "cc", "bcc", "email", "mail", "phone", "receiver", "destination", "dest", "target", "sink",
    // channel
    "channel", "topic", "queue", "room",
    // callback
    "callback", "webhook", "hook", "listener",
    // command
    "command", "cmd", "exec", "script", "shell", "program", "executable", "binary",
];

/// Formats whose values are targets, whatever the property is called.
const TARGET_FORMATS: &[&str] = &[
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "uri",
    "uri-reference",
    "uri-template",
    "url",
];

/// Whether a new property can name a target, by its own name or that of a property inside it, or by a format.
///
/// A name with letters outside ASCII cannot be compared with the list, so it counts.
pub(super) fn can_name_target(name: &str, schema: &Value) -> bool {
    !name.is_ascii() || words(name).iter().any(|word| is_target(word)) || schema_names_target(schema)
}

fn schema_names_target(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    let format = members.get("format").and_then(Value::as_str);
    format.is_some_and(|format| TARGET_FORMATS.contains(&format))
        || members.iter().any(|(keyword, value)| value_names_target(keyword, value))
}

fn value_names_target(keyword: &str, value: &Value) -> bool {
    let below = below(keyword);
    match value {
        Value::Object(named) if keyword == "properties" => {
            named.iter().any(|(name, schema)| can_name_target(name, schema))
        }
        Value::Object(named) if below.named => named.values().any(schema_names_target),
        Value::Array(many) if below.many => many.iter().any(schema_names_target),
        one if below.one => schema_names_target(one),
        _ => false,
    }
}

fn is_target(word: &str) -> bool {
    let without = |ending: &str| word.strip_suffix(ending).unwrap_or(word);
    let listed = |word: &str| TARGET_WORDS.contains(&word);
    listed(word) || listed(without("s")) || listed(without("es")) || listed(&format!("{}y", without("ies")))
}

/// The words of a name in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let chars: Vec<char> = name.chars().collect();
    for (index, char) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| chars.get(index));
        let starts = char.is_ascii_uppercase()
            && (before.is_some_and(char::is_ascii_lowercase)
                || chars.get(index + 1).is_some_and(char::is_ascii_lowercase));
        if starts || !char.is_ascii_alphabetic() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| char.is_ascii_alphabetic()) {
            word.push(char.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("callbackURL"), ["callback", "url"]);
        assert_eq!(words("HTTPServerPort2x"), ["http", "server", "port", "x"]);
        assert_eq!(words("send_to-address.v1"), ["send", "to", "address", "v"]);
    }

    #[test]
    fn a_target_is_known_by_a_whole_word() {
        for name in ["url", "callbackUrl", "file_path", "to", "sendTo", "Recipients", "directories", "outputDir"] {
            assert!(can_name_target(name, &json!({"type": "string"})), "{name}");
        }
        for name in ["customer", "profile", "portion", "pathology", "total", "hostile", "limit", "dry_run"] {
            assert!(!can_name_target(name, &json!({"type": "string"})), "{name}");
        }
    }

    #[test]
    fn a_target_inside_or_by_format_is_found() {
        assert!(can_name_target("options", &json!({"properties": {"webhook": {"type": "string"}}})));
        assert!(can_name_target("options", &json!({"items": {"anyOf": [{"properties": {"host": {}}}]}})));
        assert!(can_name_target("where", &json!({"type": "string", "format": "uri"})));
        assert!(!can_name_target("options", &json!({"properties": {"depth": {"default": {"url": "x"}}}})));
        assert!(can_name_target("\u{443}rl", &json!({})), "a name that only looks like a word");
    }
}
