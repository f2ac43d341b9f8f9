//! What a snapshot says about tools and delegations, keyed by name and turned into the engine's values once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use cotter_core::{
    grant::{Grant, Party},
    name::{Issuer, Subject, ToolName},
    principal::{Principal, ServiceAccount},
    snapshot::{Snapshot, ToolRule},
};
use regorus::Value;

use crate::{
    document::{AnnotationsDocument, GrantDocument, ServerDocument, ToolLimitsDocument},
    policy::PolicyError,
    value::{from_document, object, text},
};

/// The prefix of a service account's subject in the tokens of a cluster.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A declared tool.
#[derive(Debug)]
pub(crate) struct ToolFact {
    /// Its place among the declared tools.
    pub(crate) index: u32,
    name: Value,
    scope: Value,
    effect: Value,
    approval: Value,
    idempotency_key: Option<Value>,
    limits: Option<Value>,
}

impl ToolFact {
    fn new(index: usize, name: &ToolName, rule: &ToolRule) -> Result<Self, PolicyError> {
        let approval = from_document(&rule.approval).map_err(PolicyError::Facts)?;
        let index = u32::try_from(index).map_err(|_| PolicyError::TooManyTools)?;
        let (scope, effect) = (text(rule.scope.as_str()), text(rule.effect.as_str()));
        let idempotency_key = rule.idempotency_key.as_deref().map(text);
        let limits = ToolLimitsDocument { timeout_ms: rule.timeout_ms, result_bytes: rule.result_bytes };
        let limits = (limits != ToolLimitsDocument::default()).then(|| from_document(&limits));
        let limits = limits.transpose().map_err(PolicyError::Facts)?;
        Ok(Self { index, name: text(name.as_str()), scope, effect, approval, idempotency_key, limits })
    }

    /// The tool as a policy sees it. What the server says of it is there for a rule set that reads it.
    pub(crate) fn document(&self, pin: crate::PinFacts, said: Option<&AnnotationsDocument>) -> Value {
        let pin = object([("state", Some(text(pin.state))), ("class", pin.class.map(text))]);
        object([
            ("name", Some(self.name.clone())),
            ("scope", Some(self.scope.clone())),
            ("effect", Some(self.effect.clone())),
            ("approval", Some(self.approval.clone())),
            ("idempotencyKey", self.idempotency_key.clone()),
            ("limits", self.limits.clone()),
            ("pin", Some(pin)),
            ("annotations", said.map(annotations)),
        ])
    }
}

fn annotations(said: &AnnotationsDocument) -> Value {
    let hint = |hint: Option<bool>| hint.map(Value::from);
    object([
        ("title", said.title.as_deref().map(text)),
        ("readOnlyHint", hint(said.read_only_hint)),
        ("destructiveHint", hint(said.destructive_hint)),
        ("idempotentHint", hint(said.idempotent_hint)),
        ("openWorldHint", hint(said.open_world_hint)),
    ])
}

/// A delegation, and what it permits as a value: made when it is first used, since most are never used on most sidecars.
#[derive(Debug)]
pub(crate) struct GrantFact {
    pub(crate) grant: Grant,
    pub(crate) name: Arc<str>,
    document: OnceLock<Value>,
}

/// Which delegations can name a principal, found without looking at all of them.
#[derive(Debug, Default)]
struct Delegates {
    subjects: HashMap<(Issuer, Subject), Vec<usize>>,
    accounts: HashMap<ServiceAccount, Vec<usize>>,
    claims: Vec<usize>,
}

impl Delegates {
    fn add(&mut self, delegate: &Party, at: usize) {
        match delegate {
            Party::Subject { issuer, subject } => {
                self.subjects.entry((issuer.clone(), subject.clone())).or_default().push(at);
            }
            Party::ServiceAccount(account) => self.accounts.entry(account.clone()).or_default().push(at),
            Party::Claims(_) => self.claims.push(at),
        }
    }

