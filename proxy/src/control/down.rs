//! Snapshots, as they come.

use std::{sync::Arc, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use cotter_core::{name::Namespace, snapshot::Sealed};
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::{Announced, ControlError, Pauses, client::Client};
use crate::{contact::Contact, ledger::Ledger};

/// The operator keeps a quiet stream alive every 15 s; three in a row missing means that it is gone.
const SILENCE: Duration = Duration::from_secs(45);

/// How long the operator may take to begin an answer.
const ANSWER: Duration = Duration::from_secs(15);

/// Longest line: a snapshot of 10,000 tools with their definitions has about 8 MiB.
const LINE: usize = 32 << 20;

/// Follows the stream.
pub(super) struct Down {
    pub(super) client: Arc<Client>,
    pub(super) snapshots: watch::Sender<Option<Sealed>>,
    pub(super) contact: Contact,
    /// Told each time that a stream opened: reports count from then on.
    pub(super) opened: [Arc<Notify>; 2],
    /// Where what is said of budgets goes, and the namespace that they are of.
    pub(super) heard: (Namespace, Arc<Ledger>),
}

impl Down {
    pub(super) async fn run(self) {
        let mut pauses = Pauses::default();
        loop {
            match self.follow(&mut pauses).await {
                Ok(()) => tracing::info!("the operator ended the snapshot stream"),
                Err(error) => tracing::warn!(%error, "lost the snapshot stream"),
            }
            pauses.pause().await;
        }
    }

    async fn follow(&self, pauses: &mut Pauses) -> Result<(), ControlError> {
        let answer = timeout(ANSWER, self.client.send(Method::GET, "snapshots", Bytes::new()));
        let mut body = answer.await.map_err(|_| ControlError::Silent)??.into_body();
        self.contact.heard();
        self.opened.iter().for_each(|opened| opened.notify_one());
        let mut waiting = BytesMut::new();
        while let Some(chunk) = next(&mut body).await? {
            waiting.extend_from_slice(&chunk);
            while let Some(end) = memchr::memchr(b'\n', &waiting) {
                self.line(&waiting.split_to(end))?;
                waiting.advance(1);
                self.contact.heard();
                pauses.reset();
            }
            if waiting.len() > LINE {
                return Err(ControlError::Line(format!("longer than {LINE} bytes")));
            }
        }
        Ok(())
    }

    fn line(&self, line: &[u8]) -> Result<(), ControlError> {
        let bad = |why: String| ControlError::Line(why);
        let announced: Announced<'_> = serde_json::from_slice(line).map_err(|error| bad(error.to_string()))?;
        if let Some(shares) = &announced.budgets {
            let (namespace, ledger) = &self.heard;
            ledger.told(namespace, shares);
        }
        let Some(snapshot) = announced.snapshot else { return Ok(()) };
        let digest = announced.digest.ok_or_else(|| bad("a snapshot without its digest".to_owned()))?;
        let sealed = Sealed::open(snapshot.get(), Some(digest)).map_err(|error| bad(error.to_string()))?;
        self.snapshots.send_if_modified(|held| {
            let new = held.as_ref().is_none_or(|held| held.digest() != digest);
            if new {
                *held = Some(sealed);
            }
            new
        });
        Ok(())
    }
}

async fn next(body: &mut Incoming) -> Result<Option<Bytes>, ControlError> {
    loop {
        match timeout(SILENCE, body.frame()).await {
            Err(_) => return Err(ControlError::Silent),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(ControlError::Reach(error.to_string())),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(_trailers) => continue,
            },
        }
    }
}
