//! Who a command calls as: the flags that make a token, and the token.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use clap::Args;
use cotter_core::{
    name::{Audience, Issuer, Scope, Subject, Tenant},
    principal::{Principal, ServiceAccount},
    snapshot::{Access, TrustedIssuer},
};
use cotter_proxy::{respond::Refusal, token::Verifier};
use jiff::Timestamp;
use serde_json::Value;

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
    /// A group that the token names; may be said several times
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// Another claim of the token; VALUE is JSON where it reads as JSON, and a text otherwise; may be said several times
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = claim)]
    claims: Vec<(String, Value)>,
    /// Be a service account instead: its tokens have neither scopes nor groups, and its tenant comes from the McpServer
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = account, conflicts_with_all = ["subject", "tenant", "scope", "groups"])]
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

fn claim(text: &str) -> Result<(String, Value), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| format!("{text:?} is no claim: write NAME=VALUE"))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((name.to_owned(), value))
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
        let audience = audience.parse().doing("read the server's audience")?;
        DevIssuer::open(state)?.mint(&self.said(&audience)?, Timestamp::now())
    }

    /// What the token says; for the audience that the flags name, else for this one.
    fn said(&self, audience: &Audience) -> Result<Claims, Failure> {
        let mut more = BTreeMap::new();
        for (name, value) in &self.claims {
            if more.insert(name.clone(), value.clone()).is_some() {
                return Err(Failure::cannot(format!("the claim {name} is said twice")));
            }
        }
        Ok(Claims {
            subject: self.subject()?,
            tenant: self.tenant.clone(),
            scopes: self.scope.as_ref().map(|scopes| scopes.0.clone()),
            is_account: self.service_account.is_some(),
            audience: self.audience.as_ref().unwrap_or(audience).clone(),
            actor: self.actor.clone(),
            groups: self.groups.iter().cloned().collect(),
            more,
        })
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

    /// The principal that a sidecar reads from a token of these flags, or why it reads none.
    pub(crate) fn principal(
        &self,
        issuer: &Issuer,
        access: &Access,
        now: Timestamp,
    ) -> Result<Result<Principal, Refusal>, Failure> {
        let trusted = match self.service_account {
            Some(_) => Some(accounts(access)?),
            None => access.issuers.iter().find(|trusted| trusted.issuer == *issuer),
        };
        let names = trusted.map(|trusted| trusted.claims.clone()).unwrap_or_default();
        let issuer = trusted.map_or(issuer, |trusted| &trusted.issuer);
        let body = self.said(&access.audience)?.body(issuer, &names, now)?;
        let text = serde_json::to_vec(&body).doing("write the claims")?;
        Ok(Verifier::new(access).suppose(&text))
    }

    /// Whether the token would be for this server.
    pub(crate) fn is_for(&self, access: &Access) -> bool {
        let accepted = |wanted: &Audience| {
            *wanted == access.audience || access.public_url.as_deref().is_some_and(|url| url == wanted.as_str())
        };
        self.audience.as_ref().is_none_or(accepted)
    }

    /// The flags again, for a command that is shown to the person.
    pub(crate) fn flags(&self) -> String {
        let account = self.service_account.as_ref().map(|account| format!("{}/{}", account.namespace, account.name));
        let subject = Some(self.subject.to_string()).filter(|subject| subject != "developer");
        let scopes = self.scope.as_ref().map(|scopes| scopes.0.iter().map(Scope::as_str).collect::<Vec<_>>().join(" "));
        let said = [
            ("service-account", account),
            ("subject", subject),
            ("tenant", self.tenant.as_ref().map(ToString::to_string)),
            ("scope", scopes),
            ("actor", self.actor.as_ref().map(ToString::to_string)),
            ("audience", self.audience.as_ref().map(ToString::to_string)),
        ];
        let said = said.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
        let groups = self.groups.iter().map(|group| ("group", group.clone()));
        let claims = self.claims.iter().map(|(name, value)| ("claim", format!("{name}={value}")));
        said.chain(groups).chain(claims).map(|(flag, value)| format!(" --{flag} {}", quoted(&value))).collect()
    }
}

/// The issuer of service accounts.
fn accounts(access: &Access) -> Result<&TrustedIssuer, Failure> {
    let found = access.issuers.iter().find(|issuer| issuer.service_accounts.is_some());
    found.ok_or_else(|| Failure::no("this server accepts no service accounts: set access.serviceAccounts.enabled"))
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    // Only a NUL cannot be quoted, and no argument has one.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
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

#[cfg(test)]
mod tests;
