//! One connection and one process, tied together: whichever ends first ends the other.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::children::{Children, Process, Started};

/// How long a process may take to end, first after its input closed, then after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// Relays until one side ends, then ends the other. Returns when the process is gone.
pub(super) fn relay(connection: &UnixStream, child: Started, children: &Children) {
    let (process, mut stdin, mut stdout) = child.split();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut to = connection;
            // Ends when the process and all that it started closed their output, or when the sidecar went away.
            let _ = copy(&mut stdout, &mut to);
            let _ = connection.shutdown(Shutdown::Both);
        });
        let mut from = connection;
        // Ends when the sidecar closes, when the process does not read any more, or by the shutdown above.
        let _ = copy(&mut from, &mut stdin);
        drop(stdin);
        end(&process, children);
        let _ = connection.shutdown(Shutdown::Both);
    });
}

/// Copies until the end, each piece as it comes. `io::copy` would not do: between a socket and a pipe it asks the kernel to move
/// as much as it can, and the kernel may wait for more before it lets any of it through.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(buffer.get(..count).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn end(process: &Process, children: &Children) {
    // It may have ended long ago, and the signal that says so may still be on its way.
    children.reap();
    for signal in [Signal::TERM, Signal::KILL] {
        if process.is_gone_within(PATIENCE) {
            return;
        }
        process.signal(signal);
    }
    process.is_gone_within(PATIENCE);
}
