//! The schemas that calls are checked against: those of one verified catalogue, compiled when it changes and never in a request.

use std::{collections::BTreeMap, sync::Arc};

use cotter_arguments::{Checker, Coverage, Fault, Problem};
use cotter_core::{
    catalogue::{Catalogue, Entry},
    decision::Era,
    name::ToolName,
    reason::DenyReason,
};
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::respond::{Refusal, With};

/// Bytes of arguments from which a check may take longer than other tasks of the thread should wait.
const LARGE: usize = 64 * 1024;

/// Pointers of a schema that a log line names.
const NAMED: usize = 5;

/// The revision from which on a model is told what is wrong with its arguments, as a result (2025-11-25, tools, error handling).
const TOLD_AS_RESULT: &str = "2025-11-25";

/// One tool's schema.
#[derive(Debug)]
struct Compiled {
    schema: Option<Value>,
    checker: Checker,
}

/// The schemas of the tools that may be called.
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<ToolName, Arc<Compiled>>);

impl Schemas {
    /// Compiles what the catalogue before did not have, on a thread that serves no request. Nothing may be called where that fails.
    pub async fn prepare(catalogue: Arc<Catalogue>, before: Option<Arc<Self>>) -> Self {
        let compile = move || Self::of(&catalogue, before.as_deref());
        tokio::task::spawn_blocking(compile).await.unwrap_or_default()
    }

    fn of(catalogue: &Catalogue, before: Option<&Self>) -> Self {
        let compiled = catalogue.callable().map(|entry| {
            let schema = entry.served.value.get("inputSchema");
            let known = before.and_then(|before| before.0.get(&entry.name));
            let compiled = known.filter(|known| known.schema.as_ref() == schema).cloned();
            (entry.name.clone(), compiled.unwrap_or_else(|| Arc::new(Compiled::new(&entry.name, schema))))
        });
        Self(compiled.collect())
    }

    /// Checks the arguments of a call that is allowed.
    ///
    /// # Errors
    /// `InvalidArguments`, with what is wrong; `NotReady` where the tool's schema was not compiled.
    pub fn check(&self, entry: &Entry, arguments: Option<&str>, asked: (Era, Option<&str>)) -> Result<(), Refusal> {
        let compiled = self.0.get(&entry.name);
        let compiled = compiled.ok_or_else(|| Refusal::because(DenyReason::NotReady, "the schema is not compiled"))?;
        let check = || compiled.checker.check(arguments);
        let aside = arguments.is_some_and(|text| text.len() > LARGE)
            && matches!(Handle::try_current().map(|handle| handle.runtime_flavor()), Ok(RuntimeFlavor::MultiThread));
        let checked = if aside { tokio::task::block_in_place(check) } else { check() };
        checked.map_err(|fault| refusal(fault, asked))
    }

    /// How many tools are checked in part, and how many not at all.
    #[must_use]
    pub fn gaps(&self) -> (usize, usize) {
        let count =
            |fits: fn(&Coverage) -> bool| self.0.values().filter(|compiled| fits(compiled.checker.coverage())).count();
        (count(|found| matches!(found, Coverage::Partly(_))), count(|found| matches!(found, Coverage::Nothing(_))))
    }
}

impl Compiled {
    /// A tool without a schema takes anything.
    fn new(tool: &ToolName, schema: Option<&Value>) -> Self {
        let checker = Checker::new(schema.unwrap_or(&Value::Bool(true)));
        match checker.coverage() {
            Coverage::Whole => {}
            Coverage::Partly(gaps) => {
                let named: Vec<String> =
                    gaps.iter().take(NAMED).map(|gap| crate::upstream::text::printable(gap, 128)).collect();
                tracing::warn!(%tool, keywords = gaps.len(), ?named, "part of the tool's schema cannot be enforced");
            }
            Coverage::Nothing(why) => {
                tracing::warn!(%tool, why, "the tool's schema cannot be enforced: its arguments are not checked");
            }
        }
        Self { schema: schema.cloned(), checker }
    }
}

fn refusal(fault: Fault, (era, revision): (Era, Option<&str>)) -> Refusal {
    let told: Vec<String> = match fault {
        Fault::Broken(problems) => problems.iter().map(Problem::to_string).collect(),
        Fault::TooCostly => vec!["checking them takes too much".to_owned()],
    };
    let as_result = era == Era::Modern || revision == Some(TOLD_AS_RESULT);
    let refusal = Refusal::because(DenyReason::InvalidArguments, told.join(", "));
    refusal.with(With::Problems { told, as_result })
}
