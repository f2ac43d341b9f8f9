//! The verified catalogue: what a server offers, held against what was approved and declared.
//!
//! One pure function of the snapshot and the observed list. The sidecar serves from it and calls through it; status and the
//! command line show it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ambiguity::ambiguous,
    drift::{self, Class, Drift},
    fingerprint::{Fingerprint, Ignore, Scheme, canonical},
    name::ToolName,
    reason::DenyReason,
    report::{Definitions, ToolReport},
    scan::{self, Finding},
    snapshot::{Digest, Enforcement, OnDrift, Pin, PinnedTool, Snapshot, ToolRule},
    tool::ToolObject,
};

/// How a tool stands to what was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ToolState {
    /// It is what was approved.
    Matched,
    /// It is not what was approved.
    Drifted,
    /// Declared and offered; the server's pin does not have it.
    Added,
    /// Declared and offered; the server has no pin.
    Unpinned,
    /// Another tool of the list has its name or one that looks like it, or it cannot be hashed.
    Ambiguous,
    /// Pinned, and not offered.
    Removed,
    /// Declared, neither pinned nor offered.
    Missing,
}

impl ToolState {
    /// The name as status, audit and policy write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Matched => "Matched",
            Self::Drifted => "Drifted",
            Self::Added => "Added",
            Self::Unpinned => "Unpinned",
            Self::Ambiguous => "Ambiguous",
            Self::Removed => "Removed",
            Self::Missing => "Missing",
        }
    }
}

/// What a server offers, as the sidecar read it.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The tools, in the order sent.
    pub tools: Vec<ToolObject>,
    /// SHA-256 of the exact bytes of all pages.
    pub digest: Digest,
}

impl Observed {
    /// The last whole list with what a partial one already showed: a change counts at once, an absence not yet.
    #[must_use]
    pub fn overlaid(&self, partial: &[ToolObject]) -> Self {
        let seen: BTreeSet<&str> = partial.iter().map(|tool| tool.name.as_str()).collect();
        let kept = self.tools.iter().filter(|tool| !seen.contains(tool.name.as_str()));
        let tools: Vec<ToolObject> = kept.chain(partial).cloned().collect();
        let mut bytes = Vec::new();
        for tool in &tools {
            bytes.extend_from_slice(tool.raw.as_bytes());
            bytes.push(b'\n');
        }
        Self { digest: Digest::of(&bytes), tools }
    }
}

/// One tool that is declared and offered.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: ToolName,
    /// What it demands.
    pub rule: Arc<ToolRule>,
    /// How it stands.
    pub state: ToolState,
    /// The difference, where there is one.
    pub drift: Option<Drift>,
    /// Whether it may be seen and used, policy aside.
    pub callable: bool,
    /// The object that is listed: verified, or passed by the pin's own setting.
    pub served: Arc<ToolObject>,
    /// The fingerprint of the observed object.
    pub fingerprint: Option<Fingerprint>,
    /// The approved fingerprint.
    pub approved: Option<Fingerprint>,
}

/// What a name leads to.
#[derive(Debug, Clone, Copy)]
pub enum Lookup<'a> {
    /// A tool that may be seen and used, policy aside.
    Callable(&'a Entry),
    /// Nothing that may be used, and the true reason, for the audit.
    Refused(DenyReason),
}

/// The verified catalogue of one server.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    entries: BTreeMap<ToolName, Entry>,
    absent: BTreeMap<ToolName, Absent>,
    unlisted: BTreeSet<String>,
    offered: usize,
}

#[derive(Debug, Clone, Copy)]
struct Absent {
    declared: bool,
    approved: Option<Fingerprint>,
}

impl Catalogue {
    /// Holds an observed list against a snapshot.
    #[must_use]
    pub fn verify(snapshot: &Snapshot, observed: &Observed) -> Self {
        let names: Vec<&str> = observed.tools.iter().map(|tool| tool.name.as_str()).collect();
        let alike: BTreeSet<String> = ambiguous(&names).into_iter().flat_map(|group| group.names).collect();
        let mut catalogue = Self { offered: observed.tools.len(), ..Self::default() };
        for tool in &observed.tools {
            let declared = snapshot.tools.get_key_value(tool.name.as_str());
            let Some((name, rule)) = declared else {
                catalogue.unlisted.insert(tool.name.clone());
                continue;
            };
            let entry = Entry::judge(snapshot, name, rule, tool, alike.contains(&tool.name));
            catalogue.entries.insert(name.clone(), entry);
        }
        catalogue.note_absent(snapshot);
        catalogue
    }

