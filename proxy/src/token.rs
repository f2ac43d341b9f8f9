//! A bearer token becomes a principal, or a reason why not. Signature and registered claims are the library's business; what
//! the library leaves open (duplicate names, the key that fits, claims of other types) is decided here, and strictly.

mod claims;
mod keys;

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use cotter_core::{
    name::Issuer,
    principal::Principal,
    reason::DenyReason,
    snapshot::{Access, ClaimNames, ServiceAccounts},
    strict::{self, Limits},
};
use jsonwebtoken::{Algorithm, Validation, errors::ErrorKind};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::respond::Refusal;
use keys::KeySet;

/// Tolerated difference between clocks, in seconds.
pub const LEEWAY_SECONDS: i64 = 30;

/// Longest token that is looked at, in bytes: real ones have 0.4 to 8 KiB.
const MAX_TOKEN: usize = 16 * 1024;

/// Objects inside each other in a header or in claims. Actors nest at most 8 deep, and a claim of a directory a little.
const DEPTH: u8 = 32;

/// Checks tokens against the issuers, keys and audiences of one snapshot.
#[derive(Debug)]
pub struct Verifier {
    audiences: Vec<String>,
    issuers: BTreeMap<String, Trusted>,
    /// Issuers whose subjects are service accounts of this cluster.
    clusters: Vec<Issuer>,
}

#[derive(Debug)]
struct Trusted {
    keys: KeySet,
    claims: ClaimNames,
    service_accounts: Option<ServiceAccounts>,
}

impl Verifier {
    /// A verifier for these rules. Keys that cannot verify a signature are left out; an issuer without keys admits nobody.
    #[must_use]
    pub fn new(access: &Access) -> Self {
        let audiences = std::iter::once(access.audience.as_str().to_owned()).chain(access.public_url.clone()).collect();
        let mut issuers = BTreeMap::new();
        for issuer in &access.issuers {
            let (claims, service_accounts) = (issuer.claims.clone(), issuer.service_accounts.clone());
            let trusted = Trusted { keys: KeySet::read(&issuer.jwks), claims, service_accounts };
            // Two entries for one issuer would make the answer depend on their order: the first one counts.
            issuers.entry(issuer.issuer.as_str().to_owned()).or_insert(trusted);
        }
        let clusters = access.issuers.iter().filter(|issuer| issuer.service_accounts.is_some());
        Self { audiences, issuers, clusters: clusters.map(|issuer| issuer.issuer.clone()).collect() }
    }

    /// Who presents this token.
    ///
    /// # Errors
    /// One of the `Token…` reasons, with a detail for the audit that holds nothing of the token.
    pub fn verify(&self, token: &str) -> Result<Principal, Refusal> {
        let malformed = |why: &str| Refusal::because(DenyReason::TokenMalformed, why);
        if token.len() > MAX_TOKEN {
            return Err(malformed("longer than 16 KiB"));
        }
        let parts: Vec<&str> = token.split('.').collect();
        let [header, payload, _signature] = parts.as_slice() else {
            return Err(malformed("not three parts"));
        };
        let (kid, algorithm) = read_header(&object(header)?)?;
        let claims = object(payload)?;
        let (issuer, trusted) = self.trusted(&claims)?;
        let key = trusted.keys.fit(kid.as_deref(), algorithm)?;
        let rules = self.rules(algorithm, issuer);
        jsonwebtoken::decode::<IgnoredAny>(token, key, &rules).map_err(|error| refused(error.kind()))?;
        claims::principal(claims, &trusted.claims, trusted.service_accounts.as_ref(), &self.clusters)
    }

    /// Who a token with these claims would be, if it verified: for an explanation. Nothing is admitted by it.
    ///
    /// # Errors
    /// As [`Verifier::verify`], for what is wrong with the claims themselves.
    pub fn suppose(&self, claims: &[u8]) -> Result<Principal, Refusal> {
        let claims = members(claims)?;
        let (_, trusted) = self.trusted(&claims)?;
        claims::principal(claims, &trusted.claims, trusted.service_accounts.as_ref(), &self.clusters)
    }

