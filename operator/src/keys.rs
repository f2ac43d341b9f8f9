//! Key sets of token issuers that are behind URLs: fetched here, so that no sidecar ever asks anybody.
//!
//! # Guarantees
//! HTTPS only, but for hosts inside the cluster and loopback; no redirect is followed; at most [`MAX_BYTES`] and
//! [`TIME`] for an answer. The last good set stays while a refresh fails. What is fetched reaches nobody but as keys in
//! snapshots, and an error names the URL that the manifest gives, not what was answered.

use std::time::Duration;

use cotter_compiler::world::{Data, Resolved, Unresolved};
use cotter_core::strict;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, StatusCode, Uri, body::Bytes};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::Client;
use serde_json::Value;

use crate::{
    following::{Follow, Slot},
    trouble::words,
};

/// A key set of 100 RSA keys is 40 KiB.
const MAX_BYTES: usize = 256 * 1024;
/// For connect, TLS, head and body together.
const TIME: Duration = Duration::from_secs(10);
/// How often a good set is fetched again: a new signing key is usable within this.
const REFRESH: Duration = Duration::from_secs(300);
/// First and longest wait after a failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Key sets are flat.
const DEPTH: u8 = 16;

/// Where a key set is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// At a URL.
    Url(String),
    /// Where the issuer's metadata says (OpenID Connect Discovery, RFC 8414).
    Discovery(String),
    /// At this cluster's API server: the keys of service-account tokens, and the name of their issuer.
    Cluster,
}

/// A key set. `issuer` is set for [`Source::Cluster`].
#[derive(Debug, Clone, PartialEq)]
pub struct Keys {
    /// The JWK set.
    pub jwks: Value,
    /// What `iss` is in its tokens.
    pub issuer: Option<String>,
}

/// Why there is no key set.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A URL that is not fetched.
    #[error("{url} is not fetched: {why}")]
    Url {
        /// The URL.
        url: String,
        /// Why.
        why: &'static str,
    },
    /// No connection, or a bad answer.
    #[error("failed to fetch {url}: {why}")]
    Fetch {
        /// The URL.
        url: String,
        /// Why.
        why: String,
    },
    /// Not what it should be.
    #[error("{url} does not serve {wanted}: {why}")]
    Content {
        /// The URL.
        url: String,
        /// What was wanted.
        wanted: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl KeysError {
    fn unresolved(&self) -> Unresolved {
        match self {
            Self::Fetch { .. } => Unresolved::Unreachable(self.to_string()),
            Self::Url { .. } | Self::Content { .. } => Unresolved::Malformed(self.to_string()),
        }
    }
}

/// Fetches key sets.
#[derive(Clone)]
pub struct Fetcher {
    http: HttpClient<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    cluster: Client,
    domain: String,
}

impl Fetcher {
    /// Fetches with the machine's root certificates (`SSL_CERT_FILE` where set). `domain` is the cluster's.
    #[must_use]
    pub fn new(cluster: Client, domain: String) -> Self {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(TIME));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls())
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let http = HttpClient::builder(TokioExecutor::new()).pool_idle_timeout(TIME).build(connector);
        Self { http, cluster, domain }
    }

    async fn fetch(&self, source: &Source) -> Result<Keys, KeysError> {
        match source {
            Source::Url(url) => Ok(Keys { jwks: self.key_set(url).await?, issuer: None }),
            Source::Discovery(issuer) => Ok(Keys { jwks: self.discovered(issuer).await?, issuer: None }),
            Source::Cluster => self.cluster_keys().await,
        }
    }

    async fn key_set(&self, url: &str) -> Result<Value, KeysError> {
        key_set(url, &self.get(url).await?)
    }

    async fn discovered(&self, issuer: &str) -> Result<Value, KeysError> {
        let mut first = None;
        for url in metadata_urls(issuer) {
            match self.metadata(&url, issuer).await {
                Ok(jwks_uri) => return self.key_set(&jwks_uri).await,
                Err(error) => first = first.or(Some(error)),
            }
        }
        let why = "the issuer is no URL; give jwks in the manifest";
        Err(first.unwrap_or_else(|| KeysError::Url { url: issuer.to_owned(), why }))
    }

    async fn metadata(&self, url: &str, issuer: &str) -> Result<String, KeysError> {
        let metadata = parse(url, "issuer metadata", &self.get(url).await?)?;
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        let wrong =
            |why: &str| KeysError::Content { url: url.to_owned(), wanted: "issuer metadata", why: why.to_owned() };
        // RFC 8414 section 3.3: another issuer's metadata must not be used.
        if text("issuer") != Some(issuer) {
            return Err(wrong("its `issuer` is another one (a trailing slash counts)"));
        }
        text("jwks_uri").map(str::to_owned).ok_or_else(|| wrong("it has no `jwks_uri`"))
    }

    async fn cluster_keys(&self) -> Result<Keys, KeysError> {
        let path = "/.well-known/openid-configuration";
        let metadata = parse(path, "issuer metadata", self.ask_cluster(path).await?.as_bytes())?;
        let issuer = metadata.get("issuer").and_then(Value::as_str).map(str::to_owned);
        let path = "/openid/v1/jwks";
        Ok(Keys { jwks: key_set(path, self.ask_cluster(path).await?.as_bytes())?, issuer })
    }

    async fn ask_cluster(&self, path: &str) -> Result<String, KeysError> {
        let failed = |why: String| KeysError::Fetch { url: path.to_owned(), why };
        let request = Request::get(path).body(Vec::new()).map_err(|error| failed(error.to_string()))?;
        let answer = tokio::time::timeout(TIME, self.cluster.request_text(request)).await;
        answer.map_err(|_| failed("no answer in time".to_owned()))?.map_err(|error| failed(words(&error)))
    }

    async fn get(&self, url: &str) -> Result<Bytes, KeysError> {
        let uri = allowed(url, &self.domain)?;
        let failed = |why: String| KeysError::Fetch { url: url.to_owned(), why };
        let request = Request::get(uri).header("accept", "application/json, application/jwk-set+json");
        let request = request.body(Empty::new()).map_err(|error| failed(error.to_string()))?;
        let answer = async {
            let answer = self.http.request(request).await.map_err(|error| failed(chain(&error)))?;
            if answer.status() != StatusCode::OK {
                return Err(failed(format!("it answers {} (redirects are not followed)", answer.status().as_u16())));
            }
            let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await;
            body.map(http_body_util::Collected::to_bytes).map_err(|error| failed(error.to_string()))
        };
        tokio::time::timeout(TIME, answer).await.unwrap_or_else(|_| Err(failed("no answer in time".to_owned())))
    }
}

