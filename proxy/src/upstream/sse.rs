//! Server-sent events (WHATWG HTML, section 9.2.6), as far as MCP uses them: incremental, and bounded.

use bytes::{Buf as _, Bytes, BytesMut};

/// An event is larger than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventTooLarge;

/// Takes bytes as they come and gives the data of each event of type `message` as it is whole, its lines joined by `\n`.
///
/// Nothing comes of an event without data (a comment, a bare `id` or `retry`, the priming event that some servers begin with)
/// and of an event of another type. Ids are not kept: a stream that broke is not resumed.
#[derive(Debug)]
pub(super) struct Parser {
    buffer: BytesMut,
    /// Bytes of `buffer` that are known to hold no line end.
    scanned: usize,
    /// The last line ended with CR: an LF that follows belongs to it.
    skip_lf: bool,
    /// No line was read yet: a byte order mark may be in front.
    first: bool,
    data: Option<Data>,
    /// The event has a type other than `message`.
    foreign: bool,
    max: usize,
}

/// Data of the event that is being read. Nearly every event has one line of it, which is then not copied.
#[derive(Debug)]
enum Data {
    One(Bytes),
    Many(BytesMut),
}

impl Parser {
    /// `max` bounds the data of one event, and any single line.
    pub(super) fn new(max: usize) -> Self {
        let buffer = BytesMut::new();
        Self { buffer, scanned: 0, skip_lf: false, first: true, data: None, foreign: false, max }
    }

    /// Adds bytes of the stream.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The data of the next whole event.
    ///
    /// # Errors
    /// A line or an event is larger than the bound; the stream is of no use any more.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, EventTooLarge> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else {
                self.field(&line)?;
            }
        }
        Ok(None)
    }

    fn line(&mut self) -> Result<Option<Bytes>, EventTooLarge> {
        if self.skip_lf && !self.buffer.is_empty() {
            self.skip_lf = false;
            if self.buffer.first() == Some(&b'\n') {
                self.buffer.advance(1);
            }
        }
        let rest = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(at) = memchr::memchr2(b'\r', b'\n', rest).map(|at| at + self.scanned) else {
            self.scanned = self.buffer.len();
            // The field's name may stand in front of data of the full size.
            return if self.scanned > self.max + 16 { Err(EventTooLarge) } else { Ok(None) };
        };
        self.scanned = 0;
        let mut line = self.buffer.split_to(at).freeze();
        self.skip_lf = self.buffer.first() == Some(&b'\r');
        self.buffer.advance(1);
        if std::mem::take(&mut self.first) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        Ok(Some(line))
    }

    fn field(&mut self, line: &Bytes) -> Result<(), EventTooLarge> {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        match line.get(..colon) {
            Some(b"data") => self.add(value)?,
            Some(b"event") => self.foreign = !matches!(&*value, b"message" | b""),
            // Comments, `id`, `retry`, and what nobody knows.
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, value: Bytes) -> Result<(), EventTooLarge> {
        let so_far = match &self.data {
            None => 0,
            Some(Data::One(data)) => data.len() + 1,
            Some(Data::Many(data)) => data.len() + 1,
        };
        if so_far + value.len() > self.max {
            return Err(EventTooLarge);
        }
        self.data = Some(match self.data.take() {
            None => Data::One(value),
            Some(Data::One(first)) => Data::Many(joined(BytesMut::from(&*first), &value)),
            Some(Data::Many(data)) => Data::Many(joined(data, &value)),
        });
        Ok(())
    }

    fn dispatch(&mut self) -> Option<Bytes> {
        let foreign = std::mem::take(&mut self.foreign);
        let data = match self.data.take()? {
            Data::One(data) => data,
            Data::Many(data) => data.freeze(),
        };
        (!data.is_empty() && !foreign).then_some(data)
    }
}

fn joined(mut data: BytesMut, line: &[u8]) -> BytesMut {
    data.extend_from_slice(b"\n");
    data.extend_from_slice(line);
    data
}

#[cfg(test)]
mod tests;
