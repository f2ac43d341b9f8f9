//! Text that a server wrote, made fit for logs, terminals and status.

/// At most `max` characters of `text`, with everything that is not plain printable text escaped, so that it can neither move
/// a cursor nor hide. What was cut is shown by `…`.
#[must_use]
pub(crate) fn printable(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for (count, char) in text.chars().enumerate() {
        if count == max {
            out.push('…');
            break;
        }
        if char.is_ascii_graphic() || char == ' ' || char.is_alphanumeric() {
            out.push(char);
        } else {
            out.extend(char.escape_unicode());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_invisible_characters_are_escaped_and_length_is_bounded() {
        assert_eq!(printable("plain text, 1é", 100), "plain text, 1é");
        assert_eq!(printable("a\u{1b}[2J\u{202e}b", 100), r"a\u{1b}[2J\u{202e}b");
        assert_eq!(printable("\u{e0041}", 100), r"\u{e0041}");
        assert_eq!(printable("abcdef", 3), "abc…");
    }
}
