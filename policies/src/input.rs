//! The input of one evaluation, put together from parts that were made before.

use cotter_core::{
    decision::{Era, Kind},
    name::ToolName,
};
use jiff::Timestamp;
use regorus::Value;

use crate::{
    PinFacts,
    arguments::Arguments,
    ask::{Ask, ListAsk, Listed},
    authority::Authority,
    document::{AnnotationsDocument, INPUT_VERSION},
    engine::EvalError,
    facts::ToolFact,
    reads::Reads,
    value::{object, text},
};

const LIST: &str = "tools/list";
const CALL: &str = "tools/call";

/// One question with everything that its input is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) authority: &'a Authority,
    pub(crate) kind: Kind,
    pub(crate) tool: &'a ToolName,
    pub(crate) pin: PinFacts,
    annotations: Option<&'a serde_json::Value>,
    era: Era,
    method: &'a str,
    arguments: Option<&'a str>,
    now: Timestamp,
}

impl<'a> Question<'a> {
    pub(crate) fn new(ask: &Ask<'a>, authority: &'a Authority) -> Self {
        let Ask { principal: _, authority: _, era, method, kind, tool, pin, annotations, arguments, now } = *ask;
        let arguments = arguments.filter(|_| kind == Kind::Call);
        Self { authority, kind, tool, pin, annotations, era, method, arguments, now }
    }

    pub(crate) fn of_list(ask: &ListAsk<'a>, authority: &'a Authority, tool: &'a ToolName, listed: Listed<'a>) -> Self {
        let ListAsk { principal: _, authority: _, era, method, tools: _, now } = *ask;
        let Listed { pin, annotations } = listed;
        Self { authority, kind: Kind::List, tool, pin, annotations, era, method, arguments: None, now }
    }

    /// The same question as a list asks it.
    pub(crate) fn as_list(&self) -> Self {
        Self { kind: Kind::List, method: LIST, arguments: None, ..*self }
    }

    pub(crate) fn has_usual_method(&self) -> bool {
        self.method == if self.kind == Kind::List { LIST } else { CALL }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.era == Era::Modern
    }

    /// Bytes of the arguments.
    pub(crate) fn size(&self) -> usize {
        self.arguments.map_or(0, str::len)
    }

    /// What the server says of the tool, for a rule set that reads it.
    pub(crate) fn said(&self, reads: &Reads) -> Option<AnnotationsDocument> {
        let said = self.annotations.filter(|_| reads.said_of_tool()).map(AnnotationsDocument::of);
        said.filter(|said| *said != AnnotationsDocument::default())
    }

    /// The tool as this rule set sees it.
    pub(crate) fn tool_document(&self, tool: &ToolFact, reads: &Reads) -> Value {
        tool.document(self.pin, self.said(reads).as_ref())
    }

    /// The input for one tool, with what the rule set reads of the arguments.
    ///
    /// # Errors
    /// Arguments that cannot be decided on.
    pub(crate) fn document(&self, server: &Value, tool: &ToolFact, reads: &Reads) -> Result<Value, EvalError> {
        let arguments = match self.kind {
            Kind::Call => Arguments::read(self.arguments, reads)?,
            Kind::List => Arguments::default(),
        };
        Ok(self.build(server, ("tool", self.tool_document(tool, reads)), arguments))
    }

    /// The input for many tools.
    pub(crate) fn list_document(&self, server: &Value, tools: Value) -> Value {
        self.build(server, ("tools", tools), Arguments::default())
    }

    fn build(&self, server: &Value, (subject, value): (&'static str, Value), arguments: Arguments) -> Value {
        let era = if self.is_modern() { "modern" } else { "legacy" };
        let kind = if self.kind == Kind::List { "list" } else { "call" };
        let operation = object([("method", Some(text(self.method))), ("kind", Some(text(kind)))]);
        object([
            ("version", Some(text(INPUT_VERSION))),
            ("era", Some(text(era))),
            ("protocol", Some(text("mcp"))),
            ("now", Some(text(&self.now.to_string()))),
            ("server", Some(server.clone())),
            ("principal", Some(self.authority.principal.clone())),
            ("grants", Some(self.authority.grants.clone())),
            ("operation", Some(operation)),
            (subject, Some(value)),
            ("args", arguments.value),
            ("argsDigest", arguments.digest),
        ])
    }
}
