//! What the flags say, and what is read of it.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    caller: Caller,
}

fn caller(flags: &[&str]) -> Caller {
    Line::try_parse_from([&["cotter"], flags].concat()).unwrap().caller
}

#[test]
fn the_flags_that_are_shown_are_those_that_were_given() {
    let given = [
        "--as",
        "mia o'hara",
        "--tenant",
        "tenant-7",
        "--scope",
        "policy:read case:write",
        "--actor",
        "bot $1",
        "--group",
        "a b",
        "--group",
        "desk",
        "--claim",
        "team=x y",
        "--claim",
        "level=3",
        "--claim",
        "text=\"3\"",
        "--audience",
        "other://mcp",
    ];
    let first = caller(&given);
    let words = shlex::split(&first.flags()).unwrap();
    let second = caller(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(format!("{first:?}"), format!("{second:?}"), "{}", first.flags());
    assert_eq!(first.claims[1..], [("level".to_owned(), 3.into()), ("text".to_owned(), "3".into())]);
    assert_eq!(caller(&["--tenant", "t"]).flags(), " --tenant t", "what needs no quotes has none");
}

/// What may call where a foreign issuer has names of its own for claims, beside the cluster's.
fn access() -> Access {
    let names = |tenant: &str| serde_json::json!({"tenant": tenant, "scopes": "scp", "groups": "roles"});
    serde_json::from_value(serde_json::json!({
        "audience": "support://mcp", "publicUrl": "https://support.example/mcp", "hosts": [], "origins": [], "tenants": ["t"],
        "insufficientScope": "Hide", "advertisedScopes": [],
        "issuers": [
            {"name": "corp", "issuer": "https://corp.example", "jwks": {"keys": []}, "claims": names("org")},
            {"name": "cluster", "issuer": "https://cluster", "jwks": {"keys": []}, "claims": names("tenant"),
             "serviceAccounts": {"tenants": {"support": "t"}}},
        ],
    }))
    .unwrap()
}

#[test]
fn a_principal_is_read_by_the_names_that_its_issuer_has_for_claims() {
    let (access, now) = (access(), Timestamp::UNIX_EPOCH);
    let read = |flags: &[&str], issuer: &str| caller(flags).principal(&issuer.parse().unwrap(), &access, now).unwrap();
    let flags = ["--tenant", "t", "--scope", "a b", "--group", "desk", "--claim", "tenant=other", "--actor", "bot"];
    let corp = read(&flags, "https://corp.example").unwrap();
    assert_eq!(corp.tenant.as_ref().map(Tenant::as_str), Some("t"));
    assert_eq!(corp.scopes.as_ref().map(BTreeSet::len), Some(2));
    assert!(corp.groups.contains("desk") && corp.actor.is_some(), "{corp:?}");
    let claims: Vec<&str> = corp.claims.keys().map(String::as_str).collect();
    assert_eq!(claims, ["act", "aud", "exp", "iat", "iss", "org", "roles", "scp", "sub", "tenant"]);
    let account = read(&["--service-account", "support/bot", "--claim", "team=blue"], "https://corp.example").unwrap();
    assert_eq!((account.issuer.as_str(), account.scopes.is_none()), ("https://cluster", true));
    assert_eq!((account.tenant.as_ref().map(Tenant::as_str), &account.claims["team"]), (Some("t"), &"blue".into()));
    let nobody = read(&["--tenant", "t"], "https://other.example").unwrap_err();
    assert_eq!(nobody.reason, cotter_core::reason::DenyReason::TokenIssuer);
}

#[test]
fn a_token_is_for_a_server_by_its_audience_or_its_url() {
    let access = access();
    let is_for = |audience: &str| caller(&["--audience", audience]).is_for(&access);
    assert!(caller(&[]).is_for(&access) && is_for("support://mcp") && is_for("https://support.example/mcp"));
    assert!(!is_for("other://mcp"));
}

#[test]
fn a_claim_that_has_a_flag_is_refused_with_the_flag() {
    let now = Timestamp::UNIX_EPOCH;
    let issuer: Issuer = "https://login.example".parse().unwrap();
    let names = cotter_core::snapshot::ClaimNames { tenant: "org".to_owned(), ..Default::default() };
    let body = |flags: &[&str]| {
        let said = caller(flags).said(&"support://mcp".parse().unwrap())?;
        said.body(&issuer, &names, now)
    };
    for (claim, says) in [
        ("sub=mia", "--subject"),
        ("org=x", "--tenant"),
        ("scope=x", "--scope"),
        ("groups=[]", "--group"),
        ("act={}", "--actor"),
        ("aud=x", "--audience"),
        ("exp=1", "the issuer's"),
    ] {
        let refused = body(&["--claim", claim]).unwrap_err().to_string();
        assert!(refused.contains(says), "{claim}: {refused}");
    }
    assert!(body(&["--claim", "a=1", "--claim", "a=2"]).unwrap_err().to_string().contains("twice"));
    let body = body(&["--tenant", "t", "--claim", "tenant=[\"u\"]", "--group", "g"]).unwrap();
    assert_eq!((&body["org"], &body["tenant"], &body["groups"]), (&"t".into(), &vec!["u"].into(), &vec!["g"].into()));
    assert!(Line::try_parse_from(["cotter", "--claim", "=x"]).is_err());
}
