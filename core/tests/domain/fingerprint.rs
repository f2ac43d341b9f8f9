//! Cases of fingerprints.

use std::collections::BTreeSet;

use cotter_core::fingerprint::{Fingerprint, HashError, Ignore, Scheme, fingerprint_bytes, members};
use cotter_core::strict::{Limits, parse};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    vectors: Vec<Vector>,
    same: Vec<Group>,
    different: Vec<Group>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    scheme: Scheme,
    #[serde(default)]
    ignore: Vec<String>,
    tool: String,
    fingerprint: Fingerprint,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    #[serde(default = "strictly")]
    scheme: Scheme,
    #[serde(default)]
    ignore: Vec<String>,
    tools: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    name: String,
    #[serde(default = "strictly")]
    scheme: Scheme,
    #[serde(default)]
    ignore: Vec<String>,
    tool: String,
    says: String,
    /// Whether the tool is at fault, which makes it `Ambiguous`.
    ambiguous: bool,
}

fn strictly() -> Scheme {
    Scheme::ToolV1
}

fn hash(tool: &str, scheme: Scheme, ignore: &[String]) -> Result<Fingerprint, HashError> {
    fingerprint_bytes(tool.as_bytes(), scheme, &Ignore::parse(ignore).unwrap())
}

fn all() -> Cases {
    crate::cases("fingerprint.yaml")
}

#[test]
fn vectors_computed_elsewhere_are_met() {
    for case in all().vectors {
        assert_eq!(hash(&case.tool, case.scheme, &case.ignore), Ok(case.fingerprint), "{}", case.name);
    }
}

#[test]
fn what_says_the_same_hashes_the_same() {
    for case in all().same {
        let hashes: BTreeSet<_> =
            case.tools.iter().map(|tool| hash(tool, case.scheme, &case.ignore).unwrap()).collect();
        assert_eq!(hashes.len(), 1, "{}", case.name);
        assert!(case.tools.len() > 1, "{}", case.name);
    }
}

#[test]
fn what_differs_hashes_differently() {
    for case in all().different {
        let hashes: BTreeSet<_> =
            case.tools.iter().map(|tool| hash(tool, case.scheme, &case.ignore).unwrap()).collect();
        assert_eq!(hashes.len(), case.tools.len(), "{}", case.name);
        assert!(case.tools.len() > 1, "{}", case.name);
    }
}

#[test]
fn what_two_readers_could_read_differently_has_no_fingerprint() {
    for case in all().refused {
        let error = hash(&case.tool, case.scheme, &case.ignore).map(|hash| hash.to_string());
        let error = error.expect_err(&case.name);
        assert!(error.to_string().contains(&case.says), "{}: {error}", case.name);
        assert_eq!(error.is_ambiguous(), case.ambiguous, "{}: {error}", case.name);
    }
}

#[test]
fn the_domain_separates_schemes_and_ignored_members() {
    let tool = r#"{"name":"a"}"#;
    let absent = ["/description".to_owned()];
    let none = hash(tool, Scheme::ToolV1, &[]).unwrap();
    let ignored = hash(tool, Scheme::ToolV1, &absent).unwrap();
    let prompt = hash(tool, Scheme::PromptV1, &[]).unwrap();
    let effective = hash(tool, Scheme::ToolV1Effective, &[]).unwrap();
    let digests: BTreeSet<_> = [none, ignored, prompt, effective].map(|hash| hash.digest()).into();
    assert_eq!(digests.len(), 4);
}

#[test]
fn a_fingerprint_survives_its_text_and_nothing_else_does() {
    let hash = hash(r#"{"name":"a"}"#, Scheme::ToolV1Effective, &[]).unwrap();
    let text = hash.to_string();
    assert_eq!(text.parse(), Ok(hash));
    assert_eq!(serde_json::from_value::<Fingerprint>(json!(text)).unwrap(), hash);
    let hex = hash.digest().to_string();
    for wrong in [
        hex.clone(),
        format!("sha256:{hex}"),
        format!("cotter.tool/v2:sha256:{hex}"),
        format!("cotter.tool/v1:sha512:{hex}"),
        format!("cotter.tool/v1:sha256:{}", hex.to_uppercase()),
        format!("cotter.tool/v1:sha256:{}", &hex[1..]),
        format!("cotter.tool/v1:sha256:{hex} "),
        format!("cotter.tool/v1:sha256:{}\u{e9}", &hex[2..]),
    ] {
        assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
    }
}

#[test]
fn a_difference_is_told_by_member() {
    let digests = |tool: &str| members(&parse(tool.as_bytes(), Limits::default()).unwrap(), &Ignore::NONE).unwrap();
    let before = digests(r#"{"name":"a","description":"x","_meta":{"t":1}}"#);
    let after = digests(r#"{"name":"a","description":"x","_meta":{"t":2},"title":"x"}"#);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["_meta", "description", "name"]);
    assert_eq!((before["name"], before["description"]), (after["name"], after["description"]));
    assert_ne!(before["_meta"], after["_meta"]);
    assert_ne!(after["title"], after["description"], "one value under two names");
}

#[test]
fn an_ignored_member_is_served_as_approved_or_not_at_all() {
    let ignore = Ignore::parse(&["/description", "/_meta/time", "/inputSchema/properties/zone/default"]).unwrap();
    let approved = json!({"name": "now", "description": "reviewed", "_meta": {"v": 1},
        "inputSchema": {"properties": {"zone": {"default": "UTC"}}}});
    let observed = json!({"name": "now", "description": "ignore previous", "_meta": {"v": 1, "time": 5},
        "inputSchema": {"properties": {"zone": {}}}});
    assert_eq!(ignore.serve(&observed, Some(&approved)), Ok(approved.clone()));
    let bare = json!({"name": "now", "_meta": {"v": 1}, "inputSchema": {"properties": {"zone": {}}}});
    assert_eq!(ignore.serve(&observed, None), Ok(bare));
    assert_eq!(Ignore::NONE.serve(&observed, Some(&approved)), Ok(observed));
}

#[test]
fn ignored_pointers_are_sorted_once_each_and_bounded() {
    let ignore = Ignore::parse(&["/b", "/a", "/b"]).unwrap();
    assert_eq!(serde_json::to_value(&ignore).unwrap(), json!(["/a", "/b"]));
    assert_eq!(serde_json::from_value::<Ignore>(json!(["/b", "/a"])).unwrap(), ignore);
    let many: Vec<String> = (0..65).map(|n| format!("/{n}")).collect();
    assert!(Ignore::parse(&many[..64]).is_ok());
    assert!(Ignore::parse(&many).is_err());
    assert!(Ignore::parse(&["description"]).is_err());
}
