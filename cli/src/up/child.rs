//! A server over HTTP that `up` starts: its own process group, its output in the state folder, started again when it ends.

use std::{
    fs::File,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use cotter_compiler::plan::Process;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child as TokioChild, Command};

use crate::state::State;

/// Between two starts of a program that ends: doubled each time, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a program has to stop when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// One program, running or about to be started again.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    folder: PathBuf,
    log: PathBuf,
    running: Option<TokioChild>,
    pause: Duration,
    not_before: Instant,
}

impl Child {
    /// Starts a program in the folder of its manifest.
    pub(crate) fn start(process: Process, server: &str, state: &State) -> Self {
        let log = state.root().join(format!("{server}.log"));
        let folder = state.folder().to_path_buf();
        let mut child = Self { process, folder, log, running: None, pause: FIRST_PAUSE, not_before: Instant::now() };
        child.keep();
        child
    }

    /// Whether it is what the plan wants.
    pub(crate) fn is(&self, process: &Process) -> bool {
        self.process == *process
    }

    /// Starts it where it is not running and the pause is over.
    pub(crate) fn keep(&mut self) {
        if let Some(running) = &mut self.running {
            match running.try_wait() {
                Ok(None) => return,
                Ok(Some(status)) => tracing::warn!(%status, log = %self.log.display(), "a server ended"),
                Err(error) => tracing::warn!(%error, "failed to look after a server"),
            }
            self.running = None;
            self.not_before = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        if Instant::now() >= self.not_before {
            match self.spawn() {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    tracing::warn!(%error, program = self.process.command.first(), "failed to start a server");
                    self.not_before = Instant::now() + self.pause;
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn spawn(&self) -> std::io::Result<TokioChild> {
        let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "the manifest names no command");
        let (program, args) = self.process.command.split_first().ok_or_else(missing)?;
        let log = File::options().append(true).create(true).open(&self.log)?;
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.folder).env_clear();
        for name in ["PATH", "HOME", "LANG", "TMPDIR"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(&self.process.env).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.process_group(0).kill_on_drop(true).spawn()
    }

    /// Stops it and everything that it started.
    pub(crate) async fn stop(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let group = running.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        for signal in [Signal::TERM, Signal::KILL] {
            if let Some(group) = group {
                let _ = kill_process_group(group, signal);
            }
            if tokio::time::timeout(PATIENCE, running.wait()).await.is_ok() {
                break;
            }
        }
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
