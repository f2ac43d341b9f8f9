//! One walk over all pages of the tool list, bounded in every direction.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cotter_core::catalogue::Observed;
use cotter_core::snapshot::Digest;
use cotter_core::tool::{self, ListError, ListPage, ToolObject};
use tokio::time::{Instant, timeout_at};

use crate::upstream::text::printable;
use crate::upstream::{CallError, Conversation, MAX_LIST, UpstreamError};

/// Pages of one list. The largest public server measured has one page of 111 kB.
const MAX_PAGES: usize = 1000;
/// Tools of one list.
const MAX_TOOLS: usize = 10_000;
/// Bytes of a cursor, which is sent back to the server.
const MAX_CURSOR: usize = 16 * 1024;
/// How long a list may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// For one page.
    pub page: Duration,
    /// For all of them.
    pub list: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { page: Duration::from_secs(10), list: Duration::from_secs(60) }
    }
}

/// Why the tool list could not be read whole. Pages are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no conversation with the server.
    #[error("{0}")]
    Open(#[source] UpstreamError),
    /// A page did not come.
    #[error("{source} (page {page})")]
    Page {
        /// The page.
        page: usize,
        /// Why not.
        source: UpstreamError,
    },
    /// A page is not one.
    #[error("{} (page {page})", printable(&.source.to_string(), 300))]
    List {
        /// The page.
        page: usize,
        /// What is wrong with it.
        source: ListError,
    },
    /// The server gave a page of a kind that a list does not have.
    #[error("failed to read the tool list: page {page} is of a `resultType` other than `complete`")]
    ResultType {
        /// The page.
        page: usize,
    },
    /// The server names a page that was read before: the list has no end.
    #[error("failed to read the tool list: page {page} leads back to a cursor that was used before")]
    RepeatedCursor {
        /// The page that names it.
        page: usize,
    },
    /// A cursor that is too long to send back.
    #[error("failed to read the tool list: page {page} has a cursor of more than {MAX_CURSOR} bytes")]
    Cursor {
        /// The page that names it.
        page: usize,
    },
    /// The list has too many pages.
    #[error("failed to read the tool list: it has more than {MAX_PAGES} pages")]
    TooManyPages,
    /// The list has too many tools.
    #[error("failed to read the tool list: it has more than {MAX_TOOLS} tools")]
    TooManyTools,
    /// The list is too large.
    #[error("failed to read the tool list: it is larger than {MAX_LIST} bytes")]
    TooLarge,
    /// The pages came, but too slowly.
    #[error("failed to read the tool list: it was not whole after {} s, at page {page}", .after.as_secs())]
    TooSlow {
        /// After this long.
        after: Duration,
        /// The page that was being read.
        page: usize,
    },
}

/// A list that was not read whole, with what was seen of it.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub error: ReadError,
    pub partial: Vec<ToolObject>,
}

impl Unfinished {
    pub(super) const fn of(error: ReadError) -> Self {
        Self { error, partial: Vec::new() }
    }
}

/// The pages of the last reading and what they were parsed to, so that a list that did not change is not parsed again.
#[derive(Debug, Default)]
pub(super) struct Memo {
    pages: Vec<(Bytes, ListPage)>,
    observed: Option<Arc<Observed>>,
}

impl Memo {
    /// Parses page `index`, or takes it from the last reading where the bytes are the same.
    fn page(&mut self, index: usize, bytes: Bytes) -> Result<&ListPage, ListError> {
        let known = self.pages.get(index).is_some_and(|(before, _)| *before == bytes);
        if !known {
            let page = tool::parse_list_result(&bytes)?;
            self.observed = None;
            self.pages.truncate(index);
            self.pages.push((bytes, page));
        }
        // It was found or pushed just now.
        self.pages.get(index).map(|(_, page)| page).ok_or(ListError::NotAnObject)
    }

