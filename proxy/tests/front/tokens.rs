//! Every way in which a token can be wrong, each beside a good one.

use cotter_core::reason::DenyReason as Reason;
use serde_json::{Value, json};

use crate::{
    issuer::{ISSUER, Issuer, claims, sign_symmetric, soon, unsigned},
    rig::{Rig, Told},
};

const BOTH: &str = "policy:read case:write";

async fn list(rig: &Rig, token: &str) -> Told {
    rig.modern(token, "tools/list", json!({})).await
}

fn but(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = claims(BOTH);
    change(&mut claims);
    claims
}

fn without(claim: &str) -> Value {
    but(|claims| drop(claims.as_object_mut().unwrap().remove(claim)))
}

fn with(claim: &str, value: Value) -> Value {
    but(|claims| claims[claim] = value)
}

type Bad = (&'static str, String, Reason);

/// Tokens whose form, header or signature is wrong.
fn bad_forms(issuer: &Issuer) -> Vec<Bad> {
    let (other, good) = (Issuer::new("one"), claims(BOTH));
    let text = good.to_string();
    let header = |more: Value| {
        let mut header = json!({"alg": "ES256", "typ": "JWT", "kid": "one"});
        header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        header
    };
    let with_header = |more: Value| issuer.sign_with(&header(more), &text);
    let with_text = |text: &str| issuer.sign_with(&header(json!({})), text);
    let twice = text.replacen('{', "{\"tenant\":\"tenant-8\",", 1);
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let deeper = text.replacen('{', &format!("{{\"x\":{},", nested(60)), 1);
    let key = issuer.jwk().to_string();
    let token = issuer.sign(&good);
    let unfinished = token.rsplit_once('.').unwrap().0.to_owned();
    vec![
        ("no token at all", "x".to_owned(), Reason::TokenMalformed),
        ("two parts", unfinished.clone(), Reason::TokenMalformed),
        ("four parts", format!("{token}.x"), Reason::TokenMalformed),
        ("too long", format!("{token}{}", "A".repeat(17_000)), Reason::TokenMalformed),
        ("padding", format!("{}=.x.y", token.split('.').next().unwrap()), Reason::TokenMalformed),
        ("alg none", unsigned("none", &good), Reason::TokenAlgorithm),
        ("alg None", unsigned("None", &good), Reason::TokenAlgorithm),
        ("no signature", format!("{unfinished}."), Reason::TokenSignature),
        ("the public key as a secret", sign_symmetric(key.as_bytes(), &good), Reason::TokenAlgorithm),
        ("another key of the same name", other.sign(&good), Reason::TokenSignature),
        ("changed claims", swapped(&token, &issuer.sign(&with("sub", json!("root")))), Reason::TokenSignature),
        ("unknown kid", with_header(json!({"kid": "two"})), Reason::TokenKeyUnknown),
        ("kid of another type", with_header(json!({"kid": 1})), Reason::TokenMalformed),
        ("crit", with_header(json!({"crit": ["exp"]})), Reason::TokenMalformed),
        ("empty crit", with_header(json!({"crit": []})), Reason::TokenMalformed),
        ("another typ", with_header(json!({"typ": "logout+jwt"})), Reason::TokenMalformed),
        ("claims twice", with_text(&twice), Reason::TokenMalformed),
        ("claims too deep", with_text(&deeper), Reason::TokenMalformed),
        ("claims no object", with_text("[]"), Reason::TokenMalformed),
    ]
}

/// Well-signed tokens whose claims are wrong.
fn bad_claims(issuer: &Issuer) -> Vec<Bad> {
    let deep = (0..9).fold(json!(null), |inner, _| json!({"sub": "agent", "act": inner}));
    let bad = [
        ("another issuer", with("iss", json!("https://evil.example")), Reason::TokenIssuer),
        ("issuer with a slash", with("iss", json!("https://login.example/")), Reason::TokenIssuer),
        ("no issuer", without("iss"), Reason::TokenClaims),
        ("issuers", with("iss", json!(["https://login.example"])), Reason::TokenClaims),
        ("no audience", without("aud"), Reason::TokenClaims),
        ("another audience", with("aud", json!("inventory://api")), Reason::TokenAudience),
        ("audience with a slash", with("aud", json!("support://mcp/")), Reason::TokenAudience),
        ("no audiences", with("aud", json!([])), Reason::TokenAudience),
        ("no subject", without("sub"), Reason::TokenClaims),
        ("empty subject", with("sub", json!("")), Reason::TokenClaims),
        ("no expiry", without("exp"), Reason::TokenClaims),
        ("expiry as text", with("exp", json!(soon(600).to_string())), Reason::TokenClaims),
        ("expired", with("exp", json!(soon(-40))), Reason::TokenExpired),
        ("not yet", with("nbf", json!(soon(60))), Reason::TokenNotYetValid),
        ("nbf as text", with("nbf", json!("0")), Reason::TokenClaims),
        ("tenants", with("tenant", json!(["tenant-7"])), Reason::TokenClaims),
        ("tenant null", with("tenant", json!(null)), Reason::TokenClaims),
        ("tenant with something unseen", with("tenant", json!("tenant-7\u{200b}")), Reason::TokenClaims),
        ("scope as a number", with("scope", json!(1)), Reason::TokenClaims),
        ("scopes that are no text", with("scope", json!(["policy:read", 1])), Reason::TokenClaims),
        ("act as text", with("act", json!("agent")), Reason::TokenClaims),
        ("act without sub", with("act", json!({})), Reason::TokenClaims),
        ("too many actors", with("act", deep), Reason::TokenClaims),
    ];
    bad.into_iter().map(|(what, claims, reason)| (what, issuer.sign(&claims), reason)).collect()
}

/// The claims of one token under the signature of another.
fn swapped(token: &str, other: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let others: Vec<&str> = other.split('.').collect();
    format!("{}.{}.{}", parts[0], others[1], parts[2])
}

#[tokio::test]
async fn every_bad_token_is_refused_with_the_same_bytes_and_its_own_reason() {
    let mut rig = Rig::start().await;
    let mut faces = Vec::new();
    for (what, token, reason) in [bad_forms(&rig.issuer), bad_claims(&rig.issuer)].concat() {
        let told = list(&rig, &token).await;
        assert_eq!(told.status, 401, "{what}");
        let record = rig.record(&told).await;
        assert_eq!(record.reasons[0].code, reason, "{what}: {record:?}");
        assert!(record.principal.is_none(), "{what}");
        faces.push((what, told.face()));
    }
    for pair in faces.windows(2) {
        assert_eq!(pair[0].1, pair[1].1, "{} and {}", pair[0].0, pair[1].0);
    }
    let address = rig.sidecar.local_addr();
    let metadata = format!("resource_metadata=\"http://{address}/.well-known/oauth-protected-resource/mcp\"");
    let told = list(&rig, "x").await;
    assert_eq!(told.header("www-authenticate"), Some(&*format!("Bearer error=\"invalid_token\", {metadata}")));
    let told = rig.post_text(None, &[], "{}").await;
    assert_eq!((told.status, told.header("www-authenticate")), (401, Some(&*format!("Bearer {metadata}"))));
    assert_eq!(list(&rig, &rig.issuer.token(BOTH)).await.status, 200);
}

#[tokio::test]
async fn what_is_only_unusual_passes() {
    let rig = Rig::start().await;
    let deepest = (0..8).fold(json!(null), |inner: Value, _| {
        let mut actor = json!({"sub": "agent"});
        if inner.is_object() {
            actor["act"] = inner;
        }
        actor
    });
    for (what, claims) in [
        ("audiences", with("aud", json!(["x", "support://mcp"]))),
        ("scopes as an array", with("scope", json!(["policy:read", "case:write"]))),
        ("expired within the leeway", with("exp", json!(soon(-20)))),
        ("not yet, within the leeway", with("nbf", json!(soon(20)))),
        ("a fraction of a second", with("exp", json!(soon(600) as f64 + 0.5))),
        ("a very late expiry", with("exp", json!(1e18))),
        ("one group", with("groups", json!("ops"))),
    ] {
        let told = list(&rig, &rig.issuer.sign(&claims)).await;
        assert_eq!((told.status, told.json()["result"]["tools"].as_array().unwrap().len()), (200, 2), "{what}");
    }
    // A chain of eight actors is read; who acts has no delegation here.
    let told = list(&rig, &rig.issuer.sign(&with("act", deepest))).await;
    assert_eq!((told.status, &told.json()["error"]["data"]["reason"]), (403, &json!("NoDelegation")));
    for typ in [json!(null), json!("at+jwt"), json!("application/AT+JWT")] {
        let mut header = json!({"alg": "ES256", "kid": "one"});
        if typ.is_string() {
            header["typ"] = typ.clone();
        }
        let token = rig.issuer.sign_with(&header, &claims(BOTH).to_string());
        assert_eq!(list(&rig, &token).await.status, 200, "{typ}");
    }
}

#[tokio::test]
async fn kid_may_be_absent_only_where_one_key_fits() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.sign_with(&json!({"alg": "ES256"}), &claims(BOTH).to_string());
    assert_eq!(list(&rig, &token).await.status, 200);
    let two = json!({"keys": [rig.issuer.jwk(), Issuer::new("two").jwk()]});
    rig.enforce(|snapshot| snapshot["access"]["issuers"][0]["jwks"] = two).await;
    let told = list(&rig, &token).await;
    assert_eq!(told.status, 401);
    assert_eq!(rig.record(&told).await.reasons[0].code, Reason::TokenKeyUnknown);
    assert_eq!(list(&rig, &rig.issuer.token(BOTH)).await.status, 200);
}

