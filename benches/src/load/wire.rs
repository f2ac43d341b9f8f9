//! HTTP/1.1 as far as the load needs it: one kept connection, whole requests out, answers with a length in. It costs 9 µs a call,
//! where a general client would cost as much as what is measured.

use std::{net::SocketAddr, time::Duration};

use httparse::{EMPTY_HEADER, Response, Status};
use memchr::memmem;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(15);
const HEADERS: usize = 48;

/// One connection, with room for one answer.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// One answer.
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    pub(super) body: &'a [u8],
}

impl Answer<'_> {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.body).into_owned()
    }
}

/// The head of an answer: where the body begins and how long it is.
struct Head {
    status: u16,
    session: Option<String>,
    begin: usize,
    length: usize,
}

impl Connection {
    pub(super) async fn open(to: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(to).await.map_err(|error| format!("connect: {}", error.kind()))?;
        stream.set_nodelay(true).map_err(|error| format!("connect: {}", error.kind()))?;
        Ok(Self { stream, buffer: Vec::with_capacity(8192) })
    }

    /// Sends a request and reads its answer. After a failure the connection is of no more use.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>, String> {
        self.stream.write_all(request).await.map_err(|error| format!("write: {}", error.kind()))?;
        self.buffer.clear();
        let head = tokio::time::timeout(PATIENCE, self.read()).await.map_err(|_| "no answer in 15 s".to_owned())??;
        let body = self.buffer.get(head.begin..head.begin + head.length).unwrap_or_default();
        Ok(Answer { status: head.status, session: head.session, body })
    }

    async fn read(&mut self) -> Result<Head, String> {
        loop {
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) => return Err("closed".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("read: {}", error.kind())),
            }
            if let Some(head) = parse(&self.buffer)?
                && self.buffer.len() >= head.begin + head.length
            {
                return Ok(head);
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Option<Head>, String> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut response = Response::new(&mut headers);
    let begin = match response.parse(bytes) {
        Ok(Status::Complete(begin)) => begin,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("not HTTP: {error}")),
    };
    let value = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let length = value("content-length").and_then(|length| length.parse().ok());
    let status = response.code.unwrap_or(0);
    let length = length.or_else(|| (status == 202).then_some(0)).ok_or("an answer without a length")?;
    Ok(Some(Head { status, session: value("mcp-session-id").map(str::to_owned), begin, length }))
}

/// A request that is sent again and again with another number of the same length.
pub(super) struct Template {
    bytes: Vec<u8>,
    at: usize,
}

impl Template {
    /// A request that holds a number; `None` where it does not.
    pub(super) fn new(bytes: Vec<u8>, number: &str) -> Option<Self> {
        let at = memmem::find(&bytes, format!("\"id\":{number}").as_bytes())? + "\"id\":".len();
        Some(Self { bytes, at })
    }

    /// The request with another number of as many digits.
    pub(super) fn with(&mut self, number: &str) -> &[u8] {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + number.len()) {
            place.copy_from_slice(number.as_bytes());
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_when_it_is_whole() {
        let text = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: s1\r\ncontent-length: 2\r\n\r\n{}";
        let head = parse(text).unwrap().unwrap();
        assert_eq!((head.status, head.length, head.session.as_deref()), (200, 2, Some("s1")));
        assert_eq!(&text[head.begin..], b"{}");
        assert!(parse(&text[..30]).unwrap().is_none());
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err() && parse(b"nothing\r\n\r\n").is_err());
    }

    #[test]
    fn a_template_changes_its_number_only() {
        let mut template = Template::new(b"{\"id\":10,\"n\":10}".to_vec(), "10").unwrap();
        assert_eq!(template.with("27"), b"{\"id\":27,\"n\":10}");
        assert!(Template::new(b"{}".to_vec(), "10").is_none());
    }
}