    /// The whole list, once `count` pages were read.
    fn whole(&mut self, count: usize) -> Arc<Observed> {
        if self.pages.len() > count {
            self.pages.truncate(count);
            self.observed = None;
        }
        Arc::clone(self.observed.get_or_insert_with(|| {
            let bytes: Vec<u8> = self.pages.iter().flat_map(|(bytes, _)| bytes).copied().collect();
            Arc::new(Observed { tools: tools(&self.pages), digest: Digest::of(&bytes) })
        }))
    }

    /// The first page of the last reading.
    pub(super) fn first_page(&self) -> Option<&Bytes> {
        self.pages.first().map(|(bytes, _)| bytes)
    }

    /// What `count` pages showed.
    fn partial(&self, count: usize) -> Vec<ToolObject> {
        tools(self.pages.get(..count).unwrap_or_default())
    }
}

fn tools(pages: &[(Bytes, ListPage)]) -> Vec<ToolObject> {
    pages.iter().flat_map(|(_, page)| &page.tools).cloned().collect()
}

/// Reads all pages. Gives the list, and how long the server says that it lives.
pub(super) async fn walk(
    conversation: &Conversation,
    memo: &mut Memo,
    times: Times,
) -> Result<(Arc<Observed>, Option<Duration>), Unfinished> {
    let mut walk = Walk { cursors: HashSet::new(), bytes: 0, tools: 0, pages: 0, ttl: None, page_time: times.page };
    let end = Instant::now() + times.list;
    let mut cursor = None;
    loop {
        let step = timeout_at(end, walk.step(conversation, cursor.as_deref(), memo)).await;
        match step.unwrap_or(Err(ReadError::TooSlow { after: times.list, page: walk.pages + 1 })) {
            Ok(Some(next)) => cursor = Some(next),
            Ok(None) => return Ok((memo.whole(walk.pages), walk.ttl)),
            Err(error) => return Err(Unfinished { error, partial: memo.partial(walk.pages) }),
        }
    }
}

struct Walk {
    cursors: HashSet<String>,
    bytes: usize,
    tools: usize,
    /// Pages that were read and found good.
    pages: usize,
    ttl: Option<Duration>,
    page_time: Duration,
}

impl Walk {
    /// Reads one page and gives the cursor of the next one.
    async fn step(
        &mut self,
        conversation: &Conversation,
        cursor: Option<&str>,
        memo: &mut Memo,
    ) -> Result<Option<String>, ReadError> {
        let page = self.pages + 1;
        if page > MAX_PAGES {
            return Err(ReadError::TooManyPages);
        }
        let result = conversation.list_page(cursor, MAX_LIST - self.bytes, self.page_time).await;
        let bytes = result.map_err(|source| match source.exchange() {
            Some(CallError::TooLarge { .. }) => ReadError::TooLarge,
            _ => ReadError::Page { page, source },
        })?;
        self.bytes += bytes.len();
        let list = memo.page(self.pages, bytes).map_err(|source| ReadError::List { page, source })?;
        if list.result_type.as_deref().is_some_and(|kind| kind != "complete") {
            return Err(ReadError::ResultType { page });
        }
        self.tools += list.tools.len();
        if self.tools > MAX_TOOLS {
            return Err(ReadError::TooManyTools);
        }
        let ttl = list.ttl_ms.map(Duration::from_millis);
        self.ttl = self.ttl.into_iter().chain(ttl).min();
        self.pages = page;
        self.next(list.next_cursor.as_ref())
    }

    /// An empty cursor is a cursor like any other.
    fn next(&mut self, cursor: Option<&String>) -> Result<Option<String>, ReadError> {
        let Some(cursor) = cursor else { return Ok(None) };
        if cursor.len() > MAX_CURSOR {
            return Err(ReadError::Cursor { page: self.pages });
        }
        if !self.cursors.insert(cursor.clone()) {
            return Err(ReadError::RepeatedCursor { page: self.pages });
        }
        Ok(Some(cursor.clone()))
    }
}