    /// Every delegation that might name the principal; whether it does is for [`Grant::names`] to say.
    fn candidates(&self, principal: &Principal) -> Vec<usize> {
        let mut found = self.claims.clone();
        let mut subject = |issuer: &Issuer, subject: &Subject| {
            found.extend(self.subjects.get(&(issuer.clone(), subject.clone())).into_iter().flatten());
            found
                .extend(service_account(subject).and_then(|account| self.accounts.get(&account)).into_iter().flatten());
        };
        subject(&principal.issuer, &principal.subject);
        if let Some(actor) = &principal.actor {
            subject(&actor.issuer, &actor.subject);
        }
        found.extend(
            principal.service_account.as_ref().and_then(|account| self.accounts.get(account)).into_iter().flatten(),
        );
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn service_account(subject: &Subject) -> Option<ServiceAccount> {
    let (namespace, name) = subject.as_str().strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    Some(ServiceAccount { namespace: namespace.parse().ok()?, name: name.to_owned() })
}

/// The facts of one snapshot.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) server: Value,
    pub(crate) tools: BTreeMap<ToolName, ToolFact>,
    grants: Vec<GrantFact>,
    delegates: Delegates,
}

impl Facts {
    /// Reads the facts out of a snapshot.
    pub(crate) fn new(snapshot: &Snapshot) -> Result<Self, PolicyError> {
        let mut tools = BTreeMap::new();
        for (index, (name, rule)) in snapshot.tools.iter().enumerate() {
            tools.insert(name.clone(), ToolFact::new(index, name, rule)?);
        }
        let mut delegates = Delegates::default();
        let mut names = HashMap::new();
        let mut grants = Vec::with_capacity(snapshot.grants.len());
        for (at, grant) in snapshot.grants.iter().enumerate() {
            if names.insert(grant.name.clone(), at).is_some() {
                return Err(PolicyError::DuplicateGrant(grant.name.clone()));
            }
            delegates.add(&grant.delegate, at);
            let name = Arc::from(grant.name.as_str());
            grants.push(GrantFact { grant: grant.clone(), name, document: OnceLock::new() });
        }
        Ok(Self { server: server(snapshot)?, tools, grants, delegates })
    }

    /// The delegations that name the principal as delegate, active or not, in the order of the snapshot.
    pub(crate) fn naming<'a>(&'a self, principal: &'a Principal) -> impl Iterator<Item = &'a GrantFact> {
        let candidates = self.delegates.candidates(principal);
        candidates.into_iter().filter_map(|at| self.grants.get(at)).filter(|fact| fact.grant.names(principal))
    }

    /// What a delegation permits, as a policy sees it.
    pub(crate) fn grant_document(&self, fact: &GrantFact) -> Result<Value, PolicyError> {
        if let Some(document) = fact.document.get() {
            return Ok(document.clone());
        }
        let document = from_document(&self.permitted(&fact.grant)).map_err(PolicyError::Facts)?;
        Ok(fact.document.get_or_init(|| document).clone())
    }

    fn permitted(&self, grant: &Grant) -> GrantDocument {
        GrantDocument {
            scopes: grant.scopes.iter().map(|scope| (scope.clone(), true)).collect(),
            effects: grant.effects.iter().map(|effect| (*effect, true)).collect(),
            tools: self
                .tools
                .keys()
                .filter(|tool| grant.covers(tool.as_str()))
                .map(|tool| (tool.clone(), true))
                .collect(),
            tenants: grant.tenants.iter().map(|tenant| (tenant.clone(), true)).collect(),
            ancestors: grant.ancestors.clone(),
        }
    }
}

fn server(snapshot: &Snapshot) -> Result<Value, PolicyError> {
    let document = ServerDocument {
        namespace: snapshot.server.namespace.clone(),
        name: snapshot.server.name.clone(),
        audience: snapshot.access.audience.clone(),
        labels: snapshot.labels.clone(),
        tenants: snapshot.access.tenants.iter().map(|tenant| (tenant.clone(), true)).collect(),
    };
    from_document(&document).map_err(PolicyError::Facts)
}
