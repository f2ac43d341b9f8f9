//! `cotter get`: the objects of a running `up`, as `kubectl get` would show them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    caller,
    columns::{self, Kind},
    failure::{Doing as _, Failure, Outcome},
    running::Running,
    yaml,
};

/// Show McpServers, ToolPins or AgentDelegations with their status, as kubectl would
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// mcps, tpin, adel, or the whole names; several separated by commas
    #[arg(value_name = "KIND", value_parser = kinds)]
    kinds: Kinds,
    /// Only the object of this name
    name: Option<String>,
    /// The folder of manifests whose `up` runs; the only running one by default
    #[arg(short, long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Wide,
    Yaml,
    Json,
}

#[derive(Debug, Clone)]
struct Kinds(Vec<Kind>);

fn kinds(text: &str) -> Result<Kinds, String> {
    text.split(',').map(str::parse).collect::<Result<_, String>>().map(Kinds)
}

/// Runs the command.
pub(crate) async fn run(options: &Options) -> Outcome {
    let running = Running::find(options.folder.as_deref()).await?;
    let objects = caller::objects(&running).await?.items;
    let named = |object: &Value| options.name.as_deref().is_none_or(|name| columns::name(object) == name);
    let wanted = |kind: &Kind| objects.iter().filter(|object| kind.is_of(object) && named(object)).cloned().collect();
    let groups: Vec<(Kind, Vec<Value>)> = options.kinds.0.iter().map(|kind| (*kind, wanted(kind))).collect();
    if let (Some(name), true) = (&options.name, groups.iter().all(|(_, objects)| objects.is_empty())) {
        return Err(Failure::no(format!(
            "no {} named {name:?} in {}",
            groups_text(&options.kinds),
            running.state.folder().display()
        )));
    }
    print(&groups, options)
}

fn groups_text(kinds: &Kinds) -> String {
    let names: Vec<&str> = kinds.0.iter().map(|kind| kind.name()).collect();
    names.join(" or ")
}

fn print(groups: &[(Kind, Vec<Value>)], options: &Options) -> Outcome {
    let items: Vec<&Value> = groups.iter().flat_map(|(_, objects)| objects).collect();
    let value = match (&options.name, items.as_slice()) {
        (Some(_), [one]) => (*one).clone(),
        _ => json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}),
    };
    match options.output {
        Some(Format::Json) => println!("{}", serde_json::to_string_pretty(&value).doing("write the objects")?),
        Some(Format::Yaml) => print!("{}", yaml::text(&value)?),
        wide => {
            let tables =
                groups.iter().map(|(kind, objects)| columns::table(*kind, objects, wide.is_some(), Timestamp::now()));
            let texts: Vec<String> = tables.filter(|table| !table.is_empty()).map(|table| table.text()).collect();
            match texts.is_empty() {
                true => eprintln!("No resources found."),
                false => print!("{}", texts.join("\n")),
            }
        }
    }
    Ok(())
}
