//! `cotter pin`: a ToolPin of what a live server offers, for a person to review.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use cotter_core::{
    fingerprint::{Fingerprint, Ignore, Scheme, fingerprint},
    scan::{self, visible},
    tool::{ListError, ListKind, ToolObject},
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{
    cluster::Target,
    failure::{Doing as _, Failure, Outcome},
    running::Running,
    tools_file, yaml,
};

/// Above this, definitions are left out: client-side `kubectl apply` keeps a second copy, and stops at 256 KiB.
const MAX_DEFINITIONS: usize = 200 * 1024;

/// Print a ToolPin of what a live server offers now, for review
#[derive(Debug, Args)]
#[command(
    after_help = "The output is sorted and the same for the same server. Review it, then apply it:\n  cotter pin support > pin.yaml && kubectl apply -f pin.yaml"
)]
pub(crate) struct Options {
    /// The McpServer's name
    server: String,
    /// The folder of manifests whose `up` runs; the only running one by default
    #[arg(short, long, value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    cluster: Target,
    /// Pin the tools too that the McpServer does not declare
    #[arg(long)]
    all: bool,
}

/// A server and what it offers, wherever it runs.
struct Offered {
    name: String,
    namespace: Option<String>,
    declared: Vec<String>,
    tools: BTreeMap<String, ToolObject>,
}

/// Runs the command.
pub(crate) async fn run(options: &Options) -> Outcome {
    let offered = match options.cluster.is_meant() {
        true => in_cluster(options).await?,
        false => of_running(options).await?,
    };
    let wanted = offered.tools.iter().filter(|(name, _)| options.all || offered.declared.contains(name));
    let tools: Vec<&ToolObject> = wanted.map(|(_, tool)| tool).collect();
    print!("{}", manifest(&offered, &tools)?);
    Ok(())
}

async fn in_cluster(options: &Options) -> Result<Offered, Failure> {
    let seen = options.cluster.read(&options.server).await?;
    let (name, namespace) = (options.server.clone(), Some(seen.namespace));
    Ok(Offered { name, namespace, declared: seen.declared, tools: seen.observed })
}

async fn of_running(options: &Options) -> Result<Offered, Failure> {
    let running = Running::find(options.folder.as_deref()).await?;
    let server = running.server(&options.server).await?;
    let observed: Option<BTreeMap<String, Box<RawValue>>> =
        running.get(&format!("/v1/observed/{}", server.name)).await?;
    let observed =
        observed.ok_or_else(|| Failure::cannot(format!("{} was not read yet: cotter get mcps", server.name)))?;
    let parse = |(name, raw): (String, Box<RawValue>)| Ok((name, ToolObject::parse(raw.get(), ListKind::Tools)?));
    let tools: Result<BTreeMap<String, ToolObject>, ListError> = observed.into_iter().map(parse).collect();
    let tools = tools.doing("read what the server offers")?;
    let declared = server.tools.into_iter().map(|tool| tool.name).collect();
    Ok(Offered { name: server.name, namespace: server.namespace, declared, tools })
}

fn manifest(server: &Offered, tools: &[&ToolObject]) -> Result<String, Failure> {
    let size: usize = tools.iter().map(|tool| tool.raw.len()).sum();
    let with_definitions = size <= MAX_DEFINITIONS;
    let mut comments =
        vec![format!("# What {} offers. Review it, then apply it: kubectl apply -f pin.yaml", server.name)];
    if !with_definitions {
        let kib = size / 1024;
        comments.push(format!("# Definitions are left out: {kib} KiB is more than client-side kubectl apply takes. A change will be seen, not classed."));
    }
    let mut entries = Vec::new();
    for tool in tools {
        match fingerprint(&tool.value, Scheme::ToolV1, &Ignore::NONE) {
            Ok(fingerprint) => {
                let definition = with_definitions.then_some(&*tool.value);
                entries.push(Entry { name: &tool.name, fingerprint, definition });
            }
            Err(error) => comments.push(format!("# {} is left out: {error}", tools_file::shown(&tool.name))),
        }
        comments.extend(findings(tool));
    }
    let name = server.name.as_str();
    let pin = Pin {
        api_version: cotter_crds::API_VERSION,
        kind: "ToolPin",
        metadata: Metadata { name, namespace: server.namespace.as_deref() },
        spec: Spec { server_ref: NameRef { name }, scheme: Scheme::ToolV1, tools: entries },
    };
    Ok(format!("{}\n{}", comments.join("\n"), yaml::text(&pin)?))
}

/// The manifest in the order in which a person reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pin<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    server_ref: NameRef<'a>,
    scheme: Scheme,
    tools: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct NameRef<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    fingerprint: Fingerprint,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<&'a Value>,
}

/// What a reviewer has to look at twice.
fn findings(tool: &ToolObject) -> Vec<String> {
    let name = tools_file::shown(&tool.name);
    let told = scan::scan(&tool.value).into_iter();
    told.map(|found| {
        format!("# {name} {}: found {:?} {}", visible(&found.pointer), found.finding, visible(&found.detail))
    })
    .collect()
}
