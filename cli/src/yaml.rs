//! YAML as the command line prints it: long words on one line, so that a fingerprint can be found and copied.

use serde::Serialize;
use serde_saphyr::ser_options;

use crate::failure::{Doing as _, Failure};

/// A line this long is never folded.
const WIDE: usize = 1 << 20;

/// The YAML of a value.
pub(crate) fn text(value: &impl Serialize) -> Result<String, Failure> {
    serde_saphyr::to_string_with_options(value, ser_options! { folded_wrap_chars: WIDE }).doing("write YAML")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_kubectl_would_misread_is_quoted_and_long_words_stay_whole() {
        let long = "x".repeat(200);
        let yaml = text(&json!({"y": "no", "long": long, "lines": "a\nb"})).unwrap();
        assert!(yaml.contains(&format!("long: {long}\n")), "{yaml}");
        assert!(!yaml.contains("\ny:") && !yaml.contains(": no\n"), "{yaml}");
        assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap()["y"], "no");
    }
}
