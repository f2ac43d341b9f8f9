//! Lines of a bounded length out of a stream of bytes.

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Why there is no further line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineError {
    /// Reading failed.
    Io,
    /// A line is longer than the bound.
    TooLong,
    /// The stream ended inside a line.
    Truncated,
}

/// Reads lines. What was read stays when the future is dropped, so it may be raced against something else.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    buffer: BytesMut,
    /// Bytes of `buffer` that are known to hold no line end.
    scanned: usize,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R, max: usize) -> Self {
        Self { from, buffer: BytesMut::new(), scanned: 0, max }
    }

    /// The next line that is not blank, without its end and without white space around it.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            while let Some(line) = self.buffered() {
                if !line.is_empty() {
                    return if line.len() > self.max { Err(LineError::TooLong) } else { Ok(Some(line)) };
                }
            }
            if self.buffer.len() > self.max {
                return Err(LineError::TooLong);
            }
            self.buffer.reserve(8 * 1024);
            if self.from.read_buf(&mut self.buffer).await.map_err(|_| LineError::Io)? == 0 {
                let blank = self.buffer.iter().all(u8::is_ascii_whitespace);
                return if blank { Ok(None) } else { Err(LineError::Truncated) };
            }
        }
    }

    fn buffered(&mut self) -> Option<Bytes> {
        let rest = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', rest).map(|at| at + self.scanned) else {
            self.scanned = self.buffer.len();
            return None;
        };
        self.scanned = 0;
        let line = self.buffer.split_to(at).freeze();
        self.buffer.advance(1);
        Some(line.slice_ref(line.trim_ascii()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], max: usize) -> (Vec<String>, Result<(), LineError>) {
        let (mut lines, mut out) = (Lines::new(text, max), Vec::new());
        loop {
            match lines.next().await {
                Ok(Some(line)) => out.push(String::from_utf8(line.to_vec()).unwrap()),
                Ok(None) => return (out, Ok(())),
                Err(error) => return (out, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn lines_end_with_either_line_end_and_blank_ones_are_skipped() {
        let (lines, end) = all(b"a\r\n\n  \nb c\n", 10).await;
        assert_eq!((lines, end), (vec!["a".to_owned(), "b c".to_owned()], Ok(())));
    }

    #[tokio::test]
    async fn a_line_at_the_bound_passes_and_one_beyond_it_does_not() {
        assert_eq!(all(b"0123456789\n", 10).await.1, Ok(()));
        assert_eq!(all(b"0123456789a\n", 10).await, (vec![], Err(LineError::TooLong)));
        assert_eq!(all(&[b'x'; 100_000], 10_000).await, (vec![], Err(LineError::TooLong)));
    }

    #[tokio::test]
    async fn half_a_line_is_no_line() {
        assert_eq!(all(b"a\n{\"half\":", 100).await, (vec!["a".to_owned()], Err(LineError::Truncated)));
    }
}
