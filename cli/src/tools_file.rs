//! Tools from a file: one tool object, an array of tools, a `tools/list` result, or a whole JSON-RPC response.
//!
//! The exact bytes of each tool are kept: what is hashed is what the server sent.

use std::io::Read as _;

use cotter_core::{
    scan::visible,
    strict::{self, Limits},
    tool::{ListKind, ToolObject},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::{Doing as _, Failure};

/// A list of tools is at most this large: the largest real one measured has 111 kB.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
}

/// Reads the tools of a file; `-` is standard input.
pub(crate) fn read(file: &str) -> Result<Vec<ToolObject>, Failure> {
    let bytes = bytes(file)?;
    let name = if file == "-" { "standard input" } else { file };
    tools(&bytes).map_err(|why| Failure::cannot(format!("failed to read tools from {name}: {why}")))
}

fn bytes(file: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)),
    };
    read.doing(format!("read {file}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::cannot(format!("failed to read {file}: it is larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

fn tools(bytes: &[u8]) -> Result<Vec<ToolObject>, String> {
    strict::check(bytes, Limits::default()).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?.trim();
    let raw: Vec<&RawValue> = if text.starts_with('[') {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    } else {
        let response: Response<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match (response.result, response.tools) {
            (Some(result), _) => return tools(result.get().as_bytes()),
            (None, Some(tools)) => tools,
            (None, None) => vec![serde_json::from_str(text).map_err(|error| error.to_string())?],
        }
    };
    let parse = |(index, raw): (usize, &&RawValue)| {
        ToolObject::parse(raw.get(), ListKind::Tools).map_err(|error| format!("tool {index}: {error}"))
    };
    raw.iter().enumerate().map(parse).collect()
}

/// A tool's name as a line of a terminal or a file shows it: nothing invisible, no tab, no line break.
pub(crate) fn shown(name: &str) -> String {
    visible(name).replace(['\t', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_gives_the_same_tools() {
        let tool = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
        let list = format!(r#"{{"tools":[{tool}]}}"#);
        let response = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{list}}}"#);
        for text in [tool.to_owned(), format!("[{tool}]"), list, response] {
            let tools = tools(text.as_bytes()).unwrap();
            assert_eq!((tools.len(), &*tools[0].raw), (1, tool));
        }
    }

    #[test]
    fn what_is_no_tool_is_refused() {
        for text in ["", "{}", "[1]", r#"{"name":1}"#, r#"{"name":"a","name":"b"}"#, r#"{"result":{}}"#] {
            assert!(tools(text.as_bytes()).is_err(), "{text}");
        }
    }
}
