//! What a server writes to stderr goes to the log: escaped, cut, and not faster than a person could want it.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::Instant;

use super::super::text::printable;

/// A line is cut here.
const MAX_LINE: usize = 1024;
/// Lines in each [`WINDOW`]; what is more is counted.
const MAX_LINES: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// Follows a stream to its end.
pub(super) async fn follow(mut from: impl AsyncRead + Unpin) {
    let mut log = Log::new();
    let mut chunk = [0_u8; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        for line in log.take(chunk.get(..count).unwrap_or_default()) {
            write(&line);
        }
    }
    if let Some(line) = log.end_of_line() {
        write(&line);
    }
}

fn write(line: &str) {
    tracing::info!(target: "cotter::server", "{line}");
}

struct Log {
    /// The line that is being read, as far as it will be shown.
    line: Vec<u8>,
    shown: u32,
    dropped: u32,
    since: Instant,
}

impl Log {
    fn new() -> Self {
        Self { line: Vec::new(), shown: 0, dropped: 0, since: Instant::now() }
    }

    /// The lines to show that end in `chunk`.
    fn take(&mut self, chunk: &[u8]) -> Vec<String> {
        let mut out = Vec::new();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            let room = (4 * MAX_LINE).saturating_sub(self.line.len());
            self.line.extend(text.iter().take(room));
            if ends {
                out.extend(self.end_of_line());
            }
        }
        out
    }

    fn end_of_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = printable(String::from_utf8_lossy(&line).trim_end(), MAX_LINE);
        if self.since.elapsed() > WINDOW {
            let dropped = std::mem::take(&mut self.dropped);
            (self.shown, self.since) = (0, Instant::now());
            if dropped > 0 {
                tracing::warn!(target: "cotter::server", dropped, "lines of the server's log were left out");
            }
        }
        if self.shown >= MAX_LINES {
            self.dropped += 1;
            return None;
        }
        (!line.is_empty()).then(|| {
            self.shown += 1;
            line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_across_chunks_escaped_and_cut() {
        let mut log = Log::new();
        assert!(log.take(b"one, ").is_empty());
        assert_eq!(log.take(b"two\r\nthree\x1b[1m\n"), ["one, two", r"three\u{1b}[1m"]);
        let long = [vec![b'x'; 100_000], b"\n".to_vec()].concat();
        assert_eq!(log.take(&long)[0].chars().count(), MAX_LINE + 1);
        assert!(log.line.is_empty());
    }

    #[test]
    fn a_flood_is_cut_off() {
        let mut log = Log::new();
        assert_eq!(log.take(&b"x\n".repeat(1000)).len(), 100);
        assert_eq!(log.dropped, 900);
    }
}
