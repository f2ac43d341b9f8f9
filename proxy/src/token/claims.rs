//! The claims of a verified token, read into a principal. A claim of another type than declared is refused, never guessed.

use std::collections::BTreeSet;

use cotter_core::{
    name::{Issuer, Namespace, Scope, Subject, Tenant},
    principal::{Actor, Principal, ServiceAccount},
    reason::DenyReason,
    snapshot::{ClaimNames, ServiceAccounts},
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::respond::Refusal;

/// Actors inside actors (RFC 8693 `act`). Chains of agents are short; a longer one is an attack or a loop.
const MAX_ACTORS: usize = 8;

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Reads the principal of claims whose signature, issuer, audience and times were verified. `cluster` is set where this cluster minted the
/// token; `clusters` are the issuers whose subjects are service accounts.
pub(super) fn principal(
    claims: Map<String, Value>,
    names: &ClaimNames,
    cluster: Option<&ServiceAccounts>,
    clusters: &[Issuer],
) -> Result<Principal, Refusal> {
    let issuer: Issuer = parsed(&claims, "iss")?.ok_or_else(|| wrong("iss"))?;
    let subject: Subject = parsed(&claims, "sub")?.ok_or_else(|| wrong("sub"))?;
    let expires_at = claims.get("exp").and_then(seconds).ok_or_else(|| wrong("exp"))?;
    if claims.get("nbf").is_some_and(|nbf| !nbf.is_number()) {
        return Err(wrong("nbf"));
    }
    let actor_chain = actors(claims.get("act"), &issuer, clusters)?;
    let mut principal = Principal {
        tenant: None,
        scopes: None,
        groups: groups(claims.get(&names.groups)).ok_or_else(|| wrong(&names.groups))?,
        service_account: None,
        actor: actor_chain.first().cloned(),
        actor_chain,
        claims: std::collections::BTreeMap::new(),
        expires_at,
        issuer,
        subject,
    };
    match cluster {
        Some(cluster) => identify(&mut principal, cluster)?,
        None => {
            principal.tenant = parsed(&claims, &names.tenant)?;
            principal.scopes = scopes(claims.get(&names.scopes)).ok_or_else(|| wrong(&names.scopes))?;
        }
    }
    principal.claims = claims.into_iter().collect();
    Ok(principal)
}

fn wrong(claim: &str) -> Refusal {
    Refusal::because(DenyReason::TokenClaims, format!("{claim} is missing or has the wrong type"))
}

/// A claim that is absent, or one string of the right form.
fn parsed<T: std::str::FromStr>(claims: &Map<String, Value>, name: &str) -> Result<Option<T>, Refusal> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => text.parse().map(Some).map_err(|_| wrong(name)),
        Some(_) => Err(wrong(name)),
    }
}

/// A service account of this cluster: its namespace is its tenant unless it is mapped, and it has no scopes.
fn identify(principal: &mut Principal, cluster: &ServiceAccounts) -> Result<(), Refusal> {
    let account = account(&principal.subject).ok_or_else(|| wrong("sub"))?;
    let tenant = match cluster.tenants.get(&account.namespace) {
        Some(mapped) => mapped.clone(),
        None => account.namespace.as_str().parse::<Tenant>().map_err(|_| wrong("sub"))?,
    };
    principal.tenant = Some(tenant);
    principal.service_account = Some(account);
    Ok(())
}

/// The service account that a subject of a cluster's own issuer names.
fn account(subject: &Subject) -> Option<ServiceAccount> {
    let (namespace, name) = subject.as_str().strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let namespace: Namespace = namespace.parse().ok()?;
    (!name.is_empty()).then(|| ServiceAccount { namespace, name: name.to_owned() })
}

/// `None` where the claim is of a wrong type; `Some(None)` where there is none; an empty claim states "none".
fn scopes(claim: Option<&Value>) -> Option<Option<BTreeSet<Scope>>> {
    let scopes = match claim {
        None => return Some(None),
        Some(Value::String(text)) => {
            text.split(' ').filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
        }
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str()?.parse().ok()).collect(),
        Some(_) => None,
    };
    scopes.map(Some)
}

fn groups(claim: Option<&Value>) -> Option<BTreeSet<String>> {
    match claim {
        None => Some(BTreeSet::new()),
        Some(Value::String(one)) => Some(BTreeSet::from([one.clone()])),
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    }
}

/// The actors of RFC 8693 section 4.1, outermost first. An actor without `iss` has the token's issuer.
fn actors(claim: Option<&Value>, issuer: &Issuer, clusters: &[Issuer]) -> Result<Vec<Actor>, Refusal> {
    let (mut chain, mut next) = (Vec::new(), claim);
    while let Some(value) = next {
        let members = value.as_object().filter(|_| chain.len() < MAX_ACTORS).ok_or_else(|| wrong("act"))?;
        let subject = parsed(members, "sub").ok().flatten().ok_or_else(|| wrong("act"))?;
        let issuer = parsed(members, "iss").map_err(|_| wrong("act"))?.unwrap_or_else(|| issuer.clone());
        let service_account = clusters.contains(&issuer).then(|| account(&subject)).flatten();
        chain.push(Actor { issuer, subject, service_account });
        next = members.get("act");
    }
    Ok(chain)
}

/// A NumericDate (RFC 7519 section 2). A date beyond what a timestamp holds is the last one that it holds.
fn seconds(value: &Value) -> Option<Timestamp> {
    let seconds = value.as_i64().or_else(|| value.as_f64().filter(|f| f.is_finite()).map(|f| f as i64))?;
    Some(Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX }))
}
