//! The processes that were started, and the only place that waits for processes.
//!
//! As the first process of a container this program inherits every orphan of it, so it waits for any process there is rather
//! than for its own. That is why starting and waiting exclude each other: a process that ended at once would otherwise be
//! waited for before anybody knows it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};

/// All children.
#[derive(Debug)]
pub(super) struct Children {
    state: Mutex<State>,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<Pid, mpsc::Sender<()>>,
    stopping: bool,
}

/// One child. It leads a process group of its own.
#[derive(Debug)]
pub(super) struct Started {
    group: Pid,
    /// Gives `()` once, or an error, when the child is gone.
    gone: mpsc::Receiver<()>,
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
}

/// One child without its pipes.
#[derive(Debug)]
pub(super) struct Process {
    group: Pid,
    gone: mpsc::Receiver<()>,
}

impl Children {
    pub(super) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), most }
    }

    /// Starts one.
    pub(super) fn start(&self, command: &[OsString]) -> io::Result<Started> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(io::Error::other("there is no command"));
        };
        let mut state = self.state();
        if state.stopping || state.running.len() >= self.most {
            return Err(io::Error::other(format!("{} run already, which is the most", state.running.len())));
        }
        let mut child = Command::new(program)
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", program.display())))?;
        let (tell, gone) = mpsc::channel();
        let group = pid(&child).ok_or_else(|| io::Error::other("it has no process id"))?;
        state.running.insert(group, tell);
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok(Started { group, gone, stdin, stdout }),
            _ => Err(io::Error::other("it has no standard input or output")),
        }
    }

    /// Takes in every process that ended. What is left of a child's group is killed with it: nobody is served by it any more.
    pub(super) fn reap(&self) {
        let mut state = self.state();
        while let Ok(Some((ended, _))) = wait(WaitOptions::NOHANG) {
            if let Some(gone) = state.running.remove(&ended) {
                signal(ended, Signal::KILL);
                // Its relay may be gone already.
                let _ = gone.send(());
            }
        }
    }

    /// Starts nothing any more.
    pub(super) fn stop(&self) {
        self.state().stopping = true;
    }

    pub(super) fn signal_all(&self, what: Signal) {
        self.state().running.keys().for_each(|group| signal(*group, what));
    }

    /// Waits until none is left, and no longer than that.
    pub(super) fn reap_until_none(&self, patience: Duration) {
        let began = Instant::now();
        loop {
            self.reap();
            if self.state().running.is_empty() || began.elapsed() > patience {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Started {
    pub(super) fn split(self) -> (Process, ChildStdin, ChildStdout) {
        (Process { group: self.group, gone: self.gone }, self.stdin, self.stdout)
    }
}

impl Process {
    /// Waits until it is gone, and no longer than that. Tells whether it is.
    pub(super) fn is_gone_within(&self, patience: Duration) -> bool {
        !matches!(self.gone.recv_timeout(patience), Err(mpsc::RecvTimeoutError::Timeout))
    }

    /// Signals its group. Call it only before [`Process::is_gone_within`] said that it is gone.
    pub(super) fn signal(&self, what: Signal) {
        signal(self.group, what);
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

fn signal(group: Pid, what: Signal) {
    // Fails where nothing is left of it.
    let _ = kill_process_group(group, what);
}
