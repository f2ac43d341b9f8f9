//! `cotter-shim`: stands in a server's own container and lends the server's standard input and output to the sidecar.
//!
//! Each connection to its Unix socket is one process of the server. It knows nothing of MCP, holds no secret and decides
//! nothing: the server may do to it whatever it likes, and gains nothing that it did not have. It is the standard library,
//! two system calls and a signal handler, so that it runs in any image.

mod arguments;
mod children;
mod relay;

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::arguments::{Action, Serve};
use self::children::Children;

/// How long children may take to end after SIGTERM, before they are killed. A pod gives 30 s by default.
const PATIENCE: Duration = Duration::from_secs(3);
/// Relays copy through buffers on the heap; their threads need next to nothing.
const STACK: usize = 128 * 1024;

fn main() -> ExitCode {
    let action = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(action) => action,
        Err(problem) => {
            eprintln!("cotter-shim: {problem}\n\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    let done = match action {
        Action::Help => {
            println!("{}", arguments::USAGE);
            Ok(())
        }
        Action::Copy(folder) => copy(&folder),
        Action::Serve(serve) => run(serve),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("cotter-shim: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Puts this program into a folder, whole or not at all.
fn copy(folder: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("failed to copy itself to {}: {error}", folder.display());
    let (to, part) = (folder.join("cotter-shim"), folder.join(".cotter-shim.part"));
    let itself = std::env::current_exe().map_err(failed)?;
    std::fs::copy(itself, &part).map_err(failed)?;
    std::fs::set_permissions(&part, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
    std::fs::rename(&part, &to).map_err(failed)
}

/// Serves until a signal says to stop, then ends every child.
fn run(serve: Serve) -> Result<(), String> {
    let failed = |error: io::Error| format!("failed to listen on {}: {error}", serve.socket.display());
    // Before the first child, so that none of them is missed.
    let mut signals = Signals::new([SIGCHLD, SIGINT, SIGTERM]).map_err(failed)?;
    let listener = listen(&serve.socket).map_err(failed)?;
    let socket = serve.socket.clone();
    let children = Arc::new(Children::new(serve.most));
    let accepting = Arc::clone(&children);
    let accept = thread::Builder::new().stack_size(STACK).spawn(move || accept(&listener, &accepting, &serve));
    drop(accept.map_err(|error| format!("failed to start a thread: {error}"))?);
    for signal in signals.forever() {
        children.reap();
        if signal != SIGCHLD {
            break;
        }
    }
    // No longer found by anybody.
    let _ = std::fs::remove_file(socket);
    children.stop();
    for signal in [Signal::TERM, Signal::KILL] {
        children.signal_all(signal);
        children.reap_until_none(PATIENCE);
    }
    Ok(())
}

/// Binds the socket for whoever can reach its directory: which containers can is decided by who mounts it, and their users are
/// their images' own.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

fn accept(listener: &UnixListener, children: &Arc<Children>, serve: &Serve) {
    for connection in listener.incoming() {
        let started = connection.and_then(|connection| {
            let child = children.start(&serve.command)?;
            let children = Arc::clone(children);
            let relay = move || relay::relay(&connection, child, &children);
            thread::Builder::new().stack_size(STACK).spawn(relay)
        });
        // The connection is closed, which tells the sidecar.
        if let Err(problem) = started {
            eprintln!("cotter-shim: failed to start the server: {problem}");
            // Out of descriptors or processes: the next attempt would fail just as fast.
            thread::sleep(Duration::from_millis(50));
        }
    }
}
