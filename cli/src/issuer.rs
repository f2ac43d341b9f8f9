//! The development issuer: an ES256 key in the state folder, accepted by sidecars that `cotter up` started and by nobody else.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use cotter_compiler::world::ClusterIssuer;
use cotter_core::{
    name::{Audience, Issuer, Scope, Subject, Tenant},
    snapshot::{ClaimNames, Digest, TrustedIssuer},
};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Map, Value, json};

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
    /// The groups; none leaves the claim out.
    pub(crate) groups: BTreeSet<String>,
    /// What else it says.
    pub(crate) more: BTreeMap<String, Value>,
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
        let body = claims.body(&issuer, &ClaimNames::default(), now)?;
        jsonwebtoken::encode(&header, &body, &self.key).doing("sign the token")
    }
}

impl Claims {
    /// What the token says, by the names that an issuer has for its claims. The only place where claims are written: what `why` explains
    /// is what `token` mints.
    pub(crate) fn body(
        &self,
        issuer: &Issuer,
        names: &ClaimNames,
        now: Timestamp,
    ) -> Result<Map<String, Value>, Failure> {
        let flags = [
            (names.tenant.as_str(), "--tenant"),
            (&names.scopes, "--scope"),
            (&names.groups, "--group"),
            ("sub", "--subject"),
            ("aud", "--audience"),
            ("act", "--actor"),
        ];
        for name in self.more.keys() {
            if let Some((_, flag)) = flags.iter().find(|(claim, _)| claim == name) {
                return Err(Failure::cannot(format!("the claim {name} has a flag of its own: say {flag}")));
            }
            if ["iss", "iat", "exp", "nbf"].contains(&name.as_str()) {
                return Err(Failure::cannot(format!("the claim {name} is the issuer's to set")));
            }
        }
        let scopes = self.scopes.as_ref().map(|scopes| scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(" "));
        let said = [
            ("iss", Some(json!(issuer))),
            ("sub", Some(json!(self.subject))),
            ("aud", Some(json!(self.audience))),
            ("iat", Some(json!(now.as_second()))),
            ("exp", Some(json!((now + VALID).as_second()))),
            (&names.tenant, self.tenant.as_ref().map(|tenant| json!(tenant))),
            (&names.scopes, scopes.map(Value::String)),
            (&names.groups, (!self.groups.is_empty()).then(|| json!(self.groups))),
            ("act", self.actor.as_ref().map(|actor| json!({"sub": actor}))),
        ];
        let said = said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Ok(said.chain(self.more.clone()).collect())
    }
}
