//! The shim as a process of its own, between the sidecar's reader and a server that is a shell script.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in tests, and does not see that functions beside a test belong to it"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cotter_core::snapshot::{self, Sessions};
use cotter_proxy::reader::Reader;
use cotter_proxy::upstream::{Bounds, Upstream};
use rustix::process::{Pid, Signal, kill_process};

const SHIM: &str = env!("CARGO_BIN_EXE_cotter-shim");
const PATIENT: Duration = Duration::from_secs(10);

struct Shim {
    process: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Shim {
    fn start(sessions: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("shim.sock");
        // Left over from a container that was killed.
        std::fs::write(&socket, "").unwrap();
        let process = Command::new(SHIM)
            .arg("--socket")
            .arg(&socket)
            .args(["--sessions", sessions, "--", "sh", "-c", script])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let shim = Self { process, socket, _folder: folder };
        until(|| UnixStream::connect(&shim.socket).is_ok());
        shim
    }

    fn connect(&self) -> BufReader<UnixStream> {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENT)).unwrap();
        BufReader::new(stream)
    }

    fn stop(mut self) -> Output {
        self.signal();
        let mut stderr = Vec::new();
        self.process.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        Output { status: self.process.wait().unwrap(), stdout: Vec::new(), stderr }
    }

    fn signal(&self) {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENT, "it did not come to hold");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A number of seconds that no other run of the tests sleeps for, and by which a process is found.
fn mark(number: u32) -> String {
    format!("{number}.{}", std::process::id())
}

/// Processes that have this word among their arguments, without the shim, which has it too.
fn running(word: &str) -> usize {
    let lines = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| std::fs::read(entry.path().join("cmdline")));
    let lines = lines.flatten().map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(word) && !line.contains("cotter-shim")).count()
}

/// The next line; empty where the connection was closed, however that was done.
fn line(stream: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    let _ = stream.read_line(&mut line);
    line
}

#[test]
fn each_connection_is_a_process_and_what_comes_is_passed_on_at_once() {
    let shim = Shim::start("per-session", r#"while read -r line; do echo "$$ $line"; done"#);
    let (mut one, mut two) = (shim.connect(), shim.connect());
    let mut pids = Vec::new();
    for stream in [&mut one, &mut two] {
        stream.get_mut().write_all(b"hello\n").unwrap();
        let said = line(stream);
        let (pid, rest) = said.split_once(' ').unwrap();
        assert_eq!(rest, "hello\n");
        pids.push(pid.to_owned());
    }
    assert_ne!(pids[0], pids[1]);
    assert!(shim.stop().status.success());
}

#[test]
fn a_closed_connection_ends_the_process_with_all_that_it_started() {
    let mark = mark(86011);
    let shim = Shim::start("per-session", &format!("sleep {mark} & while read -r line; do echo $line; done"));
    let mut stream = shim.connect();
    stream.get_mut().write_all(b"x\n").unwrap();
    assert_eq!(line(&mut stream), "x\n");
    until(|| running(&mark) > 0);
    drop(stream);
    until(|| running(&mark) == 0);
    drop(shim);
}

#[test]
fn a_process_that_ends_closes_its_connection_even_if_something_keeps_its_output() {
    let mark = mark(86012);
    let shim = Shim::start("per-session", &format!("sleep {mark} & read -r line; exit 0"));
    let mut stream = shim.connect();
    stream.get_mut().write_all(b"x\n").unwrap();
    assert_eq!(line(&mut stream), "");
    until(|| running(&mark) == 0);
    drop(shim);
}

#[test]
fn a_process_that_ignores_its_end_is_killed() {
    let mark = mark(86013);
    let shim = Shim::start("per-session", &format!("trap '' TERM; echo up; while :; do sleep {mark}; done"));
    let mut stream = shim.connect();
    assert_eq!(line(&mut stream), "up\n");
    drop(stream);
    until(|| running(&mark) == 0);
    drop(shim);
}

#[test]
fn shared_means_one_process_at_a_time() {
    let shim = Shim::start("shared", "while read -r line; do echo $line; done");
    // The connection that found the socket may still be on its way out.
    let mut first = shim.connect();
    until(|| {
        let sent = first.get_mut().write_all(b"1\n");
        let open = sent.is_ok() && line(&mut first) == "1\n";
        if !open {
            first = shim.connect();
        }
        open
    });
    assert_eq!(line(&mut shim.connect()), "");
    drop(first);
    until(|| {
        let mut next = shim.connect();
        next.get_mut().write_all(b"2\n").is_ok() && line(&mut next) == "2\n"
    });
    let said = String::from_utf8(shim.stop().stderr).unwrap();
    assert!(said.contains("1 run already, which is the most"), "{said}");
}

#[test]
fn a_signal_ends_every_process_and_removes_the_socket() {
    let mark = mark(86014);
    let shim = Shim::start("per-session", &format!("echo up; sleep {mark}"));
    let mut streams: Vec<_> = (0..3).map(|_| shim.connect()).collect();
    streams.iter_mut().for_each(|stream| assert_eq!(line(stream), "up\n"));
    let (socket, began) = (shim.socket.clone(), Instant::now());
    assert!(shim.stop().status.success());
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(running(&mark), 0);
    assert!(!socket.exists());
}

#[test]
fn a_program_that_does_not_exist_is_named_and_closes_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let mut command = Command::new(SHIM);
    command.arg("--socket").arg(&socket).args(["--", "/nowhere/server"]);
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    until(|| UnixStream::connect(&socket).is_ok());
    assert_eq!(UnixStream::connect(&socket).unwrap().read(&mut [0; 8]).unwrap(), 0);
    process.kill().unwrap();
    let said = String::from_utf8(process.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("failed to start the server: /nowhere/server: "), "{said}");
}

#[test]
fn it_copies_itself_and_the_copy_runs() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new(SHIM).arg("--copy-to").arg(folder.path()).status().unwrap().success());
    let copy = folder.path().join("cotter-shim");
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert!(Command::new(&copy).arg("--help").output().unwrap().stdout.starts_with(b"Usage: cotter-shim"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let refused = Command::new(SHIM).args(["--copy-to", "/nowhere"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(Command::new(SHIM).output().unwrap().status.code(), Some(2));
}

#[tokio::test]
async fn the_sidecar_reads_a_catalogue_through_it() {
    let script = r#"
read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"2"}}}'
read -r line
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"a\"}]}}"
done"#;
    let shim = Shim::start("per-session", script);
    let path = shim.socket.to_str().unwrap().to_owned();
    let config = snapshot::Upstream::Socket { path, sessions: Sessions::PerSession };
    let bounds = Bounds { connect: PATIENT, start: PATIENT };
    let reader = Reader::start(Upstream::new(&config, bounds, None).unwrap(), Duration::from_secs(3600));
    let mut observations = reader.observations();
    tokio::time::timeout(PATIENT, observations.changed()).await.unwrap().unwrap();
    let seen = observations.borrow_and_update().clone().unwrap();
    assert_eq!(seen.observed.unwrap().tools[0].name, "a");

    // The server's container is restarted: the reader finds its way back when there is a server again.
    let socket = shim.socket.clone();
    drop(shim);
    tokio::time::timeout(PATIENT, observations.changed()).await.unwrap().unwrap();
    let error = observations.borrow_and_update().clone().unwrap().observed.unwrap_err();
    assert!(error.to_string().contains(socket.to_str().unwrap()), "{error}");
    reader.stop().await;
}
