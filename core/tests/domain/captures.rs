//! What real servers answered, read from the exact bytes.

use cotter_core::ambiguity::ambiguous;
use cotter_core::fingerprint::{Digest, Ignore, Scheme, canonical, fingerprint, fingerprint_bytes};
use cotter_core::tool::{ToolObject, parse_list_result};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One release of one server.
pub(crate) struct Capture {
    pub(crate) server: String,
    pub(crate) version: String,
    pub(crate) tools: Vec<ToolObject>,
}

#[derive(Deserialize)]
struct File {
    raw_tools_list: Vec<String>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

impl Capture {
    /// Reads `SERVER@VERSION`.
    pub(crate) fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(crate::path("captures").join(format!("{name}.json"))).unwrap();
        let file: File = serde_json::from_str(&text).unwrap();
        let tools = file.raw_tools_list.iter().flat_map(|page| {
            let response: Response<'_> = serde_json::from_str(page).unwrap();
            parse_list_result(response.result.get().as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}")).tools
        });
        let (server, version) = name.split_once('@').unwrap();
        Self { server: server.to_owned(), version: version.to_owned(), tools: tools.collect() }
    }

    pub(crate) fn tool(&self, name: &str) -> &ToolObject {
        self.tools.iter().find(|tool| tool.name == name).unwrap()
    }
}

/// All releases, sorted by file name.
pub(crate) fn all() -> Vec<Capture> {
    let files = std::fs::read_dir(crate::path("captures")).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.iter().filter_map(|name| name.strip_suffix(".json")).map(Capture::read).collect()
}

#[test]
fn every_tool_of_every_release_is_hashable_and_no_name_is_ambiguous() {
    let captures = all();
    assert_eq!(captures.len(), 86);
    for Capture { server, version, tools } in &captures {
        assert!(!tools.is_empty(), "{server}@{version}");
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(ambiguous(&names), [], "{server}@{version}");
        for tool in tools {
            let of_value = fingerprint(&tool.value, Scheme::ToolV1, &Ignore::NONE).unwrap();
            assert_eq!(fingerprint_bytes(tool.raw.as_bytes(), Scheme::ToolV1, &Ignore::NONE), Ok(of_value));
            assert_eq!(tool.fingerprint(Scheme::ToolV1, &Ignore::NONE), Ok(of_value));
        }
    }
}

#[test]
fn canonical_forms_agree_with_an_independent_implementation() {
    // First 16 hex digits of SHA-256 over the RFC 8785 form, without a domain, as a Python implementation gave them:
    // of name, description and inputSchema, and of all members.
    for (capture, tool, core, all) in [
        ("filesystem@2026.1.14", "move_file", "ccd3a2f3e8712165", "2ff78a353e77a5bf"),
        ("filesystem@2026.7.4", "move_file", "ccd3a2f3e8712165", "5bdbc11400ab5c98"),
        ("filesystem@2.0.1", "move_file", "58bf2e2a81b10a40", "df5d8cc5da5acaed"),
        ("everything@2026.8.31", "echo", "87a6b5c343ddeeed", "7f44ccc849658890"),
    ] {
        let capture = Capture::read(capture);
        let value = &*capture.tool(tool).value;
        let some =
            json!({"name": value["name"], "description": value["description"], "inputSchema": value["inputSchema"]});
        let short = |value: &Value| Digest::of(&canonical(value).unwrap()).to_string()[..16].to_owned();
        assert_eq!((short(&some), short(value)), (core.to_owned(), all.to_owned()), "{tool} of {}", capture.version);
    }
}
