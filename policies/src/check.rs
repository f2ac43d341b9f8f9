//! The check that a policy text passes before it meets an engine: the same one for admission, reconcile, the command line and local
//! mode. Each guard answers a measured way in which a text can hurt; the reason stands beside it.
//!
//! Stages: the text (size, characters, nesting), then the parser, then the parsed modules (packages, names, functions, recursion).

use std::{collections::BTreeMap, fmt};

mod builtins;
mod dry;
mod graph;
mod negation;
mod recursion;
mod rules;
mod text;

use regorus::unstable::{Module, Span};

pub use builtins::allowed;

use crate::{engine::Engines, guard::Review, library, modules::glue, syntax};

/// Modules of one server.
pub const MAX_MODULES: usize = 32;
/// Bytes of one module.
pub const MAX_BYTES: usize = 64 * 1024;
/// How the name of a module begins that is there for every server of a cluster: `cluster/CONFIGMAP/KEY`. A server's own has no second slash.
pub const CLUSTER_WIDE: &str = "cluster/";

/// One thing that is wrong with a module: where, what, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// The module's name.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// What is wrong, on one line.
    pub message: String,
    /// What to write instead.
    pub help: String,
    /// The offending line, cut to a readable length.
    pub source: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if !self.source.is_empty() {
            write!(f, "\n    {}", self.source)?;
        }
        if !self.help.is_empty() {
            write!(f, "\n    {}", self.help)?;
        }
        Ok(())
    }
}

/// Everything that is wrong, sorted by place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Findings(pub Vec<Finding>);

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{finding}")?;
        }
        Ok(())
    }
}

impl Finding {
    /// At a place of a text.
    pub(crate) fn at(
        file: &str,
        text: &str,
        (line, column): (u32, u32),
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let shown = text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default();
        let source = shown.trim_end().chars().take(SHOWN).map(visible).collect();
        Self { file: file.to_owned(), line, column, message: message.into(), help: help.into(), source }
    }

    /// At a place of the syntax tree.
    fn span(span: &Span, message: impl Into<String>, help: impl Into<String>) -> Self {
        let text = span.source.get_contents();
        Self::at(span.source.get_path(), text, syntax::place(text, span.start), message, help)
    }
}

/// Where the check is while it is busy with no single module.
const TOGETHER: &str = "";
/// Characters of an offending line that are shown.
const SHOWN: usize = 160;

fn visible(c: char) -> char {
    if c == '\t' {
        ' '
    } else if c.is_control() || cotter_core::scan::is_hidden(c) {
        '\u{fffd}'
    } else {
        c
    }
}

/// Modules that passed, parsed and joined with the library.
#[derive(Debug)]
pub struct Checked {
    pub(crate) modules: Vec<Module>,
    pub(crate) engines: Engines,
}

/// Reads the bytes of a module.
///
/// # Errors
/// Bytes that are not UTF-8, with the place of the first one.
pub fn utf8(file: &str, bytes: &[u8]) -> Result<String, Finding> {
    text::utf8(file, bytes)
}

/// What is too large to be looked at any further, or even to be copied.
pub fn oversized<'a>(modules: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    modules.into_iter().filter_map(|(name, text)| text::size(name, text)).collect()
}

/// The stages that need no parser: they are linear in the text, whatever is in it.
///
/// # Errors
/// Everything that is wrong with the texts.
pub fn before_parsing(modules: &BTreeMap<String, String>) -> Result<(), Findings> {
    let findings = count(modules).into_iter().chain(modules.iter().flat_map(|(name, text)| text::check(name, text)));
    passed(findings.collect())
}

/// Checks the modules of one server, by name.
///
/// # Errors
/// Everything that is wrong with them; they are not used then.
pub fn check(modules: &BTreeMap<String, String>) -> Result<Checked, Findings> {
    check_telling(modules, &mut |_| {})
}

/// All stages, and what is only worth a warning. Says which module it is busy with, for whoever has to stop it.
pub(crate) fn review(modules: &BTreeMap<String, String>, at: &mut dyn FnMut(&str)) -> Review {
    match check_telling(modules, at) {
        Err(findings) => Review { findings: findings.0, warnings: Vec::new() },
        Ok(checked) => {
            let warnings = checked.modules.iter().flat_map(negation::warnings).collect();
            Review { findings: dry::dry_run(&checked, modules, at), warnings }
        }
    }
}

/// What is wrong with tests that would take the process with it: rules that use themselves. Tests may do what modules may not.
pub(crate) fn check_tests(
    modules: &BTreeMap<String, String>,
    tests: &BTreeMap<String, String>,
    at: &mut dyn FnMut(&str),
) -> Result<(), Findings> {
    let all: BTreeMap<String, String> =
        modules.iter().chain(tests).map(|(name, text)| (name.clone(), text.clone())).collect();
    let (parsed, findings) = parse(&all, at);
    passed(findings)?;
    passed(recursion::cycle(&parsed).into_iter().collect())
}

fn check_telling(modules: &BTreeMap<String, String>, at: &mut dyn FnMut(&str)) -> Result<Checked, Findings> {
    before_parsing(modules)?;
    let (parsed, findings) = parse(modules, at);
    at(TOGETHER);
    passed(findings)?;
    passed(rules::check(&parsed))?;
    match Engines::new(sources(modules, &glue(&parsed)).iter().copied()) {
        Ok(engines) => Ok(Checked { modules: parsed, engines }),
        Err(error) => Err(Findings(vec![text::engine_error(modules, &error)])),
    }
}

/// Whether a module of this name is there for every server of a cluster.
#[must_use]
pub fn is_cluster_wide(name: &str) -> bool {
    name.strip_prefix(CLUSTER_WIDE).is_some_and(|rest| rest.contains('/'))
}

fn passed(mut findings: Vec<Finding>) -> Result<(), Findings> {
    if findings.is_empty() {
        return Ok(());
    }
    findings.sort();
    findings.dedup();
    Err(Findings(findings))
}

fn count(modules: &BTreeMap<String, String>) -> Option<Finding> {
    let (wide, own): (Vec<&String>, Vec<&String>) = modules.keys().partition(|name| is_cluster_wide(name));
    // The cluster's come first, so that it is a server's own that is one too many, where it has any.
    let name = wide.iter().chain(&own).nth(MAX_MODULES)?;
    let among = if wide.is_empty() { String::new() } else { format!(", {} of them cluster-wide,", wide.len()) };
    let message = format!("there are {} modules{among} and at most {MAX_MODULES} are taken", modules.len());
    Some(Finding::at(name, "", (1, 1), message, "join modules that belong together"))
}

fn parse(modules: &BTreeMap<String, String>, at: &mut dyn FnMut(&str)) -> (Vec<Module>, Vec<Finding>) {
    let (mut parsed, mut findings) = (Vec::new(), Vec::new());
    for (name, text) in modules {
        at(name);
        match syntax::parse(name, text) {
            Ok(module) => parsed.push(module),
            Err(error) => findings.push(text::engine_error(modules, &error)),
        }
    }
    (parsed, findings)
}

/// Every Rego file of a rule set, the library's first: what an engine gets, and what another Rego engine would have to get.
pub(crate) fn sources<'a>(modules: &'a BTreeMap<String, String>, glue: &'a str) -> Vec<(&'a str, &'a str)> {
    let library = library::FILES.iter().map(|(name, text)| match *name {
        library::NO_MODULES => (*name, glue),
        _ => (*name, *text),
    });
    library.chain(modules.iter().map(|(name, text)| (name.as_str(), text.as_str()))).collect()
}
