//! A server that the sidecar runs itself, as a child process: on a laptop, never in a cluster.

mod logs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::UpstreamError;
use super::pipe::Pipe;
use super::places::{MOST, Place};

/// What a child has of the sidecar's own environment: what programs need to be found and to find their files.
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/// How long a child may take to end, first after its input closed, then after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Debug)]
pub(super) struct Program {
    program: String,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    directory: Option<PathBuf>,
}

impl Program {
    pub(super) fn new(
        command: &[String],
        environment: &BTreeMap<String, String>,
        directory: Option<PathBuf>,
    ) -> Result<Self, UpstreamError> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(UpstreamError::Config("command".to_owned(), "it is empty: name a program".to_owned()));
        };
        let (program, arguments) = (program.clone(), arguments.to_vec());
        Ok(Self { program, arguments, environment: environment.clone(), directory })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(&self.environment);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        // A group of its own, so that what it starts ends with it; killed with the sidecar in any case.
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The children of one upstream.
#[derive(Debug)]
pub(super) struct Processes {
    slots: Arc<Semaphore>,
    /// Cancelled when all of it has to end; pipes of every kind have a child of it.
    pub(super) end: CancellationToken,
}

impl Default for Processes {
    fn default() -> Self {
        Self { slots: Arc::new(Semaphore::new(MOST)), end: CancellationToken::new() }
    }
}

impl Processes {
    /// Starts a child and talks to it.
    pub(super) fn start(
        &self,
        program: &Program,
        changes: &watch::Sender<u64>,
        place: Option<Place>,
    ) -> Result<Pipe, UpstreamError> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| UpstreamError::Busy(MOST))?;
        let failed = |source| UpstreamError::Spawn { program: program.program.clone(), source };
        let mut child = program.command().spawn().map_err(failed)?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("it has no standard input or output")));
        };
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(logs::follow(stderr));
        }
        let (tell, ending) = watch::channel(None);
        let end = self.end.child_token();
        tokio::spawn(supervise(child, group, end.clone(), tell, (slot, place)));
        Ok(Pipe::start(stdout, stdin, end, ending, changes.clone()))
    }

    /// Ends all and waits until none is left. Nothing can be started afterwards.
    pub(super) async fn shutdown(&self) {
        self.end.cancel();
        let all = u32::try_from(MOST).unwrap_or(u32::MAX);
        // Fails only where it was done before.
        let _ = self.slots.acquire_many(all).await;
        self.slots.close();
    }
}

/// Waits for the child, or ends it; either way it is reaped, and its group is gone before the ending is told.
async fn supervise(
    mut child: Child,
    group: Group,
    end: CancellationToken,
    tell: watch::Sender<Option<String>>,
    taken: (OwnedSemaphorePermit, Option<Place>),
) {
    let status = tokio::select! {
        status = child.wait() => status,
        () = end.cancelled() => finish(&mut child, &group).await,
    };
    drop(group);
    drop(taken);
    let how = match status {
        Ok(status) => ending(status),
        Err(error) => format!("its process cannot be waited for: {error}"),
    };
    tracing::info!(how, "the server's process ended");
    tell.send_replace(Some(how));
}

/// Its input was closed by whoever cancelled; then it is asked, then it is killed.
async fn finish(child: &mut Child, group: &Group) -> std::io::Result<ExitStatus> {
    for signal in [Signal::TERM, Signal::KILL] {
        if let Ok(status) = timeout(PATIENCE, child.wait()).await {
            return status;
        }
        group.signal(signal);
    }
    child.wait().await
}

fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process exited with status {code}"),
        (None, Some(signal)) => format!("its process was ended by signal {signal}"),
        (None, None) => "its process ended".to_owned(),
    }
}

/// The child's process group. Dropped, whatever is left of it is killed, also when the runtime goes away.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // Fails where the group is gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
