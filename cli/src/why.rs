//! `cotter why`: a decision explained from the live snapshot, layer by layer.

use std::path::PathBuf;

use clap::Args;
use cotter_core::{
    catalogue::{Catalogue, ToolState},
    decision::{Decision, Era, Kind},
    name::{Issuer, ToolName},
    principal::Principal,
    reason::DenyReason,
    snapshot::Snapshot,
};
use cotter_policies::{Ask, Layer, PinFacts, Policy, Sandbox};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    caller::Caller,
    cluster::Target,
    failure::{Failure, Outcome},
    issuer::DevIssuer,
    running::Running,
};

/// Explain from the live snapshot why a caller may or may not use a tool
#[derive(Debug, Args)]
#[command(
    after_help = "Neither the arguments of the call nor what the server says of the tool (annotations) are part of it.\nExit status: 0 it may, 1 it may not, 2 it could not be told."
)]
pub(crate) struct Options {
    /// The McpServer's name
    server: String,
    /// The tool's name
    tool: ToolName,
    #[command(flatten)]
    caller: Caller,
    /// The folder of manifests whose `up` runs; the only running one by default
    #[arg(short, long, value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    cluster: Target,
    /// In a cluster: who minted the token; the first issuer that the McpServer declares by default
    #[arg(long)]
    issuer: Option<Issuer>,
}

/// One layer, as it is told.
struct Told {
    layer: &'static str,
    refuses: Option<DenyReason>,
    text: String,
}

/// What is known of a server: what is enforced, and how its tools stand.
struct Known {
    snapshot: Snapshot,
    issuer: Issuer,
    tool: Option<(bool, Option<ToolState>)>,
}

/// Runs the command.
pub(crate) async fn run(options: &Options) -> Outcome {
    let known = match options.cluster.is_meant() {
        true => in_cluster(options).await?,
        false => of_running(options).await?,
    };
    let now = Timestamp::now();
    let principal = options.caller.principal(&known.issuer, &known.snapshot.access, now)?;
    let mut told = vec![token(options, &known.snapshot), tenant(&known.snapshot, &principal), pin(known.tool)];
    told.extend(policy(&known.snapshot, &principal, &options.tool, now)?);
    say(options, &told)
}

async fn of_running(options: &Options) -> Result<Known, Failure> {
    let running = Running::find(options.folder.as_deref()).await?;
    let server = running.server(&options.server).await?;
    let snapshot: Option<Snapshot> = running.get(&format!("/v1/snapshots/{}", options.server)).await?;
    let snapshot = snapshot
        .ok_or_else(|| Failure::cannot(format!("{} is not Accepted: cotter get mcps -o yaml", options.server)))?;
    let tool = server.tools.iter().find(|tool| tool.name == options.tool.as_str());
    let issuer = DevIssuer::open(&running.state)?.issuer().clone();
    Ok(Known { snapshot, issuer, tool: tool.map(|tool| (tool.callable, tool.state)) })
}

/// In a cluster there are several issuers: the first declared one mints the token in question, unless the flags name another.
async fn in_cluster(options: &Options) -> Result<Known, Failure> {
    let (snapshot, catalogue) = options.cluster.snapshot(&options.server).await?;
    let declared = snapshot.access.issuers.first().map(|issuer| issuer.issuer.clone());
    let issuer = options.issuer.clone().or(declared);
    let issuer = issuer.ok_or_else(|| Failure::cannot(format!("{} has no issuer: say --issuer", options.server)))?;
    let name = options.tool.as_str();
    let state = |catalogue: &Catalogue| catalogue.tools().into_iter().find(|tool| tool.name == name);
    let tool = catalogue.as_ref().and_then(state).map(|tool| (tool.callable, Some(tool.state)));
    let tool = tool.or_else(|| snapshot.tools.contains_key(name).then_some((false, None)));
    Ok(Known { snapshot, issuer, tool })
}

fn token(options: &Options, snapshot: &Snapshot) -> Told {
    let good = options.caller.is_for(snapshot.access.audience.as_str());
    let text = format!("tokens have to be minted for {}", snapshot.access.audience);
    Told { layer: "token", refuses: (!good).then_some(DenyReason::TokenAudience), text }
}

