//! The server's own announcements over HTTP: the legacy GET stream, or the modern `subscriptions/listen`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};

use super::super::error::CallError;
use super::super::message::{self, Era};
use super::super::sse::Parser;
use super::{Session, route};

/// Announcements are small.
const MAX_EVENT: usize = 64 * 1024;
/// Between streams: first this, then twice as much each time that one did not last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// Follows until the server says that it has no such stream. Each stream after the first counts as a change, since something
/// may have been announced in between; the pause bounds how often.
pub(super) async fn run(session: Arc<Session>) {
    let (mut pause, mut first) = (FIRST_PAUSE, true);
    loop {
        let began = Instant::now();
        match connect(&session).await {
            Ok(response) if is_events(&response) => {
                if !first {
                    session.changes.send_modify(|count| *count += 1);
                }
                first = false;
                listen(&session, response.into_body()).await;
            }
            // 404 is a session that the next request opens anew; anything else of the kind means that there is none.
            Ok(response) if response.status().is_client_error() && response.status() != 404 => return,
            Ok(response) if response.status().is_success() => return,
            Ok(_) | Err(_) => {}
        }
        pause = if began.elapsed() > LAST_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LAST_PAUSE) };
        sleep(pause).await;
    }
}

async fn connect(session: &Session) -> Result<Response<Incoming>, CallError> {
    let current = session.current.load_full();
    let mut headers = current.headers.clone();
    match current.hello.era {
        Era::Legacy => {
            headers.remove(header::CONTENT_TYPE);
            headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
            session.endpoint.send(Method::GET, headers, Bytes::new()).await
        }
        Era::Modern => {
            route(&mut headers, "subscriptions/listen", None);
            let id = session.next.fetch_add(1, Ordering::Relaxed);
            session.endpoint.send(Method::POST, headers, message::listen(id).into()).await
        }
    }
}

fn is_events(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    response.status().is_success() && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Reads one stream to its end. What is wrong on it ends it, and is no worse than its end.
async fn listen(session: &Arc<Session>, mut body: Incoming) {
    let (mut parser, mut questions) = (Parser::new(MAX_EVENT), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        parser.push(&data);
        loop {
            match parser.next() {
                Ok(Some(data)) => match message::read(&data) {
                    Ok(message) => session.hear(message, &mut questions),
                    Err(_) => return,
                },
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}
