//! `cotter why`: a decision explained from the live snapshot, layer by layer.

mod budget;
mod change;

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use cotter_core::{
    catalogue::{Catalogue, ToolState},
    decision::{Approval, Decision, Era, Kind},
    drift::Class,
    name::{Issuer, ToolName},
    principal::Principal,
    reason::DenyReason,
    snapshot::Snapshot,
};
use cotter_policies::{Ask, Explanation, Layer, PinFacts, Policy, Verdict, guard::Guard};
use cotter_proxy::respond::Refusal;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    CHECK_WORD,
    caller::Caller,
    cluster::{InForce, Target},
    failure::{Doing as _, Failure, Outcome},
    issuer::DevIssuer,
    running::Running,
};

/// Explain from the live snapshot why a caller may or may not use a tool
#[derive(Debug, Args)]
#[command(
    after_help = "For example: cotter why -f DIR support case_tag --as mia --tenant tenant-7 --scope case:write\n             kubectl cotter why support case_tag --as mia --tenant tenant-7 --scope case:write\n\nNeither the arguments of the call nor what the server says of the tool (annotations) are part of it; nor are rate limits, calls per minute, open sessions and staleness, which change from moment to moment.\nExit status: 0 it may, 1 it may not, 2 it could not be told."
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
    layer: String,
    refuses: Option<DenyReason>,
    text: String,
    /// What would have to change for it not to refuse, each by itself.
    changes: Vec<String>,
}

/// What is known of a server: what is enforced, and how the tool in question stands.
struct Known {
    snapshot: Snapshot,
    issuer: Issuer,
    tool: Option<Standing>,
    /// What was charged to the budgets that the snapshot names, by the delegation whose budget it is.
    charged: Charged,
    /// Why what the manifests say now is not in force, where it is not.
    held_back: Option<String>,
}

/// Calls that were charged to budgets, by the delegation whose budget it is.
pub(crate) type Charged = BTreeMap<String, u64>;

/// How a declared tool compares with what was approved.
#[derive(Debug, Clone, Copy)]
struct Standing {
    callable: bool,
    state: Option<ToolState>,
    class: Option<Class>,
}

/// The question and what it is asked about.
struct Question<'a> {
    server: &'a str,
    tool: &'a ToolName,
    snapshot: &'a Snapshot,
    principal: &'a Principal,
    now: Timestamp,
}

/// Runs the command.
pub(crate) async fn run(options: &Options) -> Outcome {
    let known = match options.cluster.is_meant() {
        true => in_cluster(options).await?,
        false => of_running(options).await?,
    };
    if let Some(why) = &known.held_back {
        println!("{:<12}{:<20} what the manifests say now is not in force: {why}", "revision", "previous");
    }
    let (now, access) = (Timestamp::now(), &known.snapshot.access);
    let principal = match options.caller.principal(&known.issuer, access, now)? {
        Ok(principal) => principal,
        Err(refusal) => return say(options, &[unread(&refusal)]),
    };
    let (server, tool, snapshot) = (options.server.as_str(), &options.tool, &known.snapshot);
    let question = Question { server, tool, snapshot, principal: &principal, now };
    let mut told = vec![token(options, snapshot), tenant(&question), pin(&question, known.tool)];
    if let Some((layers, verdict)) = policy(&question, known.tool)? {
        told.extend(layers);
        told.extend(budget::layer(snapshot, &verdict, &known.charged));
    }
    say(options, &told)
}

async fn of_running(options: &Options) -> Result<Known, Failure> {
    let running = Running::find(options.folder.as_deref()).await?;
    let server = running.server(&options.server).await?;
    let snapshot: Option<Snapshot> = running.get(&format!("/v1/snapshots/{}", options.server)).await?;
    let none = || {
        let why = server.held_back.as_deref().unwrap_or("cotter get mcps -o yaml");
        Failure::cannot(format!("no snapshot of {} is in force: {why}", options.server))
    };
    let snapshot = snapshot.ok_or_else(none)?;
    let charged = running.get(&format!("/v1/charged/{}", options.server)).await?.unwrap_or_default();
    let tool = server.tools.iter().find(|tool| tool.name == options.tool.as_str());
    let issuer = DevIssuer::open(&running.state)?.issuer().clone();
    let standing = tool.map(|tool| Standing { callable: tool.callable, state: tool.state, class: tool.class });
    Ok(Known { snapshot, issuer, tool: standing, charged, held_back: server.held_back })
}

