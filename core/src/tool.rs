//! The tool object as a server sent it, and the page of a list that carried it.
//!
//! Never a typed model: what such a model drops is where something can hide. The exact bytes are kept beside the value.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fingerprint::{Fingerprint, HashError, Ignore, Scheme, fingerprint};
use crate::strict::{self, Limits, StrictError};

/// One entry of a list: a tool, or anything else that has a name of its own ([`ListKind`]).
#[derive(Debug, Clone)]
pub struct ToolObject {
    /// What identifies the entry within its list, as sent.
    pub name: String,
    /// The exact text of the object.
    pub raw: Arc<str>,
    /// The same, parsed strictly.
    pub value: Arc<Value>,
}

/// Which list a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// `tools/list`, by `name`.
    Tools,
    /// `prompts/list`, by `name`.
    Prompts,
    /// `resources/templates/list`, by `uriTemplate`.
    ResourceTemplates,
    /// `resources/list`, by `uri`.
    Resources,
}

/// One page of a list result.
#[derive(Debug, Clone)]
pub struct ListPage {
    /// The entries in the order sent.
    pub tools: Vec<ToolObject>,
    /// Where the next page begins; an empty text is a legal cursor, absent and `null` mean that there is none.
    pub next_cursor: Option<String>,
    /// How long the server lets the list be kept (2026-07-28), in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Who may share the list (2026-07-28), as sent.
    pub cache_scope: Option<String>,
    /// `complete`, or whatever the server says instead (2026-07-28); the caller refuses what it does not know.
    pub result_type: Option<String>,
}

/// Why bytes are not a page of a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// Not strict JSON.
    #[error("failed to read the list result: {0}")]
    Strict(#[from] StrictError),
    /// Not an object.
    #[error("failed to read the list result: it is not a JSON object")]
    NotAnObject,
    /// A member that has to be there.
    #[error("failed to read the list result: it has no member `{0}`")]
    Missing(&'static str),
    /// A member of the wrong type.
    #[error("failed to read the list result: `{member}` is not {expected}")]
    Shape {
        /// The member.
        member: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// An entry that nobody could name or call.
    #[error("failed to read entry {index} of `{list}`: {problem}")]
    Entry {
        /// The list.
        list: &'static str,
        /// The place of the entry, counted from 0.
        index: usize,
        /// What is wrong with it.
        problem: String,
    },
}

impl ListKind {
    /// The member of the result that holds the entries.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Resources => "resources",
        }
    }

    /// The member of an entry that names it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::ResourceTemplates => "uriTemplate",
            Self::Resources => "uri",
        }
    }
}

impl ToolObject {
    /// Reads one object from its text.
    ///
    /// # Errors
    /// The text is not strict JSON, not an object, or has no name.
    pub fn parse(text: &str, kind: ListKind) -> Result<Self, ListError> {
        entry(text, kind, 0, Limits::default())
    }

    /// The fingerprint of the object as it was sent.
    ///
    /// # Errors
    /// As [`fingerprint_bytes`](crate::fingerprint::fingerprint_bytes).
    pub fn fingerprint(&self, scheme: Scheme, ignore: &Ignore) -> Result<Fingerprint, HashError> {
        match strict::unsafe_literal(&self.raw).filter(|_| strict::unsafe_integer(&self.value).is_none()) {
            Some(literal) => Err(HashError::UnsafeLiteral(literal.to_owned())),
            None => fingerprint(&self.value, scheme, ignore),
        }
    }
}

/// Reads the `result` object of a `tools/list` response.
///
/// # Errors
/// The bytes are not strict JSON, or a member that matters has another shape than MCP gives it.
pub fn parse_list_result(bytes: &[u8]) -> Result<ListPage, ListError> {
    parse_list(bytes, ListKind::Tools, Limits::default())
}

/// Reads the `result` object of any list response.
///
/// # Errors
/// As [`parse_list_result`].
pub fn parse_list(bytes: &[u8], kind: ListKind, limits: Limits) -> Result<ListPage, ListError> {
    strict::check(bytes, limits)?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(ListError::NotAnObject);
    }
    let members: Members<'_> = serde_json::from_slice(bytes).map_err(|_| ListError::NotAnObject)?;
    let list = members.list(kind).ok_or(ListError::Missing(kind.member()))?;
    let shape = ListError::Shape { member: kind.member(), expected: "an array" };
    let entries: Vec<&RawValue> = serde_json::from_str(list.get()).map_err(|_| shape)?;
    let entries = entries.into_iter().enumerate().map(|(index, raw)| entry(raw.get(), kind, index, limits));
    Ok(ListPage {
        tools: entries.collect::<Result<_, _>>()?,
        next_cursor: member(members.next_cursor, "nextCursor", "a string")?,
        ttl_ms: member(members.ttl_ms, "ttlMs", "a whole number of milliseconds")?,
        cache_scope: member(members.cache_scope, "cacheScope", "a string")?,
        result_type: member(members.result_type, "resultType", "a string")?,
    })
}

