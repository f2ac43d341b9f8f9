//! Somebody who mints tokens, also bad ones.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};

pub(crate) const ISSUER: &str = "https://login.example";
pub(crate) const AUDIENCE: &str = "support://mcp";

/// One key.
pub(crate) struct Issuer {
    key: EncodingKey,
    pub(crate) kid: &'static str,
}

impl Issuer {
    pub(crate) fn new(kid: &'static str) -> Self {
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        Self { key: EncodingKey::from_ec_der(pair.as_ref()), kid }
    }

    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some(self.kid.to_owned());
        serde_json::to_value(jwk).unwrap()
    }

    pub(crate) fn jwks(&self) -> Value {
        json!({"keys": [self.jwk()]})
    }

    /// A token with exactly these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_with(&json!({"alg": "ES256", "typ": "JWT", "kid": self.kid}), &claims.to_string())
    }

    /// A token with exactly this header and this text of claims, correctly signed whatever they say.
    pub(crate) fn sign_with(&self, header: &Value, claims: &str) -> String {
        let message = format!("{}.{}", B64.encode(header.to_string()), B64.encode(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, Algorithm::ES256).unwrap();
        format!("{message}.{signature}")
    }

    /// A good token of tenant-7 with these scopes.
    pub(crate) fn token(&self, scopes: &str) -> String {
        self.sign(&claims(scopes))
    }
}

/// The claims of a good token.
pub(crate) fn claims(scopes: &str) -> Value {
    json!({
        "iss": ISSUER, "sub": "alice", "aud": AUDIENCE, "exp": soon(600), "tenant": "tenant-7", "scope": scopes,
    })
}

/// So many seconds from now.
pub(crate) fn soon(seconds: i64) -> i64 {
    jiff::Timestamp::now().as_second() + seconds
}

/// What an attacker makes who knows only public things: a symmetric signature with the text of the public key.
pub(crate) fn sign_symmetric(secret: &[u8], claims: &Value) -> String {
    let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::HS256) };
    jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(secret).unwrap()).unwrap()
}

/// A token that is not signed at all.
pub(crate) fn unsigned(algorithm: &str, claims: &Value) -> String {
    let header = json!({"alg": algorithm, "typ": "JWT"});
    format!("{}.{}.", B64.encode(header.to_string()), B64.encode(claims.to_string()))
}
