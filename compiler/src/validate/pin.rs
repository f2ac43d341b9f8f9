//! ToolPin. What cannot be used of a pin matches nothing: it is never dropped, because what a pin does not name is only
//! `Added`, and a pin may let that pass.

use std::collections::BTreeMap;

use cotter_core::{
    drift::Class,
    fingerprint::{self, Digest, Fingerprint, Ignore, Scheme},
    name::ToolName,
    snapshot::{Enforcement, OnDrift, Pin, PinnedTool},
};
use cotter_crds::{
    ToolPin,
    pin::{self as crd, DriftAction, Pinned},
};
use serde_json::{Value, value::RawValue};

use super::server::bounded;
use crate::problem::{Kind, Problems};

/// A pin as sidecars are to enforce it, and what is wrong with it.
#[derive(Debug, Clone)]
pub struct PinCheck {
    /// What is enforced. Every entry with a problem is marked as one that matches nothing.
    pub pin: Pin,
    /// What is wrong.
    pub problems: Problems,
    /// What is declared and not done by this version.
    pub unsupported: Vec<&'static str>,
}

/// What is enforced where several pins contradict each other: nothing is approved, whatever they would let pass.
#[must_use]
pub fn conflict(names: &[&str]) -> Pin {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    Pin {
        name: sorted.join(","),
        scheme: Scheme::ToolV1,
        enforcement: Enforcement::Quarantine,
        on_drift: BTreeMap::new(),
        instructions: None,
        tools: BTreeMap::new(),
    }
}

/// Definitions as some sidecar sees them, by name.
pub type Definitions<'a> = BTreeMap<&'a str, &'a RawValue>;

/// Reads a pin. `observed` are the definitions that sidecars see: where one of them is what was approved, a definition
/// that is not can be told apart from it by field.
#[must_use]
pub fn pin(object: &ToolPin, observed: &Definitions<'_>) -> PinCheck {
    let spec = &object.spec;
    let scheme = match spec.scheme {
        crd::Scheme::ToolV1 => Scheme::ToolV1,
        crd::Scheme::NameDescriptionSchemaV0 => Scheme::NameDescriptionSchemaV0,
    };
    let pin = Pin {
        name: object.metadata.name.clone().unwrap_or_default(),
        scheme,
        enforcement: match spec.enforcement {
            crd::Enforcement::Quarantine => Enforcement::Quarantine,
            crd::Enforcement::Audit => Enforcement::Audit,
        },
        on_drift: on_drift(&spec.on_drift),
        instructions: None,
        tools: BTreeMap::new(),
    };
    let unsupported = unsupported(spec);
    let mut check = PinCheck { pin, problems: Problems::default(), unsupported };
    let instructions = spec.surface.as_ref().and_then(|surface| surface.instructions.as_deref());
    check.pin.instructions = instructions.and_then(|text| check.problems.parse("spec.surface.instructions", text));
    for (at, entry) in spec.tools.iter().enumerate() {
        check.add(&format!("spec.tools[{at}]"), entry, scheme, observed.get(entry.name.as_str()).copied());
    }
    check
}

impl PinCheck {
    fn add(&mut self, path: &str, entry: &Pinned, scheme: Scheme, observed: Option<&RawValue>) {
        // A name that no tool can be declared under cannot be asked for either, so that nothing is lost with the entry.
        let Some(name) = self.problems.parse::<ToolName>(format!("{path}.name"), &entry.name) else { return };
        let mut tool = self.entry(path, entry, scheme, observed).unwrap_or_else(|| impossible(scheme));
        if self.pin.tools.contains_key(&name) {
            self.problems.add(format!("{path}.name"), format_args!("{name} is pinned twice: keep one entry"));
            tool = impossible(scheme);
        }
        self.pin.tools.insert(name, tool);
    }

    fn entry(&mut self, path: &str, entry: &Pinned, scheme: Scheme, observed: Option<&RawValue>) -> Option<PinnedTool> {
        let fingerprint: Fingerprint = self.problems.parse(format!("{path}.fingerprint"), &entry.fingerprint)?;
        if fingerprint.scheme() != scheme {
            self.problems.add(format!("{path}.fingerprint"), format_args!("is of the scheme {}, and spec.scheme is {scheme}: pin again with `cotter pin`, or name that scheme", fingerprint.scheme()));
            return None;
        }
        let ignore = self.problems.take(format!("{path}.ignore"), Ignore::parse(&entry.ignore))?;
        let definition = entry.definition.clone().map(Value::Object);
        if let Some(definition) = &definition
            && let Err(why) = hashes_to(definition, fingerprint, &ignore, observed)
        {
            self.problems.add_as(
                Kind::DefinitionMismatch,
                format!("{path}.definition"),
                format_args!("{}: {why}", bounded(&entry.name)),
            );
            return Some(PinnedTool { fingerprint, definition: None, ignore, mismatched: true });
        }
        if definition
            .as_ref()
            .is_some_and(|definition| definition.get("name").and_then(Value::as_str) != Some(&entry.name))
        {
            self.problems.add(
                format!("{path}.definition"),
                format_args!("is of another tool: its name has to be {:?}", bounded(&entry.name)),
            );
            return None;
        }
        Some(PinnedTool { fingerprint, definition, ignore, mismatched: false })
    }
}

