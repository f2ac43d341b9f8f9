//! Who may call.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    name::{Issuer, Namespace, Tenant},
    snapshot::{ClaimNames, InsufficientScope, ServiceAccounts},
};
use cotter_crds::server as crd;

use super::{server::bounded, upstream::authority};
use crate::{
    problem::Problems,
    server::{Access, DeclaredIssuer},
};

/// The tenant entry that admits everybody.
pub(super) const ANY: &str = "*";

pub(super) fn validate(spec: &crd::Access, problems: &mut Problems) -> Option<Access> {
    let public_url = match &spec.public_url {
        Some(url) => Some((url.clone(), public_host(url, problems)?)),
        None => None,
    };
    Some(Access {
        public_url,
        hosts: spec.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        origins: spec.origins.iter().cloned().collect(),
        issuers: issuers(&spec.issuers, problems),
        service_accounts: service_accounts(&spec.service_accounts, problems),
        tenants: tenants("spec.access.tenants", &spec.tenants, problems).iter().map(ToString::to_string).collect(),
        insufficient_scope: match spec.insufficient_scope {
            crd::InsufficientScope::Hide => InsufficientScope::Hide,
            crd::InsufficientScope::Challenge => InsufficientScope::Challenge,
        },
        advertised_scopes: problems.parse_all("spec.access.advertisedScopes", &spec.advertised_scopes),
    })
}

fn public_host(url: &str, problems: &mut Problems) -> Option<String> {
    let host = authority(url).filter(|_| !url.contains(['?', '#']));
    if host.is_none() {
        problems.add("spec.access.publicUrl", format_args!("{:?} has to be an absolute http:// or https:// URL without user, query and fragment, such as https://mcp.example.com/support/mcp", bounded(url)));
    }
    host.map(|host| host.to_ascii_lowercase())
}

/// Parses tenants. `*` admits every one, and then stands alone: beside names it would be read as one of them.
pub(super) fn tenants(path: &str, listed: &[String], problems: &mut Problems) -> BTreeSet<Tenant> {
    if listed.len() > 1 && listed.iter().any(|tenant| tenant == ANY) {
        problems.add(path, "\"*\" already means every tenant: write [\"*\"] alone, or only names");
    }
    problems.parse_all(path, listed)
}

fn issuers(listed: &[crd::Issuer], problems: &mut Problems) -> BTreeMap<String, DeclaredIssuer> {
    let mut by_name = BTreeMap::new();
    let mut seen: BTreeMap<Issuer, &str> = BTreeMap::new();
    for (at, declared) in listed.iter().enumerate() {
        let path = format!("spec.access.issuers[{at}]");
        let Some(issuer) = problems.parse::<Issuer>(format!("{path}.issuer"), &declared.issuer) else { continue };
        if let Some(other) = seen.insert(issuer.clone(), &declared.name) {
            problems.add(
                format!("{path}.issuer"),
                format_args!("is also that of {other:?}: one issuer has one entry, with all its keys"),
            );
        }
        if jwks_sources(declared) > 1 {
            problems.add(
                format!("{path}.jwks"),
                "write exactly one of uri, secretRef and configMapRef, or leave jwks out for discovery from the issuer",
            );
        }
        let claims = ClaimNames {
            tenant: declared.claims.tenant.clone(),
            scopes: declared.claims.scopes.clone(),
            groups: declared.claims.groups.clone(),
        };
        if by_name.insert(declared.name.clone(), DeclaredIssuer { issuer, claims }).is_some() {
            problems.add(
                format!("{path}.name"),
                format_args!("{:?} is used twice: name each issuer differently", bounded(&declared.name)),
            );
        }
    }
    by_name
}

fn jwks_sources(declared: &crd::Issuer) -> usize {
    let Some(jwks) = &declared.jwks else { return 0 };
    [jwks.uri.is_some(), jwks.secret_ref.is_some(), jwks.config_map_ref.is_some()]
        .into_iter()
        .filter(|set| *set)
        .count()
}

fn service_accounts(spec: &crd::ServiceAccounts, problems: &mut Problems) -> Option<ServiceAccounts> {
    let mut tenants: BTreeMap<Namespace, Tenant> = BTreeMap::new();
    for (at, mapped) in spec.tenants.iter().enumerate() {
        let path = format!("spec.access.serviceAccounts.tenants[{at}]");
        let namespace = problems.parse(format!("{path}.namespace"), &mapped.namespace);
        let tenant = problems.parse(format!("{path}.tenant"), &mapped.tenant);
        if let (Some(namespace), Some(tenant)) = (namespace, tenant)
            && tenants.insert(namespace, tenant).is_some()
        {
            problems.add(format!("{path}.namespace"), "has two tenants: keep one");
        }
    }
    spec.enabled.then_some(ServiceAccounts { tenants })
}
