//! `cotter policy replay`: what would have been decided otherwise under the manifests and policies of a folder.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
};

use clap::Args;
use cotter_core::{
    audit::Record,
    decision::{Approval, Era, Kind, Reason},
    name::{Namespace, ServerRef, ToolName},
    reason::DenyReason,
    snapshot::Sealed,
};
use cotter_policies::{Ask, PinFacts, Policy, Verdict};

use crate::{
    failure::{Doing as _, Failure, Outcome},
    offline,
    tools_file::shown,
};

/// Decide recorded calls again, under changed manifests and policies
#[derive(Debug, Args)]
#[command(
    after_help = "A record has neither arguments nor the definition of the tool: a call whose decision would read either is counted apart, as not decided again.\nIt has neither the pin's state nor the line of the protocol: tools count as approved, and the protocol as the modern one.\nExit status: 0 nothing differs, 1 something does, 2 it could not be replayed."
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

/// Bytes of one record. Names and subjects are bounded, so a record is a few kilobytes at most.
const MAX_RECORD: u64 = 1 << 20;

#[derive(Debug, Default)]
struct Count {
    same: u64,
    differ: u64,
    undecided: u64,
    others: u64,
    strangers: u64,
    /// Lines that are no record as this program knows them, and what is wrong with the first.
    unread: u64,
    first_unread: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let snapshots = offline::snapshots(&options.against, options.namespace.as_str())?;
    let policies = policies(&snapshots)?;
    let mut file = BufReader::new(File::open(&options.audit).doing(format!("open {}", options.audit.display()))?);
    let mut count = Count::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        let place = || format!("{}:{number}", options.audit.display());
        line.clear();
        let read = file.by_ref().take(MAX_RECORD).read_until(b'\n', &mut line).doing(format!("read {}", place()))?;
        if read == 0 {
            break;
        }
        let is_whole = line.last() == Some(&b'\n');
        if !is_whole && read as u64 == MAX_RECORD {
            return Err(Failure::cannot(format!("the record at {} has more than {MAX_RECORD} bytes", place())));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Record>(&line) {
            Ok(record) => count.add(&record, &policies),
            // Whoever writes the file may be in the middle of its last line.
            Err(_) if !is_whole => eprintln!("cotter: the last record, at {}, is not whole and was left out", place()),
            Err(error) => count.unread(format!("failed to read the record at {}: {error}", place())),
        }
    }
    count.outcome(&policies)
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
    fn unread(&mut self, why: String) {
        self.unread += 1;
        self.first_unread.get_or_insert(why);
    }

    /// Nothing is said to be the same where it was not decided again: what cannot be read is not calm.
    fn outcome(&self, policies: &BTreeMap<ServerRef, Policy>) -> Outcome {
        if self.same + self.differ + self.undecided == 0 && self.strangers > 0 {
            let known: Vec<String> = policies.keys().map(ToString::to_string).collect();
            let known = known.join(", ");
            let message =
                format!("no record is of a server of this folder ({known}): say --namespace where manifests name none");
            return Err(Failure::cannot(message));
        }
        println!(
            "{} the same, {} differ, {} not decided again, {} of other kinds",
            self.same, self.differ, self.undecided, self.others
        );
        match (self.differ, &self.first_unread) {
            (0, None) => Ok(()),
            (0, Some(first)) => {
                Err(Failure::cannot(format!("{} lines are no records; the first: {first}", self.unread)))
            }
            (_, None) => Err(Failure::no("")),
            (_, Some(first)) => Err(Failure::no(format!("{} lines are no records; the first: {first}", self.unread))),
        }
    }

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
        match difference(record, &verdict) {
            None => self.same += 1,
            Some(difference) => {
                self.differ += 1;
                let (server, subject) = (&record.server, shown(principal.subject.as_str()));
                println!("{}  {server}  {subject} {tool}: {difference}", record.time);
            }
        }
    }
}

/// What differs, and why. Nobody can agree to a call yet, so that what needs a person is refused.
fn difference(record: &Record, verdict: &Verdict) -> Option<String> {
    let waits = verdict.is_allowed() && verdict.decision.obligations.approval == Approval::Always;
    let allowed = verdict.is_allowed() && !waits;
    if allowed == record.allow {
        return None;
    }
    let say = |allow: bool| if allow { "allowed" } else { "refused" };
    let waiting = [Reason { code: DenyReason::ApprovalRequired, detail: None }];
    let reasons: &[Reason] = match (allowed, waits) {
        (true, _) => &record.reasons,
        (false, true) => &waiting,
        (false, false) => &verdict.decision.reasons,
    };
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    Some(format!("{} then, {} now ({})", say(record.allow), say(allowed), reasons.join(", ")))
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
            D::TenantNotAdmitted,
            D::Unlisted,
        ];
        tokens.contains(&code) || rules.contains(&code)
    };
    record.reasons.iter().all(|reason| seen(reason.code))
}