/// The members of a list result that are read; the rest is the server's business.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    prompts: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_templates: Option<&'a RawValue>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
    #[serde(borrow)]
    next_cursor: Option<&'a RawValue>,
    #[serde(borrow)]
    ttl_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_scope: Option<&'a RawValue>,
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn list(&self, kind: ListKind) -> Option<&'a RawValue> {
        match kind {
            ListKind::Tools => self.tools,
            ListKind::Prompts => self.prompts,
            ListKind::ResourceTemplates => self.resource_templates,
            ListKind::Resources => self.resources,
        }
    }
}

fn member<T: serde::de::DeserializeOwned>(
    raw: Option<&RawValue>,
    member: &'static str,
    expected: &'static str,
) -> Result<Option<T>, ListError> {
    raw.map_or(Ok(None), |raw| serde_json::from_str(raw.get()).map_err(|_| ListError::Shape { member, expected }))
}

fn entry(text: &str, kind: ListKind, index: usize, limits: Limits) -> Result<ToolObject, ListError> {
    let wrong = |problem: String| ListError::Entry { list: kind.member(), index, problem };
    let value = strict::parse(text.as_bytes(), limits).map_err(|error| wrong(error.to_string()))?;
    let members = value.as_object().ok_or_else(|| wrong("it is not a JSON object".to_owned()))?;
    let name = members.get(kind.key()).ok_or_else(|| wrong(format!("it has no member `{}`", kind.key())))?;
    let name = name.as_str().ok_or_else(|| wrong(format!("`{}` is not a string", kind.key())))?.to_owned();
    Ok(ToolObject { name, raw: Arc::from(text), value: Arc::new(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_the_exact_text_of_each_tool() {
        let page = parse_list_result(br#" {"tools":[ {"name": "b" ,"x":1.0},{"name":"a"}],"nextCursor":"","ttlMs":5}"#);
        let page = page.unwrap();
        assert_eq!(page.tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(&*page.tools[0].raw, r#"{"name": "b" ,"x":1.0}"#);
        assert_eq!((page.next_cursor.as_deref(), page.ttl_ms), (Some(""), Some(5)));
    }

    #[test]
    fn no_cursor_and_null_are_the_end_of_the_list() {
        assert_eq!(parse_list_result(br#"{"tools":[]}"#).unwrap().next_cursor, None);
        assert_eq!(parse_list_result(br#"{"tools":[],"nextCursor":null}"#).unwrap().next_cursor, None);
    }

    #[test]
    fn a_wrong_shape_is_named() {
        let said = |text: &str| parse_list_result(text.as_bytes()).unwrap_err().to_string();
        assert!(said("[]").contains("not a JSON object"));
        assert!(said("{}").contains("no member `tools`"));
        assert!(said(r#"{"tools":{}}"#).contains("`tools` is not an array"));
        assert!(said(r#"{"tools":null}"#).contains("no member `tools`"));
        assert!(said(r#"{"tools":[],"nextCursor":1}"#).contains("`nextCursor` is not a string"));
        assert!(said(r#"{"tools":[],"ttlMs":-1}"#).contains("`ttlMs` is not a whole number"));
        assert!(said(r#"{"tools":[{"name":"a"},3]}"#).contains("entry 1 of `tools`: it is not a JSON object"));
        assert!(said(r#"{"tools":[{"title":"a"}]}"#).contains("entry 0 of `tools`: it has no member `name`"));
        assert!(said(r#"{"tools":[{"name":7}]}"#).contains("`name` is not a string"));
        assert!(said(r#"{"tools":[{"name":"a","name":"b"}]}"#).contains("`/tools/0/name` occurs twice"));
    }

    #[test]
    fn other_lists_have_their_own_key() {
        let bytes = br#"{"resourceTemplates":[{"uriTemplate":"policy://{topic}","name":"p"}]}"#;
        let page = parse_list(bytes, ListKind::ResourceTemplates, Limits::default()).unwrap();
        assert_eq!(page.tools[0].name, "policy://{topic}");
        assert!(parse_list(bytes, ListKind::Prompts, Limits::default()).is_err());
    }
}
