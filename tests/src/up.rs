//! A running `cotter up`, and the other commands beside it.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    folder::Folder,
    programs::{Said, ours},
};

/// How long something may take before the test gives up. Nothing here is a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ports are chosen one `up` after the other.
static STARTING: Mutex<()> = Mutex::new(());

/// A running `up` on a folder. It ends with the value.
#[derive(Debug)]
pub struct Up {
    child: Child,
    log: PathBuf,
    state: PathBuf,
    path: OsString,
    folder: PathBuf,
}

impl Up {
    /// Starts on a folder, with programs of these folders first on the path, and waits for the first table.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(folder: &Folder, programs: &[PathBuf]) -> Self {
        let _turn = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let state = folder.state();
        fs::create_dir_all(&state).unwrap();
        let log = state.join("up.log");
        let file = File::create(&log).unwrap();
        let rest = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(programs.iter().cloned().chain(env::split_paths(&rest))).unwrap();
        let child = Command::new(ours("cotter"))
            .args(["up", "-f"])
            .arg(folder.path())
            .env("XDG_STATE_HOME", &state)
            .env("PATH", &path)
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let mut up = Self { child, log, state, path, folder: folder.path() };
        up.wait_for("Stop with Ctrl-C");
        up
    }

    /// All that it said so far.
    ///
    /// # Panics
    /// If its output cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it has said something.
    ///
    /// # Panics
    /// If it does not say it, or ends.
    pub fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.log().contains(text) {
            assert_eq!(self.child.try_wait().unwrap(), None, "up ended:\n{}", self.log());
            assert!(Instant::now() < end, "up never said {text:?}:\n{}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a value of a `cotter get` answer is as wanted, and gives the object.
    ///
    /// # Panics
    /// If it does not become so.
    pub fn wait_until(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.cotter(&["get", kind, name, "-o", "json"]);
            let object: Value = serde_json::from_str(&said.out).unwrap_or_default();
            if wanted(&object) {
                return object;
            }
            assert!(Instant::now() < end, "{kind} {name} never became so:\n{object:#}\n{}\n{}", said.err, self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until all tools of a server are callable, or as many as said, written as `13/14`.
    pub fn wait_for_tools(&self, server: &str, tools: &str) {
        self.wait_until("mcps", server, |object| {
            object.pointer("/status/tools/callableOfDeclared").and_then(Value::as_str) == Some(tools)
                && object.pointer("/status/snapshot/enforcedOfTotal").and_then(Value::as_str) == Some("1/1")
        });
    }

    /// Runs another command of `cotter` as its user would.
    pub fn cotter(&self, args: &[&str]) -> Said {
        let mut command = Command::new(ours("cotter"));
        Said::run(
            command.args(args).env("XDG_STATE_HOME", &self.state).env("PATH", &self.path).current_dir(&self.folder),
        )
    }

    /// A token for a caller, by the flags of `cotter token`.
    ///
    /// # Panics
    /// If none is given.
    #[must_use]
    pub fn token(&self, flags: &[&str]) -> String {
        let said = self.cotter(&[&["token"], flags].concat());
        said.good().trim().to_owned()
    }

    /// A server's endpoint.
    ///
    /// # Panics
    /// If the server is not there.
    #[must_use]
    pub fn endpoint(&self, server: &str) -> String {
        let object: Value = serde_json::from_str(&self.cotter(&["get", "mcps", server, "-o", "json"]).good()).unwrap();
        object["status"]["endpoint"].as_str().unwrap().to_owned()
    }

    /// The environment in which its user types.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        [("XDG_STATE_HOME", self.state.clone().into_os_string()), ("PATH", self.path.clone())]
    }
}

impl Up {
    /// Asks it to stop, as Ctrl-C does, so that its own children go too. Says whether it did.
    #[must_use]
    pub fn stop(&mut self) -> bool {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            return true;
        }
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end && self.child.try_wait().is_ok_and(|status| status.is_none()) {
            thread::sleep(Duration::from_millis(20));
        }
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.stop();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
