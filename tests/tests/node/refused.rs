//! What the API server refuses, with a message that says what to write.

use std::fs;

use cotter_tests::{cluster::Namespace, programs::root};

/// Each change of the example, and what the person is told.
const BAD: [(&str, &str, &str); 4] = [
    ("audience: ", "audiense: ", r#"unknown field "spec.audiense""#),
    (
        "effect: Write",
        "effect: Writes",
        r#"Unsupported value: "Writes": supported values: "Read", "Write", "Destructive", "External""#,
    ),
    ("stdio: {sessions: Shared}", "", "write exactly one of stdio: {} and http: {port: 8000, path: /mcp}"),
    ("      scope: case:write\n", "", "spec.tools[1].scope: Required value"),
];

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn a_manifest_with_a_mistake_is_refused_and_says_what_to_write() {
    let namespace = Namespace::fresh("refused");
    let good = fs::read_to_string(root().join("examples/support-desk/server.yaml")).unwrap();
    for (from, to, message) in BAD {
        assert!(good.contains(from), "the example does not say {from:?}");
        let said = namespace.apply(&good.replace(from, to));
        assert_eq!(said.code, Some(1), "{to}: {said:?}");
        assert!(said.err.contains(message), "{to}: {}", said.err);
    }
    assert_eq!(namespace.kubectl(&["get", "mcps", "-o", "name"]).good(), "");
    namespace.apply(&good).succeeded();
    assert_eq!(namespace.kubectl(&["get", "mcps", "-o", "name"]).good(), "mcpserver.cotter.dev/support\n");
}
