//! How a conversation begins: what the server speaks, and what it says of itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cotter_core::report::Surface;
use cotter_core::snapshot::Digest;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::error::{CallError, UpstreamError};
use super::message::{self, Era, LEGACY, MODERN};
use super::pipe::Pipe;
use super::text::printable;

pub(super) const INITIALIZE: &str = "open a session with `initialize`";
pub(super) const DISCOVER: &str = "ask the server what it is with `server/discover`";

/// A description of a server of more bytes than this is refused: real instructions are a few kilobytes.
pub(super) const MAX_HELLO: usize = 256 * 1024;
/// Names and versions that a server gives itself are cut here.
const MAX_TEXT: usize = 128;
/// Capabilities beyond these are not worth a place in status.
const MAX_CAPABILITIES: usize = 32;

/// What came out of the handshake.
#[derive(Debug)]
pub(super) struct Hello {
    /// The line of the protocol.
    pub era: Era,
    /// The revision, one of those known here.
    pub revision: &'static str,
    /// What the server says of itself.
    pub surface: Arc<Surface>,
    /// Its instructions, exact text.
    pub instructions: Option<Arc<str>>,
    /// Whether it says that it announces changes of its tool list.
    pub list_changed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized<'a> {
    protocol_version: String,
    #[serde(borrow, default)]
    capabilities: BTreeMap<String, &'a RawValue>,
    #[serde(default)]
    server_info: Info,
    instructions: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered<'a> {
    supported_versions: Vec<String>,
    #[serde(borrow, default)]
    capabilities: BTreeMap<String, &'a RawValue>,
    instructions: Option<String>,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo", default)]
    server_info: Info,
}

#[derive(Default, Deserialize)]
struct Info {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

/// Reads the result of `initialize`.
pub(super) fn initialized(result: &Bytes, transport: &str) -> Result<Hello, UpstreamError> {
    let shape = UpstreamError::Shape { doing: INITIALIZE, problem: "is not what `initialize` gives" };
    let said: Initialized<'_> = serde_json::from_slice(result).map_err(|_| shape)?;
    let revision = LEGACY.into_iter().find(|known| *known == said.protocol_version).ok_or_else(|| {
        UpstreamError::Revision { doing: INITIALIZE, revision: printable(&said.protocol_version, 32) }
    })?;
    Ok(hello(Era::Legacy, revision, transport, &said.server_info, &said.capabilities, said.instructions))
}

/// Reads the result of `server/discover`.
pub(super) fn discovered(result: &Bytes, transport: &str) -> Result<Hello, UpstreamError> {
    let shape = UpstreamError::Shape { doing: DISCOVER, problem: "is not what `server/discover` gives" };
    let said: Discovered<'_> = serde_json::from_slice(result).map_err(|_| shape)?;
    if !said.supported_versions.iter().any(|version| version == MODERN) {
        let first = said.supported_versions.first().map_or("", String::as_str);
        return Err(UpstreamError::Revision { doing: DISCOVER, revision: printable(first, 32) });
    }
    Ok(hello(Era::Modern, MODERN, transport, &said.meta.server_info, &said.capabilities, said.instructions))
}

fn hello(
    era: Era,
    revision: &'static str,
    transport: &str,
    info: &Info,
    capabilities: &BTreeMap<String, &RawValue>,
    instructions: Option<String>,
) -> Hello {
    let surface = Surface {
        protocol: revision.to_owned(),
        transport: transport.to_owned(),
        server_name: printable(&info.name, MAX_TEXT),
        server_version: printable(&info.version, MAX_TEXT),
        instructions_digest: instructions.as_ref().map(|text| Digest::of(text.as_bytes())),
        capabilities: capabilities.keys().take(MAX_CAPABILITIES).map(|name| printable(name, MAX_TEXT)).collect(),
    };
    let list_changed = capabilities.get("tools").is_some_and(|tools| announces(tools));
    Hello { era, revision, surface: Arc::new(surface), instructions: instructions.map(Arc::from), list_changed }
}

fn announces(tools: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tools {
        #[serde(default)]
        list_changed: bool,
    }
    serde_json::from_str::<Tools>(tools.get()).is_ok_and(|tools| tools.list_changed)
}

/// The handshake with a process. A server that refuses `initialize` is asked what it is; one that says nothing at all is
/// given up at the end of `start`.
pub(super) async fn over_pipe(pipe: &Pipe, start: Duration) -> Result<Hello, UpstreamError> {
    let end = Instant::now() + start;
    match timeout_at(end, initialize(pipe, start)).await {
        Err(_) => Err(UpstreamError::Exchange { doing: INITIALIZE, source: CallError::Timeout { dispatched: true } }),
        Ok(Err(refusal @ UpstreamError::Refused { .. })) => {
            let left = end.saturating_duration_since(Instant::now());
            let answer = pipe.exchange(message::discover, left).await;
            let answer = answer.map_err(|source| UpstreamError::Exchange { doing: DISCOVER, source })?;
            // A server that knows neither is told about by what it said first.
            discovered(&answer.result(DISCOVER).map_err(|_| refusal)?, "stdio")
        }
        Ok(outcome) => outcome,
    }
}

async fn initialize(pipe: &Pipe, deadline: Duration) -> Result<Hello, UpstreamError> {
    let failed = |source| UpstreamError::Exchange { doing: INITIALIZE, source };
    let answer = pipe.exchange(message::initialize, deadline).await.map_err(failed)?;
    let answer = answer.within(MAX_HELLO as u64).map_err(failed)?;
    let hello = initialized(&answer.result(INITIALIZE)?, "stdio")?;
    pipe.tell(message::initialized()).await.map_err(failed)?;
    Ok(hello)
}
