//! The input of one evaluation, put together from parts that were made before.

use cotter_core::{
    decision::{Era, Kind},
    name::ToolName,
};
use jiff::Timestamp;
use regorus::Value;

use crate::{
    PinFacts,
    ask::{Ask, ListAsk},
    authority::Authority,
    document::INPUT_VERSION,
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
    era: Era,
    method: &'a str,
    arguments: Option<&'a str>,
    now: Timestamp,
}

impl<'a> Question<'a> {
    pub(crate) fn new(ask: &Ask<'a>, authority: &'a Authority) -> Self {
        let Ask { principal: _, authority: _, era, method, kind, tool, pin, arguments, now } = *ask;
        let arguments = arguments.filter(|_| kind == Kind::Call);
        Self { authority, kind, tool, pin, era, method, arguments, now }
    }

    pub(crate) fn of_list(ask: &ListAsk<'a>, authority: &'a Authority, tool: &'a ToolName, pin: PinFacts) -> Self {
        let ListAsk { principal: _, authority: _, era, method, tools: _, now } = *ask;
        Self { authority, kind: Kind::List, tool, pin, era, method, arguments: None, now }
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

    /// The input for one tool. The arguments are parsed only for a rule set that reads them.
    ///
    /// # Errors
    /// Arguments that are not JSON.
    pub(crate) fn document(&self, server: &Value, tool: Value, with_arguments: bool) -> Result<Value, String> {
        let args = match self.arguments.filter(|_| with_arguments) {
            None => None,
            Some(raw) => {
                Some(Value::from_json_str(raw).map_err(|error| format!("failed to read the arguments: {error}"))?)
            }
        };
        Ok(self.build(server, ("tool", tool), args))
    }

    /// The input for many tools.
    pub(crate) fn list_document(&self, server: &Value, tools: Value) -> Value {
        self.build(server, ("tools", tools), None)
    }

    fn build(&self, server: &Value, (subject, value): (&'static str, Value), args: Option<Value>) -> Value {
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
            ("args", args),
        ])
    }
}
