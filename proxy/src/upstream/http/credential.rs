//! What the sidecar presents to a remote server. The secret is a file beside the sidecar, which may be renewed at any time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use cotter_core::snapshot::Credentials;
use http::{HeaderName, HeaderValue, header};

use super::super::error::{CallError, UpstreamError};

/// How long a secret is used before its file is read again.
const FRESH: Duration = Duration::from_secs(10);
/// Larger than any token in use; a header of more would be refused by the server anyway.
const MAX_BYTES: usize = 16 * 1024;

/// Headers that are the transport's own, and no place for a secret.
const TAKEN: [HeaderName; 9] = [
    header::HOST,
    header::ACCEPT,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::USER_AGENT,
];

/// One credential.
#[derive(Debug)]
pub(super) struct Credential {
    file: String,
    header: HeaderName,
    prefix: String,
    cached: ArcSwapOption<(Instant, HeaderValue)>,
}

impl Credential {
    pub(super) fn new(config: &Credentials) -> Result<Self, UpstreamError> {
        let wrong = |why: &str| UpstreamError::Config("credentials".to_owned(), why.to_owned());
        let header: HeaderName = config.header.parse().map_err(|_| wrong("their header has no legal name"))?;
        if TAKEN.contains(&header) || header.as_str().starts_with("mcp-") {
            return Err(wrong(
                "their header is one that the transport needs: use Authorization or one of the server's own",
            ));
        }
        let (file, prefix) = (config.file.clone(), config.prefix.clone());
        Ok(Self { file, header, prefix, cached: ArcSwapOption::empty() })
    }

    pub(super) const fn header(&self) -> &HeaderName {
        &self.header
    }

    /// The header's value.
    ///
    /// # Errors
    /// The file cannot be read, or holds what no header can carry. An older secret is not used then: it may have been revoked.
    pub(super) async fn value(&self) -> Result<HeaderValue, CallError> {
        if let Some(cached) = &*self.cached.load()
            && cached.0.elapsed() < FRESH
        {
            return Ok(cached.1.clone());
        }
        let failed = |why: &str| CallError::unreachable(format!("the credential in {}: {why}", self.file));
        let secret = tokio::fs::read(&self.file).await.map_err(|error| failed(&error.to_string()))?;
        let secret = secret.trim_ascii();
        if secret.is_empty() || secret.len() > MAX_BYTES {
            return Err(failed("it is empty or larger than 16 KiB"));
        }
        let mut value = HeaderValue::from_bytes(&[self.prefix.as_bytes(), secret].concat())
            .map_err(|_| failed("it has bytes that no header can carry"))?;
        value.set_sensitive(true);
        self.cached.store(Some(Arc::new((Instant::now(), value.clone()))));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(header: &str, file: &str) -> Result<Credential, UpstreamError> {
        let (file, header, prefix) = (file.to_owned(), header.to_owned(), "Bearer ".to_owned());
        Credential::new(&Credentials { file, header, prefix })
    }

    #[tokio::test]
    async fn the_secret_comes_from_the_file_and_is_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "s3cret\n").unwrap();
        let credential = credential("Authorization", file.to_str().unwrap()).unwrap();
        let value = credential.value().await.unwrap();
        assert_eq!(value, "Bearer s3cret");
        assert!(!format!("{value:?} {credential:?}").contains("s3cret"));
    }

    #[tokio::test]
    async fn a_file_that_holds_no_secret_fails_before_anything_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        for bad in ["", "a\nb"] {
            std::fs::write(&file, bad).unwrap();
            let error = credential("X-Key", file.to_str().unwrap()).unwrap().value().await.unwrap_err();
            assert!(!error.dispatched(), "{error}");
        }
        assert!(credential("X-Key", "/nowhere/token").unwrap().value().await.is_err());
    }

    #[test]
    fn a_header_of_the_transport_is_refused() {
        for taken in ["Host", "content-length", "Mcp-Session-Id", "a b"] {
            assert!(credential(taken, "f").is_err(), "{taken}");
        }
        assert!(credential("X-Api-Key", "f").is_ok());
    }
}
