//! The printer columns of the CustomResourceDefinitions, evaluated here as the API server does it for kubectl.

use std::str::FromStr;

use cotter_crds::install;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use serde_json::Value;

use crate::table::{Table, age};

/// A kind that a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A server.
    McpServer,
    /// What was approved.
    ToolPin,
    /// Who may act for whom.
    AgentDelegation,
}

impl Kind {
    /// All kinds, in the order of `kubectl get cotter`.
    pub(crate) const ALL: [Self; 3] = [Self::McpServer, Self::ToolPin, Self::AgentDelegation];

    /// The kind as manifests write it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::McpServer => "McpServer",
            Self::ToolPin => "ToolPin",
            Self::AgentDelegation => "AgentDelegation",
        }
    }

    /// The kind of a manifest, whatever its group.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.is_of(object))
    }

    /// Whether the object is of this kind.
    pub(crate) fn is_of(self, object: &Value) -> bool {
        let ours = object.get("apiVersion").and_then(Value::as_str) == Some(cotter_crds::API_VERSION);
        ours && object.get("kind").and_then(Value::as_str) == Some(self.name())
    }

    fn definition(self) -> Option<CustomResourceDefinition> {
        install::all().into_iter().find(|definition| definition.spec.names.kind == self.name())
    }
}

impl FromStr for Kind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let named = |definition: &CustomResourceDefinition| {
            let names = &definition.spec.names;
            let short = names.short_names.iter().flatten().any(|short| *short == lower);
            short
                || names.plural == lower
                || names.singular.as_deref() == Some(&lower)
                || names.kind.to_ascii_lowercase() == lower
        };
        let found = Self::ALL.into_iter().find(|kind| kind.definition().is_some_and(|definition| named(&definition)));
        found.ok_or_else(|| format!("{text:?} is no kind: write mcps, tpin or adel"))
    }
}

/// An object's name.
pub(crate) fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The table of some objects of one kind; `wide` adds the columns of `-o wide`.
pub(crate) fn table(kind: Kind, objects: &[Value], wide: bool, now: Timestamp) -> Table {
    let columns = columns(kind, wide);
    let mut headings = vec!["NAME".to_owned()];
    headings.extend(columns.iter().map(|column| column.name.to_uppercase()));
    let mut table = Table::new(headings);
    for object in objects {
        let mut cells = vec![name(object).to_owned()];
        cells.extend(columns.iter().map(|column| cell(object, column, now)));
        table.row(cells);
    }
    table
}

fn columns(kind: Kind, wide: bool) -> Vec<CustomResourceColumnDefinition> {
    let versions = kind.definition().map(|definition| definition.spec.versions).unwrap_or_default();
    let columns = versions.into_iter().flat_map(|version| version.additional_printer_columns.unwrap_or_default());
    columns.filter(|column| wide || column.priority.unwrap_or(0) == 0).collect()
}

fn cell(object: &Value, column: &CustomResourceColumnDefinition, now: Timestamp) -> String {
    match at(object, &column.json_path) {
        Some(Value::String(text)) if column.type_ == "date" => text
            .parse()
            .map_or_else(|_| "<unknown>".to_owned(), |then: Timestamp| age(now.as_second() - then.as_second())),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(value) => value.to_string(),
    }
}

/// The value at a JSONPath of the two forms that the definitions use: members, and the list element whose `type` is given.
fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(filter) = rest.strip_prefix("[?(@.type==\"") {
            let (wanted, after) = filter.split_once("\")]")?;
            let is_wanted = |item: &&Value| item.get("type").and_then(Value::as_str) == Some(wanted);
            value = value.as_array()?.iter().find(is_wanted)?;
            rest = after;
        } else {
            let member = rest.strip_prefix('.')?;
            let end = member.find(['.', '[']).unwrap_or(member.len());
            let (name, after) = member.split_at(end);
            value = value.get(name)?;
            rest = after;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_known_by_every_name() {
        for text in ["mcps", "mcpserver", "mcpservers", "McpServer"] {
            assert_eq!(text.parse(), Ok(Kind::McpServer), "{text}");
        }
        assert_eq!("tpin".parse(), Ok(Kind::ToolPin));
        assert_eq!("adel".parse(), Ok(Kind::AgentDelegation));
        assert!("pods".parse::<Kind>().is_err());
    }

    #[test]
    fn every_column_of_the_definitions_can_be_evaluated() {
        for kind in Kind::ALL {
            for column in columns(kind, true) {
                let leaf = column.json_path.rsplit(['.', ']']).next().unwrap();
                assert!(!leaf.is_empty() && !leaf.contains('('), "{}", column.json_path);
            }
        }
    }

    #[test]
    fn columns_are_those_of_kubectl() {
        let object = json!({
            "metadata": {"name": "support", "creationTimestamp": "2026-11-30T00:00:00Z"},
            "status": {"conditions": [{"type": "InSync", "status": "False"}, {"type": "Ready", "status": "True"}],
                       "tools": {"callableOfDeclared": "1/2", "drifted": 1}},
        });
        let now = "2026-11-30T00:00:09Z".parse().unwrap();
        let text = table(Kind::McpServer, &[object], false, now).text();
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(lines.next().unwrap(), ["NAME", "READY", "TOOLS", "DRIFT", "PROXIES", "ENDPOINT", "AGE"]);
        assert_eq!(lines.next().unwrap(), ["support", "True", "1/2", "1", "9s"]);
    }
}