/// In a cluster there are several issuers: the first declared one mints the token in question, unless the flags name another.
async fn in_cluster(options: &Options) -> Result<Known, Failure> {
    let InForce { snapshot, catalogue, charged, held_back } = options.cluster.in_force(&options.server).await?;
    let declared = snapshot.access.issuers.first().map(|issuer| issuer.issuer.clone());
    let issuer = options.issuer.clone().or(declared);
    let issuer = issuer.ok_or_else(|| Failure::cannot(format!("{} has no issuer: say --issuer", options.server)))?;
    let name = options.tool.as_str();
    let state = |catalogue: &Catalogue| catalogue.tools().into_iter().find(|tool| tool.name == name);
    let seen = catalogue.as_ref().and_then(state);
    let seen = seen.map(|tool| Standing { callable: tool.callable, state: Some(tool.state), class: tool.class });
    let unread = Standing { callable: false, state: None, class: None };
    let tool = snapshot.tools.contains_key(name).then(|| seen.unwrap_or(unread));
    Ok(Known { snapshot, issuer, tool, charged, held_back })
}

fn token(options: &Options, snapshot: &Snapshot) -> Told {
    let audience = &snapshot.access.audience;
    let good = options.caller.is_for(&snapshot.access);
    let text = format!("tokens have to be minted for {audience}");
    let changes = vec![format!("the token has to be minted for {audience}: leave --audience out")];
    Told { layer: "token".to_owned(), refuses: (!good).then_some(DenyReason::TokenAudience), text, changes }
}

/// A token that says something that no sidecar of the server takes.
fn unread(refusal: &Refusal) -> Told {
    let reasons: Vec<String> = refusal.reasons.iter().map(ToString::to_string).collect();
    let (layer, text) = ("token".to_owned(), reasons.join("; "));
    Told { layer, refuses: Some(refusal.reason), text, changes: Vec::new() }
}

fn tenant(question: &Question<'_>) -> Told {
    let tenants = &question.snapshot.access.tenants;
    let tenant = question.principal.tenant.as_ref().map(|tenant| tenant.as_str());
    let admitted = tenants.contains("*") || tenant.is_some_and(|tenant| tenants.contains(tenant));
    let all: Vec<&str> = tenants.iter().map(String::as_str).collect();
    let text = format!("{}; admitted: {}", tenant.unwrap_or("no tenant"), all.join(", "));
    let changes = change::tenant(question);
    let refuses = (!admitted).then_some(DenyReason::TenantNotAdmitted);
    Told { layer: "tenant".to_owned(), refuses, text, changes }
}

fn pin(question: &Question<'_>, known: Option<Standing>) -> Told {
    let refused = |reason, text: &str| (Some(reason), text.to_owned());
    let (refuses, text) = match known {
        None => refused(DenyReason::Unlisted, "spec.tools does not declare it"),
        Some(Standing { state: None, .. }) => {
            refused(DenyReason::NotReady, "the server was not read yet; what follows takes the tool as approved")
        }
        Some(Standing { callable: true, state: Some(state), class }) => {
            (None, format!("{}: may be listed and called", stands(state, class)))
        }
        Some(Standing { callable: false, state: Some(state), class }) => match state {
            ToolState::Removed | ToolState::Missing => {
                (Some(DenyReason::NotOffered), format!("{}: the server does not offer it", stands(state, class)))
            }
            ToolState::Ambiguous => (Some(DenyReason::Ambiguous), stands(state, class)),
            _ => (Some(DenyReason::Quarantined), format!("{}: quarantined", stands(state, class))),
        },
    };
    let changes = refuses.and_then(|reason| change::pin(question, reason)).into_iter().collect();
    Told { layer: "pin".to_owned(), refuses, text, changes }
}

