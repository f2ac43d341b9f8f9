//! The development issuer: an ES256 key in the state folder, accepted by sidecars that `cotter up` started and by nobody else.

use std::collections::BTreeSet;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use cotter_compiler::world::ClusterIssuer;
use cotter_core::{
    name::{Audience, Issuer, Scope, Subject, Tenant},
    snapshot::{Digest, TrustedIssuer},
};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::{
    failure::{Doing as _, Failure},
    state::State,
};

/// How long a development token is valid.
const VALID: SignedDuration = SignedDuration::from_hours(8);

/// The development issuer of one folder.
pub(crate) struct DevIssuer {
    issuer: Issuer,
    kid: String,
    key: EncodingKey,
    jwks: Value,
}

/// What a token is to say.
#[derive(Debug, Clone)]
pub(crate) struct Claims {
    /// Whom it is about.
    pub(crate) subject: Subject,
    /// The tenant, if any.
    pub(crate) tenant: Option<Tenant>,
    /// The scopes; `None` leaves the claim out, as a service account's token does.
    pub(crate) scopes: Option<BTreeSet<Scope>>,
    /// Whom it is for.
    pub(crate) audience: Audience,
    /// Who acts (RFC 8693), by subject.
    pub(crate) actor: Option<Subject>,
    /// Whether it is a service account's: its subject is one, minted as a cluster would.
    pub(crate) is_account: bool,
}

/// The issuer that mints service-account tokens on a laptop, with the same key.
pub(crate) fn accounts_issuer(issuer: &Issuer) -> Result<Issuer, Failure> {
    format!("{issuer}:serviceaccounts").parse().doing("name the development issuer")
}

/// What stands for the cluster's issuer on a laptop.
pub(crate) fn service_accounts(issuer: &TrustedIssuer) -> Option<ClusterIssuer> {
    Some(ClusterIssuer { issuer: accounts_issuer(&issuer.issuer).ok()?, jwks: issuer.jwks.clone() })
}

impl DevIssuer {
    /// Opens the key of a folder's state, or makes one.
    pub(crate) fn open(state: &State) -> Result<Self, Failure> {
        let pkcs8 = state.private("issuer.pkcs8", || {
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
            Ok(document.doing("make the development issuer's key")?.as_ref().to_vec())
        })?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8);
        let pair = pair.doing(format!("read the development issuer's key in {}", state.root().display()))?;
        let point = pair.public_key().as_ref();
        let kid = Digest::of(point).to_string().get(7..23).unwrap_or_default().to_owned();
        let coordinate = |from: usize, to: usize| point.get(from..to).map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        let (x, y) = (coordinate(1, 33), coordinate(33, 65));
        let jwks =
            json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": kid, "x": x, "y": y}]});
        let issuer = format!("urn:cotter:dev:{kid}").parse().doing("name the development issuer")?;
        Ok(Self { issuer, kid, key: EncodingKey::from_ec_der(&pkcs8), jwks })
    }

    /// What `iss` says.
    pub(crate) const fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The public key, as a JWK set (RFC 7517).
    pub(crate) const fn jwks(&self) -> &Value {
        &self.jwks
    }

    /// Signs a token.
    pub(crate) fn mint(&self, claims: &Claims, now: Timestamp) -> Result<String, Failure> {
        let header = Header { kid: Some(self.kid.clone()), ..Header::new(Algorithm::ES256) };
        let issuer = if claims.is_account { accounts_issuer(&self.issuer)? } else { self.issuer.clone() };
        let mut body = json!({
            "iss": issuer, "sub": claims.subject, "aud": claims.audience,
            "iat": now.as_second(), "exp": (now + VALID).as_second(),
        });
        if let Some(body) = body.as_object_mut() {
            if let Some(tenant) = &claims.tenant {
                body.insert("tenant".to_owned(), json!(tenant));
            }
            if let Some(scopes) = &claims.scopes {
                let scopes: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
                body.insert("scope".to_owned(), json!(scopes.join(" ")));
            }
            if let Some(actor) = &claims.actor {
                body.insert("act".to_owned(), json!({"sub": actor}));
            }
        }
        jsonwebtoken::encode(&header, &body, &self.key).doing("sign the token")
    }
}
