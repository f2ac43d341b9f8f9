//! Who a command calls as: the flags that make a token, and the token.

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;
use cotter_core::{
    name::{Audience, Issuer, Scope, Subject, Tenant},
    principal::{Actor, Principal, ServiceAccount},
    snapshot::Access,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    failure::{Doing as _, Failure, Outcome},
    issuer::{Claims, DevIssuer},
    running::Running,
    state::State,
    wire::{Objects, Server},
};

/// What the token says.
#[derive(Debug, Clone, Args)]
pub(crate) struct Caller {
    /// Whom the token is about
    #[arg(long, visible_alias = "as", default_value = "developer")]
    subject: Subject,
    /// The tenant; none by default
    #[arg(long)]
    tenant: Option<Tenant>,
    /// The scopes, separated by spaces; no flag leaves the claim out, as a service account's token does
    #[arg(long, value_name = "SCOPES", value_parser = scopes)]
    scope: Option<Scopes>,
    /// Who acts on the subject's behalf (RFC 8693 `act`)
    #[arg(long)]
    actor: Option<Subject>,
    /// Be a service account instead: its tokens have no scopes, and its tenant comes from the McpServer
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = account, conflicts_with_all = ["subject", "tenant", "scope"])]
    service_account: Option<ServiceAccount>,
    /// Whom the token is for; the server's own audience by default
    #[arg(long)]
    audience: Option<Audience>,
}

fn account(text: &str) -> Result<ServiceAccount, String> {
    let wrong = || format!("{text:?} is no service account: write NAMESPACE/NAME");
    let (namespace, name) = text.split_once('/').ok_or_else(wrong)?;
    let namespace = namespace.parse().map_err(|error| format!("{error}"))?;
    Ok(ServiceAccount { namespace, name: name.to_owned() })
}

/// Scopes, as one argument.
#[derive(Debug, Clone)]
struct Scopes(BTreeSet<Scope>);

fn scopes(text: &str) -> Result<Scopes, String> {
    let scopes = text.split_ascii_whitespace().map(|scope| scope.parse().map_err(|error| format!("{error}")));
    scopes.collect::<Result<_, String>>().map(Scopes)
}

impl Caller {
    /// A token from the folder's development issuer.
    pub(crate) fn token(&self, state: &State, audience: &str) -> Result<String, Failure> {
        let claims = Claims {
            subject: self.subject()?,
            tenant: self.tenant.clone(),
            scopes: self.scope.as_ref().map(|scopes| scopes.0.clone()),
            is_account: self.service_account.is_some(),
            audience: match &self.audience {
                Some(audience) => audience.clone(),
                None => audience.parse().doing("read the server's audience")?,
            },
            actor: self.actor.clone(),
        };
        DevIssuer::open(state)?.mint(&claims, Timestamp::now())
    }

    /// The subject: the service account's name as a cluster writes it, where it is one.
    fn subject(&self) -> Result<Subject, Failure> {
        match &self.service_account {
            None => Ok(self.subject.clone()),
            Some(account) => format!("system:serviceaccount:{}:{}", account.namespace, account.name)
                .parse()
                .doing("name the service account"),
        }
    }

    /// The principal that a token of these flags would be.
    pub(crate) fn principal(&self, issuer: &Issuer, access: &Access, now: Timestamp) -> Result<Principal, Failure> {
        if let Some(account) = &self.service_account {
            return self.account_principal(account, access, now);
        }
        let actor = self.actor.clone().map(|subject| Actor { issuer: issuer.clone(), subject, service_account: None });
        Ok(Principal {
            issuer: issuer.clone(),
            subject: self.subject.clone(),
            tenant: self.tenant.clone(),
            scopes: self.scope.as_ref().map(|scopes| scopes.0.clone()),
            groups: BTreeSet::new(),
            service_account: None,
            actor_chain: actor.clone().into_iter().collect(),
            actor,
            claims: [("sub".to_owned(), json!(self.subject)), ("iss".to_owned(), json!(issuer))].into_iter().collect(),
            expires_at: now + SignedDuration::from_hours(1),
        })
    }

