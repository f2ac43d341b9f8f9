//! Where clients learn who mints tokens for this server: RFC 9728.

use cotter_core::{name::Scope, snapshot::Access};
use http::{StatusCode, Uri};
use serde::Serialize;

use crate::{
    hygiene::{ENDPOINT, WELL_KNOWN},
    respond::{self, Reply},
};

#[derive(Serialize)]
struct Document<'a> {
    resource: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<&'a str>,
    bearer_methods_supported: [&'static str; 1],
}

/// The resource as clients name it: the public URL, else the endpoint on the Host that was checked.
fn resource(access: &Access, host: &str) -> String {
    access.public_url.clone().unwrap_or_else(|| format!("http://{host}{ENDPOINT}"))
}

/// The URL of the document: the well-known path goes between the host and the path of the resource (RFC 9728 section 3.1).
#[must_use]
pub fn url(access: &Access, host: &str) -> String {
    let resource = resource(access, host);
    let Ok(uri) = resource.parse::<Uri>() else { return format!("http://{host}{WELL_KNOWN}{ENDPOINT}") };
    let (scheme, authority) = (uri.scheme_str().unwrap_or("http"), uri.authority().map_or(host, |a| a.as_str()));
    let path = if uri.path() == "/" { "" } else { uri.path() };
    format!("{scheme}://{authority}{WELL_KNOWN}{path}")
}

/// The document.
#[must_use]
pub fn document(access: &Access, host: &str) -> Reply {
    let issuers = access.issuers.iter().map(|issuer| issuer.issuer.as_str());
    let document = Document {
        resource: &resource(access, host),
        authorization_servers: issuers
            .filter(|url| url.starts_with("https://") || url.starts_with("http://"))
            .collect(),
        scopes_supported: access.advertised_scopes.iter().map(Scope::as_str).collect(),
        bearer_methods_supported: ["header"],
    };
    // Serialising strings and lists of strings cannot fail.
    respond::json(StatusCode::OK, serde_json::to_vec(&document).unwrap_or_default().into())
}
