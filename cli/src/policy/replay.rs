//! `cotter policy replay`: what would have been decided otherwise under the manifests and policies of a folder.

mod again;
mod claims;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
};

use clap::Args;
use cotter_core::{
    audit::Record,
    name::{Namespace, ServerRef},
    snapshot::Sealed,
};

use crate::{
    failure::{Doing as _, Failure, Outcome},
    offline,
    tools_file::shown,
};
use again::{Again, Rules, Unknown};

/// Decide recorded calls again, under changed manifests and policies
#[derive(Debug, Args)]
#[command(
    after_help = "A record has neither arguments nor the definition of the tool: a call whose decision would read either is counted apart, as not decided again.\nNor has it the token's claims: where a delegation of the server names its delegate or delegator by claims, a call is not decided again unless those cannot change the outcome.\nA difference is another answer, another reason for a refusal, or that the delegation of the record permits it no more.\nA record has neither the pin's state nor the line of the protocol: tools count as approved, and the protocol as the modern one.\nExit status: 0 nothing differs, 1 something does, 2 it could not be replayed, or nothing of it was decided again."
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
    /// Calls whose decision reads what no record has.
    unrecorded: u64,
    /// Calls that a delegation by claims may concern.
    claimed: u64,
    others: u64,
    strangers: u64,
    /// Lines that are no record as this program knows them, and what is wrong with the first.
    unread: u64,
    first_unread: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let snapshots = offline::snapshots(&options.against, options.namespace.as_str())?;
    let rules = rules(&snapshots)?;
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
            Ok(record) => count.add(&record, &rules),
            // Whoever writes the file may be in the middle of its last line.
            Err(_) if !is_whole => eprintln!("cotter: the last record, at {}, is not whole and was left out", place()),
            Err(error) => count.unread(format!("failed to read the record at {}: {error}", place())),
        }
    }
    count.outcome(&rules)
}

fn rules(snapshots: &[Sealed]) -> Result<BTreeMap<ServerRef, Rules>, Failure> {
    snapshots.iter().map(|sealed| Ok((sealed.snapshot().server.clone(), Rules::of(sealed)?))).collect()
}

impl Count {
    fn unread(&mut self, why: String) {
        self.unread += 1;
        self.first_unread.get_or_insert(why);
    }

    /// Nothing is said to be the same where it was not decided again: what cannot be read is not calm.
    fn outcome(&self, rules: &BTreeMap<ServerRef, Rules>) -> Outcome {
        let (decided, undecided) = (self.same + self.differ, self.unrecorded + self.claimed);
        if decided + undecided == 0 && self.strangers > 0 {
            let known: Vec<String> = rules.keys().map(ToString::to_string).collect();
            let known = known.join(", ");
            let message =
                format!("no record is of a server of this folder ({known}): say --namespace where manifests name none");
            return Err(Failure::cannot(message));
        }
        println!(
            "{} the same, {} differ, {undecided} not decided again, {} of other kinds",
            self.same, self.differ, self.others
        );
        if undecided > 0 {
            println!("not decided again: {}", self.why_undecided());
        }
        match (self.differ, &self.first_unread) {
            (0, None) if decided == 0 => {
                Err(Failure::cannot(format!("nothing was decided again: {}", self.why_none())))
            }
            (0, None) => Ok(()),
            (0, Some(first)) => {
                Err(Failure::cannot(format!("{} lines are no records; the first: {first}", self.unread)))
            }
            (_, None) => Err(Failure::no("")),
            (_, Some(first)) => Err(Failure::no(format!("{} lines are no records; the first: {first}", self.unread))),
        }
    }

    fn why_undecided(&self) -> String {
        let parts = [
            (self.unrecorded, "rules read the arguments or what the server says of the tool"),
            (self.claimed, "a delegation names its parties by claims, which a record does not have"),
        ];
        let parts = parts.into_iter().filter(|(calls, _)| *calls > 0);
        parts.map(|(calls, why)| format!("{calls}, since {why}")).collect::<Vec<_>>().join("; ")
    }

    fn why_none(&self) -> String {
        if self.unrecorded + self.claimed > 0 {
            self.why_undecided()
        } else if self.others > 0 {
            format!("none of {} records is of a call that the policy decided", self.others)
        } else {
            "there is no whole record".to_owned()
        }
    }

    fn add(&mut self, record: &Record, rules: &BTreeMap<ServerRef, Rules>) {
        let Some(rules) = rules.get(&record.server) else {
            self.strangers += 1;
            self.others += 1;
            return;
        };
        match rules.again(record) {
            Again::Other => self.others += 1,
            Again::Unknown(Unknown::Arguments) => self.unrecorded += 1,
            Again::Unknown(Unknown::Claims) => self.claimed += 1,
            Again::Same => self.same += 1,
            Again::Differs(difference) => {
                self.differ += 1;
                let subject = record.principal.as_ref().map_or("", |principal| principal.subject.as_str());
                let tool = record.tool.as_deref().unwrap_or_default();
                println!("{}  {}  {} {}: {difference}", record.time, record.server, shown(subject), shown(tool));
            }
        }
    }
}
