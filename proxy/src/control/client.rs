//! HTTPS to the operator, trusting its own certificates and nobody else's.

use std::{sync::Arc, time::Duration};

use cotter_core::{budget::RUN_HEADER, name::ServerRef};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use super::{ControlError, Operator};

/// How long a connection may take to be made: far more than a cluster's network needs. Without it a packet that was lost
/// while the operator moved to another pod is sent again after 1, 3, 7 and 15 s, with the operator long back.
const CONNECT: Duration = Duration::from_secs(2);

/// A client of one operator for one server.
#[derive(Debug)]
pub(super) struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    token_file: std::path::PathBuf,
    run: HeaderValue,
}

impl Client {
    pub(super) fn new(operator: Operator, run: &str) -> Result<Self, ControlError> {
        let Operator { url, ca, token_file, server } = operator;
        let base = base(&url, &server)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        let tls = HttpsConnectorBuilder::new().with_tls_config(trusting(&ca)?).https_only().enable_http1();
        let tls = tls.wrap_connector(tcp);
        let run = run.parse().map_err(|_| ControlError::Config("run", "it is not the text of a header".to_owned()))?;
        Ok(Self { http: legacy::Client::builder(TokioExecutor::new()).build(tls), base, token_file, run })
    }

    /// Sends one request with the token of this moment. The answer's status is one of success.
    pub(super) async fn send(
        &self,
        method: Method,
        what: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, ControlError> {
        let path = &self.token_file;
        let token = tokio::fs::read_to_string(path).await;
        let token = token.map_err(|source| ControlError::Token { path: path.clone(), source })?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
            .map_err(|_| ControlError::Config("token", "it is not the text of a token".to_owned()))?;
        bearer.set_sensitive(true);
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/{what}", self.base))
            .header(header::AUTHORIZATION, bearer)
            .header(RUN_HEADER, &self.run)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| ControlError::Config("url", error.to_string()))?;
        let answer = self.http.request(request).await.map_err(|error| ControlError::Reach(chain(&error)))?;
        match answer.status() {
            StatusCode::OK | StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(answer),
            status => Err(ControlError::Refused(status.as_u16())),
        }
    }
}

fn base(url: &str, server: &ServerRef) -> Result<String, ControlError> {
    let parsed: Uri =
        url.parse().map_err(|error: http::uri::InvalidUri| ControlError::Config("url", error.to_string()))?;
    if parsed.scheme_str() != Some("https") {
        return Err(ControlError::Config("url", format!("{url:?} is not an https URL")));
    }
    let (namespace, name) = (&server.namespace, &server.name);
    Ok(format!("{}/v1/namespaces/{namespace}/servers/{name}", url.trim_end_matches('/')))
}

fn trusting(ca: &str) -> Result<ClientConfig, ControlError> {
    let wrong = |why: String| ControlError::Config("ca", why);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(|error| wrong(error.to_string()))?.with_root_certificates(roots).with_no_client_auth())
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
