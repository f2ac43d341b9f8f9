//! McpServer.

use std::collections::{BTreeMap, BTreeSet};

use cotter_core::{
    decision::Approval,
    name::{Namespace, ObjectName, ServerRef, ToolName},
    pointer::Pointer,
    snapshot::{Enforcement, ToolRule},
};
use cotter_crds::{
    McpServer,
    server::{self as crd, Allow, Pinning, REVISIONS, Tool},
};

use super::{Place, access, limits, pod, upstream};
use crate::{problem::Problems, server::Server};

/// Namespace of what has none: the one that `kubectl` uses.
const DEFAULT_NAMESPACE: &str = "default";

/// The longest name: it becomes the name of a Service and, with an ending, of other objects.
const MAX_NAME: usize = 52;

/// Parses a server.
///
/// # Errors
/// Every problem, each with its field.
pub fn server(object: &McpServer, place: Place) -> Result<Server, Problems> {
    let mut problems = Problems::default();
    let (spec, meta) = (&object.spec, &object.metadata);
    let id = identity(object, &mut problems);
    let audience = problems.parse("spec.audience", &spec.audience);
    let upstream = upstream::validate(&spec.upstream, place, &mut problems);
    let access = access::validate(&spec.access, &mut problems);
    let tools = tools(&spec.tools, &mut problems);
    let limits = limits::limits(&spec.limits, &mut problems);
    let verify = limits::verify(&spec.verify, &mut problems);
    let stale = limits::stale(&spec.stale, &mut problems);
    let revisions = revisions(&spec.protocol.revisions, &mut problems);
    let pod_template = spec.pod_template.clone().unwrap_or_default();
    let (affinity, spread) = pod::validate(&pod_template, &mut problems);
    let made = || {
        Some(Server {
            id: id?,
            uid: meta.uid.clone(),
            generation: meta.generation.unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
            audience: audience?,
            upstream: upstream?,
            revisions,
            access: access?,
            tools,
            pinning: match spec.pinning {
                Pinning::Enforce => Enforcement::Quarantine,
                Pinning::Audit => Enforcement::Audit,
            },
            policies: spec.policies.iter().map(|source| source.config_map_ref.name.clone()).collect(),
            limits: limits?,
            verify: verify?,
            stale: stale?,
            replicas: spec.replicas,
            sidecar: spec.sidecar.clone().unwrap_or_default(),
            pod_template,
            affinity,
            spread,
            unsupported: unsupported(&spec.protocol.allow),
        })
    };
    let value = made();
    problems.finish(value)
}

fn identity(object: &McpServer, problems: &mut Problems) -> Option<ServerRef> {
    let meta = &object.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let namespace: Option<Namespace> = problems.parse("metadata.namespace", namespace);
    let name = meta.name.as_deref().unwrap_or_default();
    if name.len() > MAX_NAME || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        problems.add("metadata.name", format_args!("{:?} becomes the name of a Service: write at most {MAX_NAME} lower-case letters, digits and '-', starting with a letter", bounded(name)));
        return None;
    }
    let name: Option<ObjectName> = problems.parse("metadata.name", name);
    Some(ServerRef { namespace: namespace?, name: name? })
}

/// As much of a refused text as a message repeats.
pub(super) fn bounded(text: &str) -> String {
    text.chars().take(64).collect()
}

fn revisions(listed: &[String], problems: &mut Problems) -> BTreeSet<String> {
    let path = "spec.protocol.revisions";
    if listed.is_empty() {
        problems.add(path, "is empty, so that nobody could speak: name at least one revision");
    }
    for (at, revision) in listed.iter().enumerate().filter(|(_, revision)| !REVISIONS.contains(&revision.as_str())) {
        problems.add(
            format!("{path}[{at}]"),
            format_args!("{:?} is not known: write one of {}", bounded(revision), REVISIONS.join(", ")),
        );
    }
    listed.iter().cloned().collect()
}

fn tools(declared: &[Tool], problems: &mut Problems) -> BTreeMap<ToolName, ToolRule> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rules = BTreeMap::new();
    for (at, tool) in declared.iter().enumerate() {
        let path = format!("spec.tools[{at}]");
        if let Some(earlier) = first.insert(&tool.name, at) {
            problems.add(
                format!("{path}.name"),
                format_args!("{:?} is declared twice, also as spec.tools[{earlier}]: keep one", bounded(&tool.name)),
            );
        }
        let name = problems.parse(format!("{path}.name"), &tool.name);
        let rule = rule(&path, tool, problems);
        if let (Some(name), Some(rule)) = (name, rule) {
            rules.insert(name, rule);
        }
    }
    rules
}

fn rule(path: &str, tool: &Tool, problems: &mut Problems) -> Option<ToolRule> {
    let scope = problems.parse(format!("{path}.scope"), &tool.scope);
    if let Some(pointer) = &tool.idempotency_key {
        let _: Option<Pointer> = problems.parse(format!("{path}.idempotencyKey"), pointer);
    }
    let limits = tool.limits.clone().unwrap_or_default();
    let path = format!("{path}.limits");
    let timeout = limits.timeout.as_deref();
    let timeout_ms =
        timeout.and_then(|text| limits::duration(format!("{path}.timeout"), text, limits::TIMEOUT, problems));
    let result = limits.result_bytes.as_ref();
    let result_bytes =
        result.and_then(|size| limits::size(format!("{path}.resultBytes"), size, limits::RESULT, problems));
    let rate = limits.rate.as_deref().and_then(|text| limits::rate(format!("{path}.rate"), text, None, problems));
    Some(ToolRule {
        scope: scope?,
        effect: tool.effect,
        idempotency_key: tool.idempotency_key.clone(),
        approval: match tool.approval {
            crd::Approval::Never => Approval::Never,
            crd::Approval::Always => Approval::Always,
        },
        timeout_ms,
        result_bytes,
        rate,
    })
}

/// What this version refuses although it is declared as allowed: it never passes, which is safe, and is said aloud.
fn unsupported(allow: &Allow) -> Vec<String> {
    let Allow { resources, prompts, sampling, elicitation, roots, extensions } = allow;
    let flags = [
        ("resources", *resources),
        ("prompts", *prompts),
        ("sampling", *sampling),
        ("elicitation", *elicitation),
        ("roots", *roots),
        ("extensions", !extensions.is_empty()),
    ];
    flags.into_iter().filter(|(_, on)| *on).map(|(name, _)| format!("protocol.allow.{name}")).collect()
}
