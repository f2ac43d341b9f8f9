//! Every reason is reached: by a case where a decision of the policy can have it, and where not, by a test of what comes before or after.

use std::{collections::BTreeSet, fs, path::Path};

use cotter_core::reason::DenyReason::{self, *};

/// Reasons that no decision of the library has, each with the test that reaches it.
const ELSEWHERE: &[(&str, &[DenyReason])] = &[
    (
        "proxy/tests/front/hygiene.rs",
        &[
            MethodNotAllowed,
            PathNotFound,
            HostNotAllowed,
            OriginNotAllowed,
            HeadersTooLarge,
            RequestTimeout,
            UnsupportedMediaType,
            NotAcceptable,
            TooLarge,
            UnsupportedRevision,
            HeaderMismatch,
            SessionRequired,
            SessionUnknown,
            MethodNotFound,
            InvalidParams,
        ],
    ),
    (
        "proxy/tests/front/tokens.rs",
        &[
            TokenMalformed,
            TokenAlgorithm,
            TokenKeyUnknown,
            TokenSignature,
            TokenIssuer,
            TokenAudience,
            TokenExpired,
            TokenNotYetValid,
            TokenClaims,
        ],
    ),
    ("proxy/tests/program.rs", &[TokenMissing]),
    ("proxy/tests/front/messages.rs", &[ParseError, InvalidRequest]),
    // What a decision becomes on its way out, and what is refused before there is one.
    ("proxy/tests/front/decision.rs", &[InsufficientScope, ApprovalRequired, Unlisted]),
    ("proxy/tests/front/arguments.rs", &[InvalidArguments]),
    ("proxy/tests/front/catalogue.rs", &[NotReady, Ambiguous]),
    ("core/src/catalogue/tests.rs", &[NotOffered, Quarantined]),
    (
        "proxy/tests/front/limits.rs",
        &[RateLimited, TooManyRequests, TooManySessions, ResultTooLarge, UpstreamMalformed],
    ),
    ("proxy/tests/front/budget.rs", &[BudgetExhausted]),
    ("proxy/tests/front/staleness.rs", &[SnapshotStale]),
    ("proxy/src/upstream/tests/http.rs", &[UpstreamUnreachable, UpstreamTimeout]),
];
/// Nothing reaches it: it stands for a value of the sidecar's own that JSON could not hold.
const NOWHERE: &[DenyReason] = &[Internal];

#[test]
fn every_reason_that_a_decision_can_have_is_reached_by_a_case() {
    let others: BTreeSet<_> = ELSEWHERE.iter().flat_map(|(_, reasons)| *reasons).chain(NOWHERE).copied().collect();
    let wanted: BTreeSet<_> = DenyReason::ALL.iter().copied().filter(|reason| !others.contains(reason)).collect();
    assert!(wanted.len() > 10, "{wanted:?}");
    assert_eq!(crate::cases::reached(), wanted);
}

#[test]
fn every_other_reason_is_named_by_the_test_that_reaches_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (file, reasons) in ELSEWHERE {
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        // A comment reaches nothing.
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let words: BTreeSet<&str> = code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric())).collect();
        for reason in *reasons {
            assert!(words.contains(reason.as_str()), "{file} does not name {reason}");
        }
    }
}