#[tokio::test]
async fn keys_that_cannot_verify_a_signature_are_no_keys() {
    let rig = Rig::start().await;
    let key = rig.issuer.jwk();
    let but = |name: &str, value: Value| {
        let mut key = key.clone();
        key[name] = value;
        key
    };
    let small = json!({"kty": "RSA", "kid": "one", "n": "sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri23bOdgWp4Dy1Wl", "e": "AQAB"});
    for (what, jwks) in [
        ("nothing", json!({"keys": []})),
        ("no set", json!([])),
        ("for encryption", json!({"keys": [but("use", json!("enc"))]})),
        ("for signing only", json!({"keys": [but("key_ops", json!(["sign"]))]})),
        ("of another algorithm", json!({"keys": [but("alg", json!("ES384"))]})),
        ("a secret", json!({"keys": [{"kty": "oct", "kid": "one", "k": "c2VjcmV0"}]})),
        ("a small RSA key", json!({"keys": [small]})),
        ("garbage", json!({"keys": [1, null, {"kty": "EC"}]})),
    ] {
        rig.enforce(|snapshot| snapshot["access"]["issuers"][0]["jwks"] = jwks).await;
        assert_eq!(list(&rig, &rig.issuer.token(BOTH)).await.status, 401, "{what}");
    }
    let good = json!({"keys": [1, but("use", json!("sig"))]});
    rig.enforce(|snapshot| snapshot["access"]["issuers"][0]["jwks"] = good).await;
    assert_eq!(list(&rig, &rig.issuer.token(BOTH)).await.status, 200);
}

