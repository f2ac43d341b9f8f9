//! The endpoint of a server and the connections to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cotter_core::snapshot::Credentials;
use http::uri::{Authority, Scheme, Uri};
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};

use super::super::error::{CallError, UpstreamError};
use super::super::{Bounds, text::printable};
use super::credential::Credential;

/// Idle connections are closed before common servers do it (Node and uvicorn after 5 s): a request that meets a closing
/// connection has an unknown outcome.
const IDLE: Duration = Duration::from_secs(4);

/// One endpoint. Its connections are kept and shared by all sessions.
#[derive(Debug)]
pub(in super::super) struct Endpoint {
    uri: Uri,
    client: Connections,
    headers: HeaderMap,
    credential: Option<Credential>,
    bounds: Bounds,
}

#[derive(Debug)]
enum Connections {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Endpoint {
    pub(in super::super) fn new(
        url: &str,
        credentials: Option<&Credentials>,
        ca_file: Option<&str>,
        bounds: Bounds,
    ) -> Result<Self, UpstreamError> {
        let wrong = |why: &str| UpstreamError::Config(printable(url, 200), why.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.ok_or_else(|| wrong("it has no host, or has credentials in front of it"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("it starts with neither http:// nor https://")),
        };
        let host = host(authority, uri.scheme()).ok_or_else(|| wrong("its host is not one that a request can name"))?;
        let client = if tls { tls_client(ca_file, bounds)? } else { Connections::Plain(builder().build(tcp(bounds))) };
        let credential = credentials.map(Credential::new).transpose()?;
        Ok(Self { headers: headers(host), uri, client, credential, bounds })
    }

    pub(in super::super) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// What every request carries before a session exists.
    pub(super) const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Sends one request and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, CallError> {
        if let Some(credential) = &self.credential {
            headers.insert(credential.header().clone(), credential.value().await?);
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        let sent = match &self.client {
            Connections::Plain(client) => client.request(request).await,
            Connections::Tls(client) => client.request(request).await,
        };
        sent.map_err(|error| {
            let why = root(&error);
            if error.is_connect() { CallError::unreachable(why) } else { CallError::lost(why) }
        })
    }
}

/// The innermost cause: what wraps it only repeats that a request failed.
fn root(error: &hyper_util::client::legacy::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    printable(&cause.to_string(), 200)
}

/// The Host header: servers check it against DNS rebinding, and the port is left out where it is the scheme's own.
fn host(authority: &Authority, scheme: Option<&Scheme>) -> Option<HeaderValue> {
    let own = if scheme == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let host = authority.host();
    match authority.port_u16() {
        Some(port) if port != own => HeaderValue::from_str(&format!("{host}:{port}")).ok(),
        _ => HeaderValue::from_str(host).ok(),
    }
}

fn headers(host: HeaderValue) -> HeaderMap {
    let agent = concat!("cotter/", env!("CARGO_PKG_VERSION"));
    HeaderMap::from_iter([
        (header::HOST, host),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        (header::USER_AGENT, HeaderValue::from_static(agent)),
    ])
}

fn builder() -> hyper_util::client::legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_idle_timeout(IDLE).pool_timer(TokioTimer::new()).set_host(false);
    builder
}

fn tcp(bounds: Bounds) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(bounds.connect));
    tcp.enforce_http(false);
    tcp
}

fn tls_client(ca_file: Option<&str>, bounds: Bounds) -> Result<Connections, UpstreamError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let file = ca_file.unwrap_or("the system's certificate store");
    let failed = |why: String| UpstreamError::Certificates { file: file.to_owned(), why };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| failed(error.to_string()))?;
    let config = match ca_file {
        Some(file) => config.with_root_certificates(roots(file).map_err(failed)?).with_no_client_auth(),
        None => {
            use hyper_rustls::ConfigBuilderExt as _;
            config.with_native_roots().map_err(|error| failed(error.to_string()))?.with_no_client_auth()
        }
    };
    let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1();
    Ok(Connections::Tls(builder().build(connector.wrap_connector(tcp(bounds)))))
}

fn roots(file: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("it holds no certificate in PEM form".to_owned()) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Result<Endpoint, UpstreamError> {
        let second = Duration::from_secs(1);
        Endpoint::new(url, None, None, Bounds { connect: second, start: second })
    }

    #[test]
    fn the_host_header_is_the_upstreams_own() {
        let host = |url| endpoint(url).unwrap().headers.get("host").unwrap().to_str().unwrap().to_owned();
        assert_eq!(host("http://127.0.0.1:8000/mcp"), "127.0.0.1:8000");
        assert_eq!(host("http://support.support.svc:80/mcp"), "support.support.svc");
        assert_eq!(host("http://[::1]:81/"), "[::1]:81");
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_its_reason() {
        let said = |url| endpoint(url).unwrap_err().to_string();
        assert!(said("ftp://a/").contains("neither http:// nor https://"));
        assert!(said("/mcp").contains("no host"));
        assert!(said("http://user:secret@a/").contains("credentials in front"));
        assert!(said("http://a b/").contains("not a URL"));
    }
}
