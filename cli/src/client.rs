//! `cotter list` and `cotter call`: a small client that goes through the sidecar like any other.
//!
//! It shows what a client is told and, apart from that, what the owner is told: the owner learns the true reason from the audit
//! of the running `up`, by the id that every answer carries.

use std::path::PathBuf;

use clap::Args;
use cotter_core::audit::Record;
use serde_json::{Value, json};

use crate::{
    caller::{Caller, quoted},
    failure::{Doing as _, Failure, Outcome},
    running::Running,
    session::{Reply, Session},
    table::Table,
    wire::Server,
};

/// List the tools of a server as one caller sees them
#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// The McpServer's name
    server: String,
    #[command(flatten)]
    caller: Caller,
    /// The folder of manifests whose `up` runs; the only running one by default
    #[arg(short, long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Call a tool as one caller
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 answered, 1 refused or the tool says that it failed, 2 it could not be asked.")]
pub(crate) struct CallOptions {
    /// The McpServer's name
    server: String,
    /// The tool's name
    tool: String,
    /// Arguments: key=value takes the type that the tool's schema gives, key:=JSON takes any
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    caller: Caller,
    /// The folder of manifests whose `up` runs; the only running one by default
    #[arg(short, long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs `cotter list`.
pub(crate) async fn list(options: &ListOptions) -> Outcome {
    let running = Running::find(options.folder.as_deref()).await?;
    let server = running.server(&options.server).await?;
    let token = options.caller.token(&running.state, &server.audience)?;
    let mut session = match Session::open(&server.endpoint, &token).await? {
        Ok(session) => session,
        Err(reply) => return refused(&running, &reply, None).await,
    };
    let reply = session.ask("tools/list", json!({})).await?;
    session.close().await;
    if reply.error().is_some() {
        return refused(&running, &reply, None).await;
    }
    print!("{}", listed(&server, &reply).text());
    Ok(())
}

fn listed(server: &Server, reply: &Reply) -> Table {
    let mut table = Table::new(["TOOL", "EFFECT", "SCOPE", "PIN"]);
    for tool in reply.tools() {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let known = server.tools.iter().find(|known| known.name == name);
        let cell = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
        table.row(vec![
            name.to_owned(),
            cell(known.map(|known| known.effect.to_string())),
            cell(known.map(|known| known.scope.clone())),
            cell(known.and_then(|known| known.state).map(|state| format!("{state:?}"))),
        ]);
    }
    table
}

/// Runs `cotter call`.
pub(crate) async fn call(options: &CallOptions) -> Outcome {
    let running = Running::find(options.folder.as_deref()).await?;
    let server = running.server(&options.server).await?;
    let token = options.caller.token(&running.state, &server.audience)?;
    let mut session = match Session::open(&server.endpoint, &token).await? {
        Ok(session) => session,
        Err(reply) => return refused(&running, &reply, Some(options)).await,
    };
    let tools = session.ask("tools/list", json!({})).await?;
    let schema = tools.tools().find(|tool| tool.get("name").and_then(Value::as_str) == Some(&options.tool));
    let arguments = arguments(&options.arguments, schema)?;
    let reply = session.ask("tools/call", json!({"name": options.tool, "arguments": arguments})).await?;
    session.close().await;
    match reply.result() {
        Some(result) if reply.refusal().is_none() => answered(result),
        _ => refused(&running, &reply, Some(options)).await,
    }
}

fn arguments(given: &[String], tool: Option<&Value>) -> Result<Value, Failure> {
    let mut arguments = serde_json::Map::new();
    for argument in given {
        let (name, value) = match (argument.split_once(":="), argument.split_once('=')) {
            (Some((name, json)), _) if !name.contains('=') => {
                (name, serde_json::from_str(json).doing(format!("read the JSON of {argument:?}"))?)
            }
            (_, Some((name, text))) => {
                (name, typed(text, tool.and_then(|tool| tool.pointer(&format!("/inputSchema/properties/{name}/type")))))
            }
            _ => return Err(Failure::cannot(format!("{argument:?} is no argument: write key=value, or key:=JSON"))),
        };
        arguments.insert(name.to_owned(), value);
    }
    Ok(Value::Object(arguments))
}

/// A text as the type that the schema gives; as text where it gives none, or the text is not of it.
fn typed(text: &str, schema: Option<&Value>) -> Value {
    let wanted = schema.and_then(Value::as_str).filter(|wanted| *wanted != "string");
    let parsed = wanted.and_then(|_| serde_json::from_str::<Value>(text).ok());
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn answered(result: &Value) -> Outcome {
    let content = result.get("content").and_then(Value::as_array);
    for block in content.into_iter().flatten() {
        match block.get("text").and_then(Value::as_str) {
            Some(text) => println!("{text}"),
            None => println!("{block}"),
        }
    }
    if result.get("isError") == Some(&Value::Bool(true)) {
        Err(Failure::no("the tool says that it failed"))
    } else {
        Ok(())
    }
}

async fn refused(running: &Running, reply: &Reply, call: Option<&CallOptions>) -> Outcome {
    println!("refused  {:<40} what the caller is told: {}", reply.told(), reply.message());
    let record = match reply.decision() {
        Some(id) => running.get::<Record>(&format!("/v1/decisions/{id}")).await?,
        None => None,
    };
    for reason in record.iter().flat_map(|record| &record.reasons) {
        let why = match &reason.detail {
            Some(detail) => format!("{}: {detail}", reason.code),
            None => reason.code.to_string(),
        };
        println!("because  {why:<40} what you are told, as its owner");
    }
    if let (Some(_), Some(call)) = (&record, call) {
        let folder = call.folder.as_ref().map(|folder| format!(" -f {}", quoted(&folder.to_string_lossy())));
        let (server, tool, folder) = (quoted(&call.server), quoted(&call.tool), folder.unwrap_or_default());
        println!("         cotter why{folder} {server} {tool}{}", call.caller.flags());
    }
    Err(Failure::no(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_takes_the_type_of_the_schema() {
        let tool = json!({"inputSchema": {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}});
        let given = ["n=3", "s=3", "free=3", "list:=[1]", "eq=a=b"].map(str::to_owned);
        let made = arguments(&given, Some(&tool)).unwrap();
        assert_eq!(made, json!({"n": 3, "s": "3", "free": "3", "list": [1], "eq": "a=b"}));
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        assert!(arguments(&["x".to_owned()], None).is_err());
        assert!(arguments(&["x:={".to_owned()], None).is_err());
    }
}
