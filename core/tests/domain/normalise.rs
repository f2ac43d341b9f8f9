//! Cases of the effective form.

use cotter_core::normalise::effective;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    tool: String,
    /// The effective form; absent where it is the tool itself.
    effective: Option<String>,
}

#[test]
fn the_effective_form_leaves_out_what_nobody_acts_on_and_nothing_else() {
    let cases: Vec<Case> = crate::cases("normalise.yaml");
    for case in cases {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let tool = read(&case.tool);
        let expected = case.effective.as_deref().map_or_else(|| tool.clone(), read);
        assert_eq!(effective(&tool), expected, "{}", case.name);
        assert_eq!(effective(&expected), expected, "{}: not settled", case.name);
        assert_eq!(case.effective.is_none(), tool == expected, "{}: say which it is", case.name);
    }
}
