//! `cotter policy replay`: what would have been decided otherwise under the manifests and policies of a folder.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader},
    path::PathBuf,
};

use clap::Args;
use cotter_core::{
    audit::Record,
    decision::{Era, Kind},
    name::{Namespace, ServerRef, ToolName},
    reason::DenyReason,
    snapshot::Sealed,
};
use cotter_policies::{Ask, PinFacts, Policy};

use crate::{
    failure::{Doing as _, Failure, Outcome},
    offline,
    tools_file::shown,
};

/// Decide recorded calls again, under changed manifests and policies
#[derive(Debug, Args)]
#[command(
    after_help = "A record has no arguments: and no definition of the tool: a call whose decision would read either is counted apart, as not decided again.\nExit status: 0 nothing differs, 1 something does, 2 it could not be replayed."
)]
pub(crate) struct Options {
    /// The audit: lines of JSON, as the sidecar and `cotter up` write them
    audit: PathBuf,
    /// The folder of manifests, with the ConfigMaps of their policies
    #[arg(long, value_name = "DIR")]
    against: PathBuf,
    /// The namespace of manifests that name none
    #[arg(short, long, default_value = "default")]
    namespace: Namespace,
}

#[derive(Debug, Default)]
struct Count {
    same: u64,
    differ: u64,
    undecided: u64,
    others: u64,
    strangers: u64,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let snapshots = offline::snapshots(&options.against, options.namespace.as_str())?;
    let policies = policies(&snapshots)?;
    let file = File::open(&options.audit).doing(format!("open {}", options.audit.display()))?;
    let mut count = Count::default();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let place = || format!("{}:{}", options.audit.display(), index + 1);
        let line = line.doing(format!("read {}", place()))?;
        if line.trim().is_empty() {
            continue;
        }
        let record: Record = serde_json::from_str(&line).doing(format!("read the record at {}", place()))?;
        count.add(&record, &policies);
    }
    if count.same + count.differ + count.undecided == 0 && count.strangers > 0 {
        let known: Vec<String> = policies.keys().map(ToString::to_string).collect();
        let known = known.join(", ");
        let message =
            format!("no record is of a server of this folder ({known}): say --namespace where manifests name none");
        return Err(Failure::cannot(message));
    }
    println!(
        "{} the same, {} differ, {} not decided again, {} of other kinds",
        count.same, count.differ, count.undecided, count.others
    );
    if count.differ == 0 { Ok(()) } else { Err(Failure::no("")) }
}

fn policies(snapshots: &[Sealed]) -> Result<BTreeMap<ServerRef, Policy>, Failure> {
    let prepare = |sealed: &Sealed| {
        let snapshot = sealed.snapshot();
        let policy =
            Policy::prepare(snapshot).map_err(|error| Failure::cannot(format!("{}: {error}", snapshot.server)))?;
        Ok((snapshot.server.clone(), policy))
    };
    snapshots.iter().map(prepare).collect()
}

impl Count {
    fn add(&mut self, record: &Record, policies: &BTreeMap<ServerRef, Policy>) {
        if !policies.contains_key(&record.server) {
            self.strangers += 1;
        }
        let tool = record.tool.as_deref().and_then(|tool| tool.parse::<ToolName>().ok());
        let is_call = record.method.as_deref() == Some("tools/call");
        let (Some(principal), Some(tool), Some(policy), true) =
            (&record.principal, tool, policies.get(&record.server), is_call)
        else {
            self.others += 1;
            return;
        };
        if !by_policy(record) {
            self.others += 1;
            return;
        }
        if policy.reads_arguments() || policy.reads_annotations() {
            self.undecided += 1;
            return;
        }
        let verdict = policy.decide(&Ask {
            principal,
            authority: None,
            era: Era::Modern,
            method: "tools/call",
            kind: Kind::Call,
            tool: &tool,
            pin: PinFacts::MATCHED,
            annotations: None,
            arguments: None,
            now: record.time,
        });
        if verdict.is_allowed() == record.allow {
            self.same += 1;
            return;
        }
        self.differ += 1;
        let say = |allow: bool| if allow { "allowed" } else { "refused" };
        let (then, now) = (say(record.allow), say(verdict.is_allowed()));
        let reasons = if verdict.is_allowed() { &record.reasons } else { &verdict.decision.reasons };
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        let subject = shown(principal.subject.as_str());
        println!(
            "{}  {}  {subject} {tool}: {then} then, {now} now ({})",
            record.time,
            record.server,
            reasons.join(", ")
        );
    }
}

/// Whether the policy decided: what the token, the pin, a limit or the server refused it never saw.
fn by_policy(record: &Record) -> bool {
    use DenyReason as D;
    let seen = |code: DenyReason| {
        let tokens = [
            D::MissingScope,
            D::InsufficientScope,
            D::NoDelegation,
            D::ToolNotDelegated,
            D::EffectNotDelegated,
            D::TenantNotDelegated,
        ];
        let rules = [
            D::ScopeNotDelegated,
            D::PolicyDenied,
            D::PolicyUndefined,
            D::PolicyError,
            D::PolicyTimeout,
            D::ArgumentsNotExact,
            D::ApprovalRequired,
            D::Unlisted,
        ];
        tokens.contains(&code) || rules.contains(&code)
    };
    record.reasons.iter().all(|reason| seen(reason.code))
}
