//! The public keys of one issuer, and which of them may verify which token.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use cotter_core::reason::DenyReason;
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use serde_json::Value;

use crate::respond::Refusal;

/// Keys of one issuer that are looked at: real sets have two to five.
const MAX_KEYS: usize = 64;

/// Bytes of the smallest RSA modulus that is accepted: 2048 bits (RFC 7518 section 3.3).
const RSA_MODULUS: usize = 256;

const RSA: [Algorithm; 6] =
    [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512];

/// The keys that can verify a signature.
#[derive(Debug)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl KeySet {
    /// Reads an RFC 7517 key set. What cannot verify a signature (another use, a symmetric secret, an unknown curve, RSA
    /// below 2048 bits) is left out; one bad entry does not stop the others.
    pub(super) fn read(jwks: &Value) -> Self {
        let entries = jwks.get("keys").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Self(entries.iter().take(MAX_KEYS).filter_map(Key::read).collect())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one key that a token with this header may be verified with. `kid` may be absent only if exactly one key fits.
    pub(super) fn fit(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&DecodingKey, Refusal> {
        let mut named = self.0.iter().filter(|key| kid.is_none() || key.kid.as_deref() == kid).peekable();
        if named.peek().is_none() {
            return Err(Refusal::because(DenyReason::TokenKeyUnknown, "no key of the issuer has this kid"));
        }
        let mut fitting = named.filter(|key| key.algorithms.contains(&algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(&key.key),
            (Some(_), Some(_)) => Err(Refusal::because(DenyReason::TokenKeyUnknown, "more than one key fits")),
            (None, _) => Err(Refusal::because(DenyReason::TokenAlgorithm, "not one that the key allows")),
        }
    }
}

impl Key {
    fn read(entry: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(entry.clone()).ok()?;
        if matches!(&jwk.common.public_key_use, Some(other) if *other != PublicKeyUse::Signature) {
            return None;
        }
        if jwk.common.key_operations.as_ref().is_some_and(|all| !all.contains(&KeyOperations::Verify)) {
            return None;
        }
        let algorithms = match jwk.common.key_algorithm {
            None => fitting(&jwk.algorithm),
            Some(only) => {
                let only = Algorithm::try_from(only).ok()?;
                fitting(&jwk.algorithm).into_iter().filter(|algorithm| *algorithm == only).collect()
            }
        };
        let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| !algorithms.is_empty())?;
        Some(Self { kid: jwk.common.key_id, algorithms, key })
    }
}

/// The algorithms of a key's type. A symmetric key has none: whoever could verify with it could also sign.
fn fitting(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    match parameters {
        AlgorithmParameters::RSA(rsa) if modulus_bytes(&rsa.n) >= RSA_MODULUS => RSA.to_vec(),
        AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P256 => vec![Algorithm::ES256],
        AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P384 => vec![Algorithm::ES384],
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => vec![Algorithm::EdDSA],
        _ => Vec::new(),
    }
}

fn modulus_bytes(modulus: &str) -> usize {
    let bytes = URL_SAFE_NO_PAD.decode(modulus).unwrap_or_default();
    bytes.iter().skip_while(|byte| **byte == 0).count()
}