#[tokio::test]
async fn a_token_is_taken_from_one_place_only() {
    let rig = Rig::start().await;
    let token = rig.issuer.token(BOTH);
    let body = crate::rig::request("tools/list", crate::rig::stated(json!({}))).to_string();
    let more = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let bearer = format!("bearer {token}");
    let with = |value: &str| {
        [more.as_slice(), &[("authorization", value)]]
            .concat()
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect::<Vec<_>>()
    };
    for (value, status) in
        [(bearer.as_str(), 200), ("Basic YTpi", 401), (token.as_str(), 401), ("Bearer", 401), ("Bearer ", 401)]
    {
        let headers = with(value);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(rig.post_text(None, &headers, &body).await.status, status, "{value}");
    }
    let twice = [more.as_slice(), &[("authorization", bearer.as_str())]].concat();
    assert_eq!(rig.post_text(Some(&token), &twice, &body).await.status, 401);
    let query = format!("/mcp?access_token={token}");
    let headers = [("accept", "*/*"), ("content-type", "application/json"), more[0], more[1]];
    assert_eq!(rig.send(http::Method::POST, &query, &headers, &body).await.status, 401);
}

#[tokio::test]
async fn the_public_url_is_an_audience_and_the_resource() {
    let rig =
        Rig::with(|snapshot| snapshot["access"]["publicUrl"] = json!("https://mcp.corp.example/support/mcp")).await;
    let token = rig.issuer.sign(&with("aud", json!("https://mcp.corp.example/support/mcp")));
    assert_eq!(rig.listed(&token).await.len(), 2);
    let told = rig.post_text(None, &[], "{}").await;
    let url = "https://mcp.corp.example/.well-known/oauth-protected-resource/support/mcp";
    assert!(told.header("www-authenticate").unwrap().contains(url), "{told:?}");
    for path in ["", "/mcp", "/support/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let told = rig.send(http::Method::GET, &path, &[], "").await;
        let expected = json!({
            "resource": "https://mcp.corp.example/support/mcp",
            "authorization_servers": ["https://login.example"], "bearer_methods_supported": ["header"],
        });
        assert_eq!((told.status, told.json()), (200, expected), "{path}");
    }
    let told = rig.send(http::Method::GET, "/.well-known/oauth-protected-resource/other", &[], "").await;
    assert_eq!(told.status, 404);
}