/// An entry that matches nothing, where what was written cannot even be kept. Its digest is not that of any tool, since
/// what is hashed has no scheme before it.
fn impossible(scheme: Scheme) -> PinnedTool {
    let digest = Digest::of(b"an entry that cannot be used matches nothing");
    let fingerprint = Fingerprint::new(scheme, digest);
    PinnedTool { fingerprint, definition: None, ignore: Ignore::NONE, mismatched: true }
}

fn hashes_to(
    definition: &Value,
    stated: Fingerprint,
    ignore: &Ignore,
    observed: Option<&RawValue>,
) -> Result<(), String> {
    let made = fingerprint::fingerprint(definition, stated.scheme(), ignore).map_err(|error| error.to_string())?;
    if made == stated {
        return Ok(());
    }
    let mut why = format!("it hashes to {made}, and the fingerprint is {stated}");
    if let Some(fields) = differs_in(definition, stated, ignore, observed) {
        why.push_str(&format!("; what the server offers has that fingerprint, and differs in {fields}"));
    }
    match boolean_names(definition, &mut String::new()) {
        Some(pointer) => why.push_str(&format!(
            "; {pointer} is the name that unquoted y, yes, on, n, no or off turns into when YAML is read: quote it"
        )),
        None => why.push_str("; pin again with `cotter pin`, or take the definition out"),
    }
    Err(why)
}

/// The members in which a definition differs from the observed one, where that one is what was approved.
fn differs_in(definition: &Value, stated: Fingerprint, ignore: &Ignore, observed: Option<&RawValue>) -> Option<String> {
    let observed: &Value = &serde_json::from_str(observed?.get()).ok()?;
    let matches = fingerprint::fingerprint(observed, stated.scheme(), ignore).is_ok_and(|made| made == stated);
    let drift = cotter_core::drift::classify(definition, observed, ignore).filter(|_| matches)?;
    let shown: Vec<String> = drift.fields.iter().take(4).map(|field| bounded(field)).collect();
    Some(shown.join(", "))
}

/// The pointer of the first member whose name reads `true` or `false`.
fn boolean_names(value: &Value, path: &mut String) -> Option<String> {
    let step = |path: &mut String, name: &str, child: &Value| {
        let length = path.len();
        path.push('/');
        path.push_str(name);
        let found = boolean_names(child, path);
        path.truncate(length);
        found
    };
    match value {
        Value::Object(members) => members.iter().find_map(|(name, child)| match name.as_str() {
            "true" | "false" => Some(format!("{path}/{name}")),
            _ => step(path, name, child),
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(at, child)| step(path, &at.to_string(), child)),
        _ => None,
    }
}

fn on_drift(spec: &crd::OnDrift) -> BTreeMap<Class, OnDrift> {
    let crd::OnDrift { cosmetic, additive, text, narrowing, authority_expanding, added, removed } = spec;
    let action = |action: DriftAction| match action {
        DriftAction::Report => OnDrift::Report,
        DriftAction::Quarantine => OnDrift::Quarantine,
    };
    BTreeMap::from([
        (Class::Cosmetic, action(*cosmetic)),
        (Class::Additive, action(*additive)),
        (Class::Text, action(*text)),
        (Class::Narrowing, action(*narrowing)),
        (Class::AuthorityExpanding, action(*authority_expanding)),
        (Class::Added, action(*added)),
        (Class::Removed, action(*removed)),
        // Two tools that cannot be told apart are never callable; no pin can say otherwise.
        (Class::Ambiguous, OnDrift::Quarantine),
    ])
}

fn unsupported(spec: &cotter_crds::ToolPinSpec) -> Vec<&'static str> {
    let parts = [
        ("surface (but for its instructions)", spec.surface.as_ref().is_some_and(beyond_instructions)),
        ("prompts", !spec.prompts.is_empty()),
        ("resourceTemplates", !spec.resource_templates.is_empty()),
        ("uiResources", !spec.ui_resources.is_empty()),
    ];
    parts.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

fn beyond_instructions(surface: &crd::Surface) -> bool {
    let crd::Surface { instructions: _, protocol, server_info, image_id } = surface;
    !protocol.is_empty() || server_info.is_some() || image_id.is_some()
}