    fn account_principal(
        &self,
        account: &ServiceAccount,
        access: &Access,
        now: Timestamp,
    ) -> Result<Principal, Failure> {
        let accepted =
            access.issuers.iter().find_map(|issuer| issuer.service_accounts.as_ref().map(|tenants| (issuer, tenants)));
        let (issuer, accounts) = accepted.ok_or_else(|| {
            Failure::no("this server accepts no service accounts: set access.serviceAccounts.enabled")
        })?;
        let tenant = match accounts.tenants.get(&account.namespace) {
            Some(mapped) => mapped.clone(),
            None => account.namespace.as_str().parse().doing("read the namespace as a tenant")?,
        };
        Ok(Principal {
            issuer: issuer.issuer.clone(),
            subject: self.subject()?,
            tenant: Some(tenant),
            scopes: None,
            groups: BTreeSet::new(),
            service_account: Some(account.clone()),
            actor: None,
            actor_chain: Vec::new(),
            claims: std::collections::BTreeMap::new(),
            expires_at: now + SignedDuration::from_hours(1),
        })
    }

    /// Whether the token would be for this audience.
    pub(crate) fn is_for(&self, audience: &str) -> bool {
        self.audience.as_ref().is_none_or(|wanted| wanted.as_str() == audience)
    }

    /// The flags again, for a command that is shown to the person.
    pub(crate) fn flags(&self) -> String {
        let mut flags = String::new();
        if let Some(account) = &self.service_account {
            flags.push_str(&format!(" --service-account {}/{}", account.namespace, account.name));
        }
        if self.subject.as_str() != "developer" {
            flags.push_str(&format!(" --subject {}", self.subject));
        }
        if let Some(tenant) = &self.tenant {
            flags.push_str(&format!(" --tenant {tenant}"));
        }
        if let Some(scopes) = &self.scope {
            let scopes: Vec<&str> = scopes.0.iter().map(Scope::as_str).collect();
            let scopes = scopes.join(" ");
            let quoted = if scopes.contains(' ') || scopes.is_empty() { format!("\"{scopes}\"") } else { scopes };
            flags.push_str(&format!(" --scope {quoted}"));
        }
        flags
    }
}

/// Print a token for any MCP client, minted by the development issuer of a running `cotter up`
#[derive(Debug, Args)]
#[command(
    after_help = "The key is made by `cotter up`, stays in the state folder, and is accepted only by sidecars that `up` started."
)]
pub(crate) struct TokenOptions {
    #[command(flatten)]
    caller: Caller,
    /// The folder of manifests whose `up` runs; the only running one by default
    #[arg(short, long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs `cotter token`.
pub(crate) async fn token(options: &TokenOptions) -> Outcome {
    let running = Running::find(options.folder.as_deref()).await?;
    let audience = match &options.caller.audience {
        Some(audience) => audience.to_string(),
        None => only_audience(&running).await?,
    };
    println!("{}", options.caller.token(&running.state, &audience)?);
    Ok(())
}

async fn only_audience(running: &Running) -> Result<String, Failure> {
    let servers: Vec<Server> = running.get("/v1/servers").await?.unwrap_or_default();
    let audiences: BTreeSet<String> = servers.into_iter().map(|server| server.audience).collect();
    let mut audiences: Vec<String> = audiences.into_iter().collect();
    match audiences.len() {
        1 => audiences.pop().ok_or_else(|| Failure::cannot("no server runs")),
        0 => Err(Failure::cannot("no server of this folder runs: say --audience")),
        _ => Err(Failure::cannot(format!("several audiences; say --audience with one of: {}", audiences.join(", ")))),
    }
}

/// The objects of a running `up`.
pub(crate) async fn objects(running: &Running) -> Result<Objects, Failure> {
    Ok(running.get("/v1/objects").await?.unwrap_or_default())
}
