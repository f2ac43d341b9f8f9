//! `docs/reasons.md` says what the code says. Renew it with `UPDATE=1 cargo test -p cotter-core --test reasons`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fmt::Write as _, fs, path::Path};

use cotter_core::reason::{DenyReason, Disclosure};

fn page() -> String {
    let mut page = String::from(
        "# Why a request was refused\n\n\
         Every refusal has one reason. It is in the audit record and in metrics under the name below; names and codes are stable.\n\n\
         What the caller is told depends on the reason. A tool that the caller may not know about reads like one that does not exist: the same bytes, `-32602` `Unknown tool`. \
         A bad token is answered with the same 401 whatever is wrong with it. Where the table has a code of five digits, the answer's error names the reason \
         (`data: {source: \"cotter\", reason, snapshot}`).\n\n\
         | reason | HTTP | code | the caller is told | cause | what to do |\n|---|---|---|---|---|---|\n",
    );
    for reason in DenyReason::ALL {
        let told = match reason.disclosure() {
            Disclosure::UnknownTool => "as an unknown tool",
            Disclosure::Unauthorized => "401, nothing more",
            Disclosure::Http | Disclosure::Protocol => "by the protocol's code",
            Disclosure::Named => "by name",
        };
        let (status, code) = (reason.status(), reason.code());
        let (cause, remedy) = (reason.cause().trim(), reason.remedy());
        writeln!(page, "| `{reason}` | {status} | {code} | {told} | {cause} | {remedy} |").unwrap();
    }
    page
}

#[test]
fn the_page_of_reasons_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reasons.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page(), "docs/reasons.md is not current: UPDATE=1 cargo test -p cotter-core --test reasons");
}

#[test]
fn every_reason_says_what_to_do() {
    for reason in DenyReason::ALL {
        assert!(reason.cause().trim().ends_with('.') && reason.remedy().len() > 10, "{reason}");
        assert!(!format!("{}{}", reason.cause(), reason.remedy()).contains('|'), "{reason} would break the table");
    }
}
