//! The parent's side: starting a child, waiting for it, stopping it.

use std::{
    ffi::OsStr,
    io::{self, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::Limits;

/// How often the child is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// Bytes of an answer that are read: the report on the largest folder of tests is smaller.
const ANSWER: u64 = 16 << 20;
/// Signals that end a process which asks for more memory or stack than it may have.
const ABORTED: [i32; 3] = [6, 7, 11];
/// Signals that end a process which used its processor time.
const SPENT: [i32; 2] = [9, 24];

/// A child that ended.
pub(super) struct Ended {
    /// What it wrote.
    pub(super) answer: Vec<u8>,
    /// Why it ended before it was done.
    pub(super) stopped: Option<String>,
}

pub(super) fn run(program: &Path, word: &OsStr, question: Vec<u8>, limits: Limits) -> io::Result<Ended> {
    let mut command = Command::new(program);
    command.arg(word).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // The child has nothing to do before it is asked, so it does nothing without these limits.
    if let Err(error) = limit(&child, limits) {
        child.kill()?;
        child.wait()?;
        return Err(error);
    }
    let (input, output) = (child.stdin.take(), child.stdout.take());
    // A child that is stopped closes its ends, so both threads end with it.
    let writer = thread::spawn(move || input.map(|mut input| input.write_all(&question)));
    let reader = thread::spawn(move || {
        let mut answer = Vec::new();
        output.map(|output| output.take(ANSWER).read_to_end(&mut answer));
        answer
    });
    let status = wait(&mut child, limits.patience)?;
    drop(writer.join());
    let answer = reader.join().unwrap_or_default();
    Ok(Ended { answer, stopped: stopped(status, limits) })
}

fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + patience;
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

fn stopped(status: Option<ExitStatus>, limits: Limits) -> Option<String> {
    let Some(status) = status else {
        return Some(format!("it did not end within {:?}", limits.patience));
    };
    match status.signal() {
        None if status.success() => None,
        Some(signal) if SPENT.contains(&signal) => {
            Some(format!("it took more than {} s of processor time", limits.cpu_seconds))
        }
        Some(signal) if ABORTED.contains(&signal) => {
            Some(format!("it needed more than {} MiB of memory, or a stack without end", limits.memory >> 20))
        }
        _ => Some(format!("it ended with {status}")),
    }
}

/// The child sets its own limits too, where a parent cannot.
#[cfg(target_os = "linux")]
fn limit(child: &Child, limits: Limits) -> io::Result<()> {
    use rustix::process::{Pid, prlimit};
    for (resource, limit) in limits.all() {
        prlimit(Some(Pid::from_child(child)), resource, limit)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the signature is that of Linux")]
fn limit(_: &Child, _: Limits) -> io::Result<()> {
    Ok(())
}
