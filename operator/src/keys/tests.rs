use axum::{Router, response::Redirect, routing::get};
use serde_json::json;

use super::*;

/// A web server on loopback with these answers; gives its address.
async fn web(answers: &[(&'static str, String)]) -> String {
    let mut router = Router::new().route("/moved", get(|| async { Redirect::temporary("/keys") }));
    for (path, body) in answers.iter().cloned() {
        router = router.route(path, get(move || async move { body }));
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn fetcher() -> Fetcher {
    // No API server is asked in these tests.
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    Fetcher::new(Client::try_from(config).unwrap(), "cluster.local".to_owned())
}

const KEYS: &str = r#"{"keys":[]}"#;

#[tokio::test]
async fn a_key_set_is_fetched_and_nothing_else_is_taken_for_one() {
    let long = format!(r#"{{"keys":[],"x":"{}"}}"#, "x".repeat(MAX_BYTES));
    let web = web(&[("/keys", KEYS.to_owned()), ("/html", "<html>".to_owned()), ("/long", long)]).await;
    let fetch = async |path: &str| fetcher().fetch(&Source::Url(format!("{web}{path}"))).await;
    assert!(fetch("/keys").await.is_ok());
    let refused = async |path: &str| fetch(path).await.unwrap_err().to_string();
    assert!(refused("/moved").await.contains("answers 307 (redirects are not followed)"));
    assert!(refused("/absent").await.contains("answers 404"));
    assert!(refused("/html").await.contains("does not serve a JWK set"));
    assert!(refused("/long").await.contains("length limit exceeded"));
}

#[tokio::test]
async fn discovery_believes_the_issuer_itself_only() {
    let metadata = |issuer: &str, keys: &str| json!({"issuer": issuer, "jwks_uri": keys}).to_string();
    let keys = web(&[("/keys", KEYS.to_owned())]).await;
    let keys = format!("{keys}/keys");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for (issuer, jwks_uri, works) in [
        (own.as_str(), keys.as_str(), true),
        ("http://127.0.0.1", keys.as_str(), false),
        (own.as_str(), "http://login.example.com/keys", false),
        (own.as_str(), "file:///etc/passwd", false),
    ] {
        let text = metadata(issuer, jwks_uri);
        let router = Router::new().route("/.well-known/openid-configuration", get(move || async move { text }));
        let listener = tokio::net::TcpListener::bind(own.trim_start_matches("http://")).await.unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await });
        let found = fetcher().fetch(&Source::Discovery(own.clone())).await;
        assert_eq!(found.is_ok(), works, "{issuer} {jwks_uri}: {found:?}");
        serving.abort();
        let _aborted = serving.await;
    }
}

#[test]
fn plain_http_stays_in_the_cluster() {
    for good in [
        "https://login.example.com/keys",
        "http://keys.auth.svc/jwks.json",
        "http://keys.auth.svc.cluster.local:8080/x",
        "http://127.0.0.1:9000/x",
        "http://[::1]:9000/x",
        "http://localhost/x",
    ] {
        assert!(allowed(good, "cluster.local").is_ok(), "{good}");
    }
    for bad in [
        "http://login.example.com/keys",
        "http://169.254.169.254/latest/meta-data",
        "http://svc/x",
        "http://evil.example/.svc",
        "http://keys.auth.svc.evil.example/x",
        "http://keys.auth.svc@evil.example/x",
        "https://user:secret@login.example.com/keys",
        "file:///etc/passwd",
        "ftp://login.example.com/keys",
        "login.example.com",
        "",
    ] {
        assert!(allowed(bad, "cluster.local").is_err(), "{bad}");
    }
}

#[test]
fn metadata_is_looked_for_in_both_places() {
    assert_eq!(
        metadata_urls("https://login.example.com/tenant/v2"),
        [
            "https://login.example.com/tenant/v2/.well-known/openid-configuration",
            "https://login.example.com/.well-known/oauth-authorization-server/tenant/v2",
        ]
    );
    assert!(metadata_urls("not a url").is_empty());
}

#[test]
fn a_key_set_has_keys_and_is_strict() {
    assert!(key_set("u", br#"{"keys":[]}"#).is_ok());
    for bad in [&br#"{"keys":{}}"#[..], b"[]", b"{}", b"<html>", br#"{"keys":[],"keys":[]}"#] {
        assert!(key_set("u", bad).is_err());
    }
}

#[test]
fn an_inline_set_says_what_is_missing() {
    let data = Ok([("jwks.json".to_owned(), r#"{"keys":[]}"#.to_owned())].into());
    assert!(inline("Secret corp", "jwks.json", data).is_ok());
    let error = inline("Secret corp", "jwks.json", Ok(Data::new())).unwrap_err();
    assert_eq!(error, Unresolved::NotFound("Secret corp has no key jwks.json".to_owned()));
    let gone = Unresolved::NotFound("Secret corp does not exist".to_owned());
    assert_eq!(inline("Secret corp", "jwks.json", Err(gone.clone())).unwrap_err(), gone);
    let malformed = Ok([("jwks.json".to_owned(), "[]".to_owned())].into());
    assert!(matches!(inline("Secret corp", "jwks.json", malformed), Err(Unresolved::Malformed(_))));
}