fn stands(state: ToolState, class: Option<Class>) -> String {
    let class = class.map_or(String::new(), |class| format!(" ({})", class.as_str()));
    format!("{}{class}", state.as_str())
}

/// The pin as a rule sees it; the approved one where nobody has looked yet.
fn facts(known: Option<Standing>) -> PinFacts {
    match known.and_then(|known| Some((known.state?, known.class))) {
        Some((state, class)) => PinFacts { state: state.as_str(), class: class.map(Class::as_str) },
        None => PinFacts::MATCHED,
    }
}

/// The layers of the policy and what it decides; nothing where it does not know the tool.
fn policy(question: &Question<'_>, known: Option<Standing>) -> Result<Option<(Vec<Told>, Verdict)>, Failure> {
    let Question { snapshot, principal, tool, now, .. } = *question;
    let policy = || Policy::prepare(snapshot).map_err(|error| Failure::cannot(error.to_string()));
    let guard = Guard::new(CHECK_WORD).doing("find this program")?;
    let checked = guard.check(&snapshot.policies).map_err(|error| Failure::cannot(error.to_string()))?;
    checked
        .map_err(|findings| Failure::cannot(format!("the modules of the snapshot are refused here:\n{findings}")))?;
    let policy = policy()?;
    let (era, method, kind, pin) = (Era::Modern, "tools/call", Kind::Call, facts(known));
    let ask = Ask { principal, authority: None, era, method, kind, tool, pin, annotations: None, arguments: None, now };
    let input = policy.input(&ask).map_err(|error| Failure::cannot(error.to_string()))?;
    let Some(input) = input else { return Ok(None) };
    let evaluation =
        guard.eval(&snapshot.policies, &input, true).map_err(|error| Failure::cannot(error.to_string()))?;
    let explanation = evaluation.explanation.unwrap_or_default();
    let layers = explanation.layers.iter().filter(|layer| layer.name != "tenants");
    let mut told: Vec<Told> = layers.map(|layer| tell(question, layer, &explanation)).collect();
    let verdict = policy.decide(&ask);
    told.push(decision(&verdict.decision));
    Ok(Some((told, verdict)))
}

fn tell(question: &Question<'_>, layer: &Layer, explanation: &Explanation) -> Told {
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
    let changes = if refuses.is_some() { change::policy(question, layer, explanation) } else { Vec::new() };
    Told { layer: layer.name.clone(), refuses, text: text.join("; "), changes }
}

/// The whole, as the sidecar decides it.
fn decision(decision: &Decision) -> Told {
    let reasons: Vec<String> = decision.reasons.iter().map(ToString::to_string).collect();
    let waits = decision.obligations.approval == Approval::Always;
    let (refuses, text) = match (decision.allow, waits) {
        (true, false) => (None, "allowed".to_owned()),
        (true, true) => (Some(DenyReason::ApprovalRequired), "allowed once a person agrees".to_owned()),
        (false, _) => (Some(decision.first_reason().unwrap_or(DenyReason::PolicyUndefined)), reasons.join("; ")),
    };
    Told { layer: "decision".to_owned(), refuses, text, changes: Vec::new() }
}

fn say(options: &Options, told: &[Told]) -> Outcome {
    for layer in told {
        let mark = layer.refuses.map_or_else(|| "ok".to_owned(), |reason| reason.to_string());
        println!("{:<12}{mark:<20} {}", layer.layer, layer.text);
    }
    let Some(first) = told.iter().find_map(|layer| layer.refuses) else {
        println!("{} may be called on {}", options.tool, options.server);
        println!(
            "Rate limits, calls per minute and open sessions change from moment to moment and are not part of it."
        );
        return Ok(());
    };
    println!("{} may not be called: {}", options.tool, first.cause().trim());
    let refusing = told.iter().filter(|layer| layer.refuses.is_some());
    let changes: Vec<&String> = refusing.flat_map(|layer| &layer.changes).collect();
    if changes.is_empty() {
        println!("What would have to change: {}", first.remedy());
    } else {
        println!("What would have to change:");
        changes.iter().for_each(|change| println!("  - {change}"));
    }
    Err(Failure::no(""))
}
