//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

/// Processes at a time: the bound that the sidecar keeps as well.
const MOST: usize = 64;

/// What to write.
pub(super) const USAGE: &str = "\
Usage: cotter-shim --socket PATH [--sessions per-session|shared] -- COMMAND [ARG]...
       cotter-shim --copy-to DIR

Starts COMMAND once for each connection to the Unix socket PATH, and relays the
connection to its standard input and output. Its standard error is this program's.
When the connection is closed the process is ended, with everything it started.

  --socket PATH      where to listen
  --sessions KIND    per-session: up to 64 processes at a time (the default)
                     shared: one process at a time
  --copy-to DIR      put a copy of this program into DIR and end";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// To be told how to ask.
    Help,
    /// A copy of the program.
    Copy(PathBuf),
    /// To serve.
    Serve(Serve),
}

/// What to serve, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Serve {
    /// The socket.
    pub socket: PathBuf,
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// How many of it at a time.
    pub most: usize,
}

/// Reads the arguments, without the program's own name.
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Action, String> {
    let mut arguments = arguments.into_iter();
    let (mut socket, mut most) = (None, MOST);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{} needs a value", argument.display()));
        match argument.to_str() {
            Some("--help" | "-h") => return Ok(Action::Help),
            Some("--copy-to") => return Ok(Action::Copy(value()?.into())),
            Some("--socket") => socket = Some(PathBuf::from(value()?)),
            Some("--sessions") => most = sessions(&value()?)?,
            Some("--") => break,
            _ => return Err(format!("unknown argument {}: write `--` before the command", argument.display())),
        }
    }
    let command: Vec<OsString> = arguments.collect();
    match (socket, command.is_empty()) {
        (None, _) => Err("no --socket: where is it to listen?".to_owned()),
        (_, true) => Err("no command after `--`: what is it to start?".to_owned()),
        (Some(socket), false) => Ok(Action::Serve(Serve { socket, command, most })),
    }
}

fn sessions(kind: &OsString) -> Result<usize, String> {
    match kind.to_str() {
        Some("per-session") => Ok(MOST),
        Some("shared") => Ok(1),
        _ => Err(format!("--sessions {}: it is per-session or shared", kind.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Action, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_stands_behind_the_dashes_is_the_command_and_nothing_of_ours() {
        let serve =
            |most| Serve { socket: "/s".into(), command: ["run", "--socket", "x"].map(OsString::from).to_vec(), most };
        assert_eq!(read("--socket /s -- run --socket x"), Ok(Action::Serve(serve(64))));
        assert_eq!(read("--sessions shared --socket /s -- run --socket x"), Ok(Action::Serve(serve(1))));
        assert_eq!(read("--copy-to /cotter/bin"), Ok(Action::Copy("/cotter/bin".into())));
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        assert!(read("-- run").unwrap_err().contains("--socket"));
        assert!(read("--socket /s").unwrap_err().contains("no command"));
        assert!(read("--socket").unwrap_err().contains("--socket needs a value"));
        assert!(read("--socket /s run").unwrap_err().contains("unknown argument run"));
        assert!(read("--sessions both --socket /s -- run").unwrap_err().contains("per-session or shared"));
    }
}
