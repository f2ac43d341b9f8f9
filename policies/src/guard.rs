//! The check in a process of its own, which can be stopped: the parser takes time exponential in nesting, and a recursion that the
//! check did not foresee overflows the stack and takes its process with it. A policy text meets a long-lived process only after it
//! passed here.
//!
//! The child is the same program, started with a word that its `main` knows ([`Guard::new`], [`serve`]).

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Read as _, Write as _},
    path::PathBuf,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::check::{self, Finding, Findings};

/// Seconds of processor time for one check: the largest rule set that passes takes a few hundredths.
const CPU_SECONDS: u64 = 1;
/// Bytes of address space: the program itself, one stack and what a rule set needs. What needs more is stopped.
const MEMORY: u64 = 1 << 30;
/// Longer than the processor time, for a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often the child is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// Bytes of an answer that are read.
const ANSWER: u64 = 4 << 20;
/// Stack of the thread that checks: rules of the longest chain that passes need more than the usual 2 MiB.
const STACK: usize = 64 << 20;

/// A program to check with.
#[derive(Debug, Clone)]
pub struct Guard {
    program: PathBuf,
    word: OsString,
}

/// Why modules could not be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The child cannot be started or spoken with.
    #[error("failed to start the policy checker {program}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What became of a child.
enum Ended {
    Answered(Vec<u8>),
    Stopped(String),
}

impl Guard {
    /// A guard that starts this very program with the word that makes it call [`serve`].
    ///
    /// # Errors
    /// The program's own path is not known.
    pub fn new(word: impl Into<OsString>) -> io::Result<Self> {
        Ok(Self { program: std::env::current_exe()?, word: word.into() })
    }

    /// A guard that starts another program.
    #[must_use]
    pub fn of(program: PathBuf, word: impl Into<OsString>) -> Self {
        Self { program, word: word.into() }
    }

    /// Checks the modules of one server. What is refused without a parser is refused here; the rest meets the child only.
    ///
    /// # Errors
    /// The checker cannot be started. Whatever the modules do is a finding.
    pub fn check(&self, modules: &BTreeMap<String, String>) -> Result<Result<(), Findings>, GuardError> {
        if let Err(findings) = check::before_parsing(modules) {
            return Ok(Err(findings));
        }
        match self.ask(modules)? {
            Ended::Answered(answer) => Ok(read(modules, &answer)),
            Ended::Stopped(_) if modules.len() > 1 => self.one_by_one(modules),
            Ended::Stopped(how) => Ok(Err(stopped(modules, &how))),
        }
    }

    /// Which of several modules it was: each is checked by itself, and if none is at fault alone, all are.
    fn one_by_one(&self, modules: &BTreeMap<String, String>) -> Result<Result<(), Findings>, GuardError> {
        let mut findings = Vec::new();
        for (name, text) in modules {
            if let Err(found) = self.check(&BTreeMap::from([(name.clone(), text.clone())]))? {
                findings.extend(found.0);
            }
        }
        if findings.is_empty() {
            return Ok(Err(stopped(modules, "together they took too much")));
        }
        Ok(Err(Findings(findings)))
    }

    fn ask(&self, modules: &BTreeMap<String, String>) -> Result<Ended, GuardError> {
        let failed = |source: io::Error| GuardError::Start { program: self.program.clone(), source };
        let mut command = Command::new(&self.program);
        command.arg(&self.word).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let question = serde_json::to_vec(modules).map_err(|error| failed(error.into()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        // A child that is stopped closes its ends, so both threads end with it.
        let writer = thread::spawn(move || input.map(|mut input| input.write_all(&question)));
        let reader = thread::spawn(move || {
            let mut answer = Vec::new();
            output.map(|output| output.take(ANSWER).read_to_end(&mut answer));
            answer
        });
        let status = wait(&mut child).map_err(failed)?;
        drop(writer.join());
        let answer = reader.join().unwrap_or_default();
        Ok(match status {
            Some(status) if status.success() => Ended::Answered(answer),
            Some(status) => Ended::Stopped(format!("the check ended with {status}")),
            None => Ended::Stopped(format!("the check did not end within {} s", PATIENCE.as_secs())),
        })
    }
}

fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn read(modules: &BTreeMap<String, String>, answer: &[u8]) -> Result<(), Findings> {
    match serde_json::from_slice::<Vec<Finding>>(answer) {
        Ok(findings) if findings.is_empty() => Ok(()),
        Ok(findings) => Err(Findings(findings)),
        Err(_) => Err(stopped(modules, "the check gave no answer")),
    }
}

fn stopped(modules: &BTreeMap<String, String>, how: &str) -> Findings {
    let help = "split large rules, and take apart what is nested deeply";
    let message = format!("the policy takes too much to read: {how}");
    let finding = |(name, text): (&String, &String)| Finding::at(name, text, (1, 1), message.clone(), help);
    Findings(modules.iter().map(finding).collect())
}

/// The child: reads modules from standard input, checks them under limits, and writes findings to standard output.
#[must_use]
pub fn serve() -> ExitCode {
    let limit = |resource, value| setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
    if limit(Resource::Cpu, CPU_SECONDS).and(limit(Resource::As, MEMORY)).and(limit(Resource::Core, 0)).is_err() {
        return ExitCode::from(2);
    }
    let checker = thread::Builder::new().stack_size(STACK).spawn(|| -> Option<Vec<u8>> {
        let modules: BTreeMap<String, String> = serde_json::from_reader(io::stdin().lock()).ok()?;
        let findings = match check::check(&modules) {
            Ok(checked) => check::dry_run(&checked, &modules),
            Err(findings) => findings.0,
        };
        serde_json::to_vec(&findings).ok()
    });
    let answer = checker.ok().and_then(|checker| checker.join().ok()).flatten();
    match answer.map(|answer| io::stdout().lock().write_all(&answer)) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::from(2),
    }
}