fn tenant(snapshot: &Snapshot, principal: &Principal) -> Told {
    let tenants = &snapshot.access.tenants;
    let admitted =
        tenants.contains("*") || principal.tenant.as_ref().is_some_and(|tenant| tenants.contains(tenant.as_str()));
    let named = principal.tenant.as_ref().map_or("no tenant", |tenant| tenant.as_str());
    let all: Vec<&str> = tenants.iter().map(String::as_str).collect();
    let text = format!("{named}; admitted: {}", all.join(", "));
    Told { layer: "tenant", refuses: (!admitted).then_some(DenyReason::TenantNotAdmitted), text }
}

fn pin(known: Option<(bool, Option<ToolState>)>) -> Told {
    let (refuses, text) = match known {
        None => (Some(DenyReason::Unlisted), "spec.tools does not declare it".to_owned()),
        Some(stands) => match stands {
            (true, Some(state)) => (None, format!("{state:?}: may be listed and called")),
            (false, Some(ToolState::Removed | ToolState::Missing)) => {
                (Some(DenyReason::NotOffered), "the server does not offer it".to_owned())
            }
            (false, Some(ToolState::Ambiguous)) => (Some(DenyReason::Ambiguous), "Ambiguous".to_owned()),
            (false, Some(state)) => (Some(DenyReason::Quarantined), format!("{state:?}: quarantined")),
            (_, None) => (Some(DenyReason::NotReady), "the server was not read yet".to_owned()),
        },
    };
    Told { layer: "pin", refuses, text }
}

fn policy(snapshot: &Snapshot, principal: &Principal, tool: &ToolName, now: Timestamp) -> Result<Vec<Told>, Failure> {
    let policy = Policy::prepare(snapshot).map_err(|error| Failure::cannot(error.to_string()))?;
    let (era, method, kind, pin) = (Era::Modern, "tools/call", Kind::Call, PinFacts::MATCHED);
    let ask = Ask { principal, authority: None, era, method, kind, tool, pin, annotations: None, arguments: None, now };
    let input = policy.input(&ask).map_err(|error| Failure::cannot(error.to_string()))?;
    let Some(input) = input else { return Ok(Vec::new()) };
    let sandbox = Sandbox::new(&snapshot.policies).map_err(|error| Failure::cannot(error.to_string()))?;
    let layers = sandbox.explain(&input).map_err(|error| Failure::cannot(error.to_string()))?;
    let mut told: Vec<Told> = layers.iter().filter(|layer| layer.name != "tenants").map(tell).collect();
    told.push(decision(&policy.decide(&ask).decision));
    Ok(told)
}

fn tell(layer: &Layer) -> Told {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let refusals = list(&layer.refuses);
    let code = |refusal: &Value| refusal.get("code").and_then(Value::as_str).and_then(DenyReason::from_name);
    let words = |value: &Value| value.get("detail").unwrap_or(value).to_string();
    let mut text: Vec<String> = refusals.iter().map(words).collect();
    text.extend(list(&layer.asks).iter().map(|asks| format!("asks for a person: {asks}")));
    if text.is_empty() && !layer.found.is_null() {
        text.push(layer.found.to_string());
    }
    let refuses = refusals.first().map(|refusal| code(refusal).unwrap_or(DenyReason::PolicyDenied));
    Told { layer: layer.name, refuses, text: text.join("; ") }
}

/// The whole, as the sidecar decides it.
fn decision(decision: &Decision) -> Told {
    let reasons: Vec<String> = decision.reasons.iter().map(ToString::to_string).collect();
    let text = if decision.allow { "allowed".to_owned() } else { reasons.join("; ") };
    let refuses = (!decision.allow).then(|| decision.first_reason().unwrap_or(DenyReason::PolicyUndefined));
    Told { layer: "decision", refuses, text }
}

fn say(options: &Options, told: &[Told]) -> Outcome {
    for layer in told {
        let mark = layer.refuses.map_or_else(|| "ok".to_owned(), |reason| reason.to_string());
        println!("{:<12}{mark:<20} {}", layer.layer, layer.text);
    }
    let Some(first) = told.iter().find_map(|layer| layer.refuses) else {
        println!("{} may be called on {}", options.tool, options.server);
        return Ok(());
    };
    println!("{} may not be called: {}", options.tool, first.cause().trim());
    println!("What would have to change: {}", first.remedy());
    Err(Failure::no(""))
}