    fn note_absent(&mut self, snapshot: &Snapshot) {
        let pinned = snapshot.pin.iter().flat_map(|pin| pin.tools.iter());
        for (name, tool) in pinned {
            let declared = snapshot.tools.contains_key(name);
            let offered = self.entries.contains_key(name) || self.unlisted.contains(name.as_str());
            if !offered {
                self.absent.insert(name.clone(), Absent { declared, approved: Some(tool.fingerprint) });
            }
        }
        for name in snapshot.tools.keys().filter(|name| !self.entries.contains_key(*name)) {
            self.absent.entry(name.clone()).or_insert(Absent { declared: true, approved: None });
        }
    }

    /// What a name leads to.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Lookup<'_> {
        match self.entries.get(name) {
            Some(entry) if entry.callable => Lookup::Callable(entry),
            Some(entry) if entry.state == ToolState::Ambiguous => Lookup::Refused(DenyReason::Ambiguous),
            Some(_) => Lookup::Refused(DenyReason::Quarantined),
            None if self.unlisted.contains(name) => Lookup::Refused(DenyReason::Unlisted),
            None => Lookup::Refused(DenyReason::NotOffered),
        }
    }

    /// The tool of that name, callable or not.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// All tools that are declared and offered, sorted by name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The tools that may be seen and used, policy aside, sorted by name.
    pub fn callable(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|entry| entry.callable)
    }

    /// How many tools the server offers.
    #[must_use]
    pub const fn offered(&self) -> usize {
        self.offered
    }

    /// How many of them nobody declared.
    #[must_use]
    pub fn unlisted(&self) -> usize {
        self.unlisted.len()
    }

    /// Every tool that is declared or pinned, sorted by name.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolReport> {
        let mut tools: Vec<ToolReport> = self.entries.values().map(Entry::report).collect();
        tools.extend(self.absent.iter().map(|(name, absent)| absent.report(name)));
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }
}

/// The observed definitions by name, for `diff` and `approve`; the first where a name comes twice.
#[must_use]
pub fn definitions(observed: &Observed) -> Definitions {
    let mut definitions = Definitions::new();
    for tool in &observed.tools {
        if let Ok(raw) = serde_json::value::RawValue::from_string(tool.raw.to_string()) {
            definitions.entry(scan::visible(&tool.name)).or_insert(raw);
        }
    }
    definitions
}

impl Absent {
    fn report(self, name: &ToolName) -> ToolReport {
        let state = if self.approved.is_some() { ToolState::Removed } else { ToolState::Missing };
        let class = self.approved.map(|_| Class::Removed);
        ToolReport { declared: self.declared, approved: self.approved, class, ..ToolReport::new(name, state) }
    }
}

impl Entry {
    fn judge(snapshot: &Snapshot, name: &ToolName, rule: &ToolRule, tool: &ToolObject, alike: bool) -> Self {
        let entry = Self {
            name: name.clone(),
            rule: Arc::new(rule.clone()),
            state: ToolState::Ambiguous,
            drift: None,
            callable: false,
            served: Arc::new(tool.clone()),
            fingerprint: None,
            approved: None,
        };
        if alike {
            return entry;
        }
        match &snapshot.pin {
            Some(pin) => entry.against(pin),
            None => entry.unpinned(snapshot.pinning),
        }
    }

    fn unpinned(self, pinning: Enforcement) -> Self {
        match self.served.fingerprint(Scheme::ToolV1, &Ignore::NONE) {
            Ok(found) => {
                let callable = pinning == Enforcement::Audit;
                Self { state: ToolState::Unpinned, callable, fingerprint: Some(found), ..self }
            }
            Err(_) => self,
        }
    }