    /// The issuer that claims name, and what is known of it.
    fn trusted<'a, 'c>(&'a self, claims: &'c Map<String, Value>) -> Result<(&'c str, &'a Trusted), Refusal> {
        let issuer = claims.get("iss").and_then(Value::as_str);
        let issuer = issuer.ok_or_else(|| Refusal::because(DenyReason::TokenClaims, "iss is not a string"))?;
        let trusted = self.issuers.get(issuer).ok_or_else(|| Refusal::new(DenyReason::TokenIssuer))?;
        Ok((issuer, trusted))
    }

    fn rules(&self, algorithm: Algorithm, issuer: &str) -> Validation {
        let mut rules = Validation::new(algorithm);
        // Without this list a token that lacks `aud` would pass.
        rules.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        rules.set_audience(&self.audiences);
        rules.set_issuer(&[issuer]);
        rules.leeway = LEEWAY_SECONDS.unsigned_abs();
        rules.validate_nbf = true;
        rules
    }

    /// The issuers whose keys can verify something, for the report.
    #[must_use]
    pub fn usable_issuers(&self) -> BTreeSet<&str> {
        self.issuers.iter().filter(|(_, trusted)| !trusted.keys.is_empty()).map(|(issuer, _)| issuer.as_str()).collect()
    }
}

/// A part of a token, as an object without names that occur twice.
fn object(part: &str) -> Result<Map<String, Value>, Refusal> {
    let not_encoded = |_| Refusal::because(DenyReason::TokenMalformed, "a part is not base64url");
    members(&URL_SAFE_NO_PAD.decode(part).map_err(not_encoded)?)
}

fn members(text: &[u8]) -> Result<Map<String, Value>, Refusal> {
    let malformed = |why: String| Refusal::because(DenyReason::TokenMalformed, why);
    match strict::parse(text, Limits::depth(DEPTH)) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(malformed("a part is not an object".to_owned())),
        // The message names the place and not the content.
        Err(fault) => Err(malformed(format!("a part is not strict JSON: {}", kind_of(&fault)))),
    }
}

const fn kind_of(fault: &strict::StrictError) -> &'static str {
    match fault {
        strict::StrictError::DuplicateKey { .. } => "a name occurs twice",
        strict::StrictError::TooDeep { .. } => "nested too deep",
        _ => "not JSON",
    }
}

/// The key id and the algorithm of a header. A header that asks for something that is not understood is refused.
fn read_header(header: &Map<String, Value>) -> Result<(Option<String>, Algorithm), Refusal> {
    let malformed = |why: &str| Refusal::because(DenyReason::TokenMalformed, why);
    if header.contains_key("crit") {
        return Err(malformed("the header has critical extensions"));
    }
    match header.get("typ").map(Value::as_str) {
        None => {}
        Some(Some(typ)) if ["jwt", "at+jwt", "application/at+jwt"].contains(&typ.to_ascii_lowercase().as_str()) => {}
        Some(_) => return Err(malformed("typ is not that of an access token")),
    }
    let kid = match header.get("kid") {
        None => None,
        Some(Value::String(kid)) => Some(kid.clone()),
        Some(_) => return Err(malformed("kid is not a string")),
    };
    let algorithm = header.get("alg").and_then(Value::as_str).ok_or_else(|| malformed("alg is not a string"))?;
    let algorithm = algorithm.parse().map_err(|_| Refusal::because(DenyReason::TokenAlgorithm, "not a known one"))?;
    Ok((kid, algorithm))
}

fn refused(kind: &ErrorKind) -> Refusal {
    let reason = match kind {
        ErrorKind::InvalidSignature => DenyReason::TokenSignature,
        ErrorKind::ExpiredSignature => DenyReason::TokenExpired,
        ErrorKind::ImmatureSignature => DenyReason::TokenNotYetValid,
        ErrorKind::InvalidAudience => DenyReason::TokenAudience,
        ErrorKind::InvalidIssuer => DenyReason::TokenIssuer,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => DenyReason::TokenAlgorithm,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            return Refusal::because(DenyReason::TokenClaims, format!("{claim} is missing or has the wrong type"));
        }
        _ => DenyReason::TokenMalformed,
    };
    Refusal::new(reason)
}