#[tokio::test]
async fn a_service_account_has_its_namespace_as_tenant_and_no_scopes() {
    let rig = Rig::with(|snapshot| {
        snapshot["access"]["issuers"][0]["serviceAccounts"] = json!({"tenants": {"agents": "tenant-7"}});
        snapshot["grants"] = json!([{
            "name": "triage-bot", "delegate": {"serviceAccount": {"namespace": "agents", "name": "triage-bot"}},
            "scopes": ["policy:read"], "effects": ["Read"], "tools": [["*"]], "tenants": ["tenant-7"],
            "expiresAt": "2099-01-01T00:00:00Z",
        }]);
    })
    .await;
    let account = |subject: &str| rig.issuer.sign(&with("sub", json!(subject)));
    assert_eq!(rig.listed(&account("system:serviceaccount:agents:triage-bot")).await, ["policy_lookup"]);
    let other = list(&rig, &account("system:serviceaccount:agents:other-bot")).await;
    assert_eq!((other.status, &other.json()["error"]["data"]["reason"]), (403, &json!("NoDelegation")));
    let elsewhere = list(&rig, &account("system:serviceaccount:elsewhere:triage-bot")).await;
    assert_eq!((elsewhere.status, &elsewhere.json()["error"]["data"]["reason"]), (403, &json!("TenantNotAdmitted")));
    for bad in
        ["alice", "system:serviceaccount:agents", "system:serviceaccount:agents:", "system:serviceaccount:Bad_Name:x"]
    {
        assert_eq!(list(&rig, &account(bad)).await.status, 401, "{bad}");
    }
}

/// A token that was remembered ends when it says so.
#[tokio::test]
async fn a_remembered_token_expires() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.sign(&with("exp", json!(soon(-28))));
    assert_eq!(list(&rig, &token).await.status, 200);
    tokio::time::sleep(std::time::Duration::from_millis(3100)).await;
    let told = list(&rig, &token).await;
    assert_eq!(told.status, 401);
    assert_eq!(rig.record(&told).await.reasons[0].code, Reason::TokenExpired);
}

/// RFC 8693 section 4.1: whoever acted before is history. It acts on nothing, and the record has it.
#[tokio::test]
async fn only_the_outermost_actor_acts_and_the_record_has_the_chain() {
    let mut rig = Rig::with(|snapshot| {
        snapshot["grants"] = json!([{
            "name": "one", "delegator": {"subject": {"issuer": ISSUER, "subject": "alice"}},
            "delegate": {"subject": {"issuer": ISSUER, "subject": "bot-1"}},
            "scopes": ["policy:read"], "effects": ["Read"], "tools": [["*"]], "tenants": ["tenant-7"],
            "expiresAt": "2099-01-01T00:00:00Z",
        }]);
    })
    .await;
    for (chain, expected) in [
        (["bot-1", "bot-2", "bot-3"], (200, true)),
        (["bot-2", "bot-1", "bot-3"], (403, false)),
        (["bot-2", "bot-3", "bot-1"], (403, false)),
    ] {
        let act = chain.iter().rev().fold(json!(null), |inner, name| match inner.is_null() {
            true => json!({"sub": name}),
            false => json!({"sub": name, "act": inner}),
        });
        let told = rig.call(&rig.issuer.sign(&with("act", act)), "policy_lookup").await;
        let record = rig.record(&told).await;
        assert_eq!((told.status, record.allow), expected, "{chain:?}: {told:?}");
        let principal = record.principal.as_ref().expect("a principal");
        assert_eq!(principal.actor.as_ref().unwrap().subject.as_str(), chain[0]);
        let recorded: Vec<&str> = principal.actor_chain.iter().map(|actor| actor.subject.as_str()).collect();
        assert_eq!(recorded, chain, "outermost first");
    }
}