impl Follow for Fetcher {
    type Source = Source;
    type Value = Keys;

    async fn follow(self, source: Source, slot: Slot<Self>) {
        let mut failures = 0_u32;
        loop {
            let wait = match self.fetch(&source).await {
                Ok(keys) => {
                    failures = 0;
                    slot.set(Ok(keys));
                    REFRESH
                }
                Err(error) => {
                    tracing::warn!(?source, %error, "keys not fetched");
                    slot.fail(error.unresolved());
                    failures += 1;
                    RETRY.0.saturating_mul(1 << failures.min(6)).min(RETRY.1)
                }
            };
            tokio::time::sleep(wait).await;
        }
    }
}

/// The keys under one key of a Secret or ConfigMap.
///
/// # Errors
/// What is wrong, in words for a condition.
pub fn inline(place: &str, key: &str, data: Resolved<Data>) -> Resolved<Value> {
    let data = data?;
    let text = data.get(key).ok_or_else(|| Unresolved::NotFound(format!("{place} has no key {key}")))?;
    key_set(&format!("{place}, key {key},"), text.as_bytes()).map_err(|error| error.unresolved())
}

fn tls() -> rustls::ClientConfig {
    let builder = || {
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        // The default versions are the provider's own, so that they always fit it.
        builder.unwrap_or_else(|_| rustls::ClientConfig::builder())
    };
    match builder().with_native_roots() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "no root certificates: no keys behind HTTPS URLs (set SSL_CERT_FILE)");
            builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    }
}

/// A URL that may be fetched. Manifests are written by people who may not be allowed to reach what the operator
/// reaches: so no plain HTTP but within the cluster, and no credentials in the URL.
fn allowed(url: &str, domain: &str) -> Result<Uri, KeysError> {
    let refused = |why| KeysError::Url { url: url.to_owned(), why };
    let uri: Uri = url.parse().map_err(|_| refused("it is no URL"))?;
    let host = uri.host().ok_or_else(|| refused("it has no host"))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(refused("it has a user in it"));
    }
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_near(host, domain) => Ok(uri),
        Some("http") => Err(refused("plain http is for hosts in the cluster (*.svc); use https")),
        _ => Err(refused("it is neither https nor http")),
    }
}

fn is_near(host: &str, domain: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let loopback = host.parse::<std::net::IpAddr>().map_or(host == "localhost", |address| address.is_loopback());
    loopback || host.ends_with(".svc") || host.ends_with(&format!(".svc.{domain}"))
}

/// OpenID Connect Discovery appends, RFC 8414 section 3.1 inserts.
fn metadata_urls(issuer: &str) -> Vec<String> {
    let Some((scheme, rest)) = issuer.split_once("://") else { return Vec::new() };
    let rest = rest.trim_end_matches('/');
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    vec![
        format!("{scheme}://{rest}/.well-known/openid-configuration"),
        format!("{scheme}://{host}/.well-known/oauth-authorization-server{path}"),
    ]
}

fn parse(url: &str, wanted: &'static str, bytes: &[u8]) -> Result<Value, KeysError> {
    strict::parse(bytes, strict::Limits::depth(DEPTH)).map_err(|error| KeysError::Content {
        url: url.to_owned(),
        wanted,
        why: error.to_string(),
    })
}

fn key_set(url: &str, bytes: &[u8]) -> Result<Value, KeysError> {
    let wanted = "a JWK set";
    let set = parse(url, wanted, bytes)?;
    if set.get("keys").is_some_and(Value::is_array) {
        return Ok(set);
    }
    Err(KeysError::Content { url: url.to_owned(), wanted, why: "it has no array `keys`".to_owned() })
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
