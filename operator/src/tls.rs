//! The stream's certificates: a CA of our own, made at the first start and kept in a Secret, and a server certificate
//! made from it at each start and renewed long before it ends.
//!
//! Only the CA is kept. A server certificate that is made anew cannot be out of date with the Service's names, and its
//! key never leaves the process.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// The Secret's name, in the operator's namespace.
pub const SECRET: &str = "cotter-operator-tls";

/// How long the CA is good. Sidecars get it with their bootstrap, so another one reaches them by itself.
const CA_DAYS: i64 = 3650;
/// How long a server certificate is good, and how often it is renewed: an operator that runs for a month has a new one.
const SERVER_DAYS: i64 = 90;
/// How often the server certificate is made anew.
pub const RENEW: Duration = Duration::from_secs(30 * 24 * 3600);
/// Clocks of nodes differ.
const BACKDATE_DAYS: i64 = 1;

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The API server refused.
    #[error("failed to {verb} Secret {SECRET}")]
    Secret {
        /// What was tried.
        verb: &'static str,
        /// Why not.
        #[source]
        source: Box<kube::Error>,
    },
    /// Somebody changed the Secret.
    #[error("failed to use Secret {SECRET}: {0}; delete it and restart the operator, which makes a new one")]
    Contents(String),
    /// A certificate could not be made.
    #[error("failed to make a certificate")]
    Make(#[from] rcgen::Error),
    /// rustls refused what was made.
    #[error("failed to set up TLS")]
    Rustls(#[from] rustls::Error),
}

/// The CA of the stream.
pub struct Authority {
    certificate: String,
    key: String,
}

impl Authority {
    /// Makes a new one.
    ///
    /// # Errors
    /// [`TlsError::Make`].
    pub fn generate() -> Result<Self, TlsError> {
        let key = KeyPair::generate()?;
        let mut params = authority_params();
        valid_for(&mut params, CA_DAYS);
        let certificate = params.self_signed(&key)?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// What sidecars trust, PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    /// A TLS server with a new certificate for `names`.
    ///
    /// # Errors
    /// [`TlsError::Make`], [`TlsError::Rustls`].
    pub fn server(&self, names: &[String]) -> Result<Arc<ServerConfig>, TlsError> {
        // The issuer of a certificate is a name and a key: both are known without reading the CA's certificate again.
        let issuer = Issuer::new(authority_params(), KeyPair::from_pem(&self.key)?);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = common_name("cotter-operator");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        valid_for(&mut params, SERVER_DAYS);
        let certificate = params.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn from_secret(secret: &Secret) -> Result<Self, TlsError> {
        let text = |name: &str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(name)).map(|bytes| bytes.0.clone());
            let bytes = bytes.ok_or_else(|| TlsError::Contents(format!("it has no {name}")))?;
            String::from_utf8(bytes).map_err(|_| TlsError::Contents(format!("its {name} is not text")))
        };
        let (certificate, key) = (text("ca.crt")?, text("ca.key")?);
        KeyPair::from_pem(&key)
            .map_err(|error| TlsError::Contents(format!("its ca.key is no private key: {error}")))?;
        Ok(Self { certificate, key })
    }

    fn to_secret(&self, namespace: &str) -> Secret {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = [("ca.crt", bytes(&self.certificate)), ("ca.key", bytes(&self.key))];
        Secret {
            metadata: ObjectMeta {
                name: Some(SECRET.to_owned()),
                namespace: Some(namespace.to_owned()),
                labels: Some(BTreeMap::from([("app.kubernetes.io/part-of".to_owned(), "cotter".to_owned())])),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            data: Some(data.map(|(name, value)| (name.to_owned(), value)).into()),
            ..Secret::default()
        }
    }
}

/// The CA that is kept in the Secret; makes both where there is none. Two operators that start at once end up with the
/// same one: the second create is refused, and it reads what the first wrote.
///
/// # Errors
/// See [`TlsError`].
pub async fn authority(secrets: &Api<Secret>, namespace: &str) -> Result<Authority, TlsError> {
    let failed = |verb| move |source| TlsError::Secret { verb, source: Box::new(source) };
    if let Some(secret) = secrets.get_opt(SECRET).await.map_err(failed("read"))? {
        return Authority::from_secret(&secret);
    }
    let authority = Authority::generate()?;
    match secrets.create(&PostParams::default(), &authority.to_secret(namespace)).await {
        Ok(_) => Ok(authority),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            Authority::from_secret(&secrets.get(SECRET).await.map_err(failed("read"))?)
        }
        Err(error) => Err(failed("create")(error)),
    }
}

/// The names under which sidecars reach the Service.
#[must_use]
pub fn service_names(service: &str, namespace: &str, domain: &str) -> Vec<String> {
    let short = format!("{service}.{namespace}");
    vec![service.to_owned(), short.clone(), format!("{short}.svc"), format!("{short}.svc.{domain}")]
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name("cotter-operator-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

fn valid_for(params: &mut CertificateParams, days: i64) {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let date = |days: i64| {
        let date = today.saturating_add(jiff::Span::new().days(days));
        let part = |number: i8| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()))
    };
    params.not_before = date(-BACKDATE_DAYS);
    params.not_after = date(days);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ca_survives_its_secret() {
        let made = Authority::generate().unwrap();
        let kept = Authority::from_secret(&made.to_secret("cotter-system")).unwrap();
        assert_eq!(kept.certificate_pem(), made.certificate_pem());
        assert!(kept.server(&service_names("cotter-operator", "cotter-system", "cluster.local")).is_ok());
    }

    #[test]
    fn a_secret_that_somebody_changed_is_named() {
        let mut secret = Authority::generate().unwrap().to_secret("cotter-system");
        secret.data.as_mut().unwrap().insert("ca.key".to_owned(), ByteString(b"nonsense".to_vec()));
        let error = Authority::from_secret(&secret).err().unwrap().to_string();
        assert!(error.contains("cotter-operator-tls") && error.contains("ca.key"), "{error}");
        secret.data = None;
        assert!(Authority::from_secret(&secret).err().unwrap().to_string().contains("no ca.crt"));
    }
}