    fn against(self, pin: &Pin) -> Self {
        let Some(pinned) = pin.tools.get(&self.name) else {
            let Ok(found) = self.served.fingerprint(Scheme::ToolV1, &Ignore::NONE) else { return self };
            let callable = pin.passes(Class::Added);
            return Self { state: ToolState::Added, callable, fingerprint: Some(found), ..self };
        };
        let approved = Some(pinned.fingerprint);
        match self.served.fingerprint(pinned.fingerprint.scheme(), &pinned.ignore) {
            Err(error) if error.is_ambiguous() => Self { approved, ..self },
            Err(_) => Self { approved, ..self.drifted(pin, None, drift::without_definition()) },
            Ok(found) if found == pinned.fingerprint && !pinned.mismatched => {
                let served = serve(&self.served, pinned);
                let callable = served.is_some();
                let served = served.unwrap_or_else(|| Arc::clone(&self.served));
                Self { state: ToolState::Matched, callable, served, fingerprint: Some(found), approved, ..self }
            }
            Ok(found) => {
                let known = pinned.definition.as_ref().filter(|_| !pinned.mismatched);
                let drift = known.and_then(|known| drift::classify(known, &self.served.value, &pinned.ignore));
                let drift = drift.unwrap_or_else(drift::without_definition);
                // A class that passes is served as observed, but for what is ignored: nobody classed that.
                let served = serve(&self.served, pinned);
                let entry = self.drifted(pin, Some(found), drift);
                let callable = entry.callable && served.is_some();
                Self { approved, callable, served: served.unwrap_or_else(|| Arc::clone(&entry.served)), ..entry }
            }
        }
    }

    fn drifted(self, pin: &Pin, found: Option<Fingerprint>, drift: Drift) -> Self {
        let callable = pin.passes(drift.class);
        Self { state: ToolState::Drifted, callable, fingerprint: found, drift: Some(drift), ..self }
    }

    fn report(&self) -> ToolReport {
        let class = match self.state {
            ToolState::Ambiguous => Some(Class::Ambiguous),
            ToolState::Added => Some(Class::Added),
            _ => self.drift.as_ref().map(|drift| drift.class),
        };
        let fields = self.drift.as_ref().map(|drift| drift.fields.iter().map(|field| scan::visible(field)).collect());
        let findings: Option<Vec<Finding>> = self.drift.as_ref().map(|drift| drift.findings.clone());
        ToolReport {
            declared: true,
            callable: self.callable,
            approved: self.approved,
            observed: self.fingerprint,
            class,
            fields: fields.unwrap_or_default(),
            findings: findings.unwrap_or_default(),
            ..ToolReport::new(&self.name, self.state)
        }
    }
}

impl Pin {
    /// Whether a difference of this class is reported only.
    #[must_use]
    pub fn passes(&self, class: Class) -> bool {
        let reported = self.on_drift.get(&class) == Some(&OnDrift::Report);
        self.enforcement == Enforcement::Audit || reported
    }
}

/// The object that may be served of one that matched: what the fingerprint does not cover is approved text or left out.
fn serve(observed: &Arc<ToolObject>, pinned: &PinnedTool) -> Option<Arc<ToolObject>> {
    if pinned.fingerprint.scheme() == Scheme::NameDescriptionSchemaV0 {
        let covered = ["name", "description", "inputSchema"];
        let members = observed.value.as_object()?.iter().filter(|(name, _)| covered.contains(&name.as_str()));
        let value = members.map(|(name, member)| (name.clone(), member.clone())).collect();
        return rebuilt(observed, serde_json::Value::Object(value));
    }
    if pinned.ignore.is_empty() {
        return Some(Arc::clone(observed));
    }
    let value = pinned.ignore.serve(&observed.value, pinned.definition.as_ref()).ok()?;
    rebuilt(observed, value)
}

fn rebuilt(observed: &ToolObject, value: serde_json::Value) -> Option<Arc<ToolObject>> {
    let raw = String::from_utf8(canonical(&value).ok()?).ok()?;
    Some(Arc::new(ToolObject { name: observed.name.clone(), raw: raw.into(), value: Arc::new(value) }))
}

#[cfg(test)]
mod tests;
