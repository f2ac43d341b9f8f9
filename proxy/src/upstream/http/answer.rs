//! Reading what a server answers over HTTP: one JSON body, or a stream of events with the answer in it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use http::{HeaderMap, Response, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Duration, timeout};

use super::super::Answer;
use super::super::error::{CallError, Fault};
use super::super::message::{self, LIST_CHANGED};
use super::super::sse::Parser;
use super::Session;

/// What a response may be larger than its result: the envelope, and white space around it.
const ENVELOPE: usize = 4 * 1024;
/// Everything else on a stream, such as progress, before the answer.
const CHATTER: usize = 1024 * 1024;
/// Body of a refusal; whatever is in it, it is only looked at.
const MAX_REFUSAL: usize = 64 * 1024;
/// Questions of the server that are answered on one stream. Nothing was declared, so there should be none.
const MAX_QUESTIONS: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    Events,
}

/// Reads the answer to request `id` from a response of success.
pub(super) async fn read(
    response: Response<Incoming>,
    id: u64,
    limit: usize,
    session: &Arc<Session>,
) -> Result<Answer, CallError> {
    read_any(response, id, limit, Some(session)).await
}

/// The same before there is a session: what else a server says then is dropped.
pub(super) async fn read_alone(response: Response<Incoming>, id: u64, limit: usize) -> Result<Answer, CallError> {
    read_any(response, id, limit, None).await
}

async fn read_any(
    response: Response<Incoming>,
    id: u64,
    limit: usize,
    session: Option<&Arc<Session>>,
) -> Result<Answer, CallError> {
    let (head, body) = response.into_parts();
    let max = limit.saturating_add(ENVELOPE);
    match media(&head.headers)? {
        Media::Json => {
            let bytes = whole(body, max, limit).await?;
            let message = message::read(&bytes).map_err(CallError::Malformed)?;
            own(message, id).ok_or(CallError::Malformed(Fault::ForeignId))?
        }
        Media::Events => Stream { body, parser: Parser::new(max), id, limit, session, questions: 0 }.answer().await,
    }
}

/// Reads a refusal: a status of failure may come with a JSON-RPC answer to the request, which then is the answer.
pub(super) async fn refusal(response: Response<Incoming>, id: u64) -> Result<Answer, CallError> {
    let status = response.status().as_u16();
    let refused = CallError::Refused { status };
    let (head, body) = response.into_parts();
    if matches!(status, 401 | 403) || media(&head.headers) != Ok(Media::Json) {
        return Err(refused);
    }
    let Ok(bytes) = whole(body, MAX_REFUSAL, MAX_REFUSAL).await else { return Err(refused) };
    message::read(&bytes).ok().and_then(|message| own(message, id)).unwrap_or(Err(refused))
}

/// The answer, where the message is one to this request.
fn own(message: message::Incoming, id: u64) -> Option<Result<Answer, CallError>> {
    match message {
        message::Incoming::Response { id: theirs, answer } if theirs == id => {
            Some(answer.map_err(CallError::Malformed))
        }
        _ => None,
    }
}

fn media(headers: &HeaderMap) -> Result<Media, CallError> {
    let coded = headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
    let Some(kind) = headers.get(header::CONTENT_TYPE).filter(|_| !coded) else {
        return Err(CallError::Malformed(if coded { Fault::MediaType } else { Fault::Empty }));
    };
    let kind = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/json") {
        Ok(Media::Json)
    } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
        Ok(Media::Events)
    } else {
        Err(CallError::Malformed(Fault::MediaType))
    }
}

/// A whole body of at most `max` bytes. One that comes in one piece, as nearly all do, is not copied.
async fn whole(mut body: Incoming, max: usize, limit: usize) -> Result<Bytes, CallError> {
    let too_large = || CallError::TooLarge { limit: limit as u64 };
    if body.size_hint().lower() > max as u64 {
        return Err(too_large());
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| CallError::Malformed(Fault::Truncated))?.into_data() else { continue };
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
        if first.len().max(rest.len()) > max {
            return Err(too_large());
        }
    }
    let bytes = if rest.is_empty() { first } else { rest.freeze() };
    if bytes.is_empty() { Err(CallError::Malformed(Fault::Empty)) } else { Ok(bytes) }
}

/// A stream of events that is expected to hold the answer.
struct Stream<'a> {
    body: Incoming,
    parser: Parser,
    id: u64,
    limit: usize,
    session: Option<&'a Arc<Session>>,
    questions: u32,
}

impl Stream<'_> {
    async fn answer(mut self) -> Result<Answer, CallError> {
        let too_large = CallError::TooLarge { limit: self.limit as u64 };
        let mut left = self.limit.saturating_mul(2).saturating_add(CHATTER);
        while let Some(frame) = self.body.frame().await {
            // A connection that breaks and a stream that ends are the same to whoever waits: the answer was under way.
            let frame = frame.map_err(|_| CallError::Malformed(Fault::Truncated))?;
            let Ok(data) = frame.into_data() else { continue };
            left = left.checked_sub(data.len()).ok_or_else(|| too_large.clone())?;
            self.parser.push(&data);
            while let Some(data) = self.parser.next().map_err(|_| too_large.clone())? {
                if let Some(answer) = self.take(&data)? {
                    drain(self.body);
                    return Ok(answer);
                }
            }
        }
        Err(CallError::Malformed(Fault::Truncated))
    }

    fn take(&mut self, data: &Bytes) -> Result<Option<Answer>, CallError> {
        match message::read(data).map_err(CallError::Malformed)? {
            message::Incoming::Response { id, answer } if id == self.id => {
                answer.map(Some).map_err(CallError::Malformed)
            }
            message::Incoming::Response { .. } | message::Incoming::Stray => {
                Err(CallError::Malformed(Fault::ForeignId))
            }
            other => {
                if let Some(session) = self.session {
                    session.hear(other, &mut self.questions);
                }
                Ok(None)
            }
        }
    }
}

impl Session {
    /// Takes in what is no answer: an announcement that the list changed, or a question, of which none but a ping is
    /// answered with more than that it is unknown.
    pub(super) fn hear(self: &Arc<Self>, message: message::Incoming, questions: &mut u32) {
        match message {
            message::Incoming::Notification { method } if method == LIST_CHANGED => {
                self.changes.send_modify(|count| *count += 1);
            }
            message::Incoming::Request { id, method } if *questions < MAX_QUESTIONS => {
                *questions += 1;
                self.tell(message::reply(&id, &method));
            }
            _ => {}
        }
    }
}

/// Reads a stream to its end after the answer, so that its connection can be used again. Most servers end it at once.
fn drain(mut body: Incoming) {
    match body.frame().now_or_never() {
        Some(None | Some(Err(_))) => {}
        Some(Some(Ok(_))) | None => {
            tokio::spawn(async move {
                let end = async {
                    // What comes after the answer is of no interest, and not much is waited for.
                    for _ in 0..16 {
                        if !matches!(body.frame().await, Some(Ok(_))) {
                            return;
                        }
                    }
                };
                timeout(Duration::from_secs(1), end).await
            });
        }
    }
}
