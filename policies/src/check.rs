//! The check that a policy text passes before it meets an engine: the same one for admission, reconcile, the command line and local
//! mode. Each guard answers a measured way in which a text can hurt; the reason stands beside it.
//!
//! Stages: the text (size, characters, nesting), then the parser, then the parsed modules (packages, names, functions, recursion).

use std::{collections::BTreeMap, fmt};

mod builtins;
mod dry;
mod graph;
mod idle;
mod left_out;
mod negation;
mod recursion;
mod rules;
mod stages;
mod text;

use regorus::unstable::{Module, Span};

pub use builtins::allowed;
pub use left_out::LeftOut;
pub(crate) use stages::{Texts, texts};

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

/// A file of which only the beginning was read, because it is larger than a module may be: the beginning is as long as that, and some
/// bytes longer where there are more.
#[must_use]
pub fn beyond(file: &str, beginning: &[u8]) -> Finding {
    let message = format!("the file has more than the {MAX_BYTES} bytes that are taken");
    text::beyond(file, beginning, MAX_BYTES, message)
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
    passed(stages::texts(modules, LeftOut::default()).findings)
}

/// Checks the modules of one server, by name.
///
/// # Errors
/// Everything that is wrong with them; they are not used then.
pub fn check(modules: &BTreeMap<String, String>) -> Result<Checked, Findings> {
    let Texts { findings, good, left_out } = stages::texts(modules, LeftOut::default());
    let staged = stages::read(&good, &left_out, &mut |_| {});
    passed(findings.into_iter().chain(staged.findings).collect())?;
    join(modules, staged.parsed)
}

/// All stages for modules that passed the first, and what is only worth a warning. Says which module it is busy with, for whoever has
/// to stop it. What is left out already is not missed; where anything is wrong, the modules that do not need it go on by themselves.
pub(crate) fn review(modules: &BTreeMap<String, String>, left_out: &LeftOut, at: &mut dyn FnMut(&str)) -> Review {
    let staged = stages::read(modules, left_out, at);
    let is_whole = staged.findings.is_empty() && left_out.is_none();
    let mut review = Review { findings: staged.findings.clone(), warnings: Vec::new() };
    let parsed = staged.sound();
    if !is_whole && parsed.is_empty() {
        return review;
    }
    let is_sound = |name: &&String| parsed.iter().any(|module| module.package.span.source.get_path() == *name);
    let sound = modules.iter().filter(|(name, _)| is_sound(name)).map(|(name, text)| (name.clone(), text.clone()));
    let sound: BTreeMap<String, String> = sound.collect();
    match join(&sound, parsed) {
        Err(findings) => review.findings.extend(findings.0),
        Ok(checked) => {
            if is_whole {
                review.warnings.extend(checked.modules.iter().flat_map(negation::warnings));
                review.warnings.extend(idle::warnings(&checked.modules));
                review.warnings.sort();
            }
            review.findings.extend(dry::dry_run(&checked, &sound, at));
        }
    }
    review
}

/// What is wrong with tests that would take the process with it: rules that use themselves. Tests may do what modules may not.
pub(crate) fn check_tests(
    modules: &BTreeMap<String, String>,
    tests: &BTreeMap<String, String>,
    at: &mut dyn FnMut(&str),
) -> Result<(), Findings> {
    let all: BTreeMap<String, String> =
        modules.iter().chain(tests).map(|(name, text)| (name.clone(), text.clone())).collect();
    let (parsed, findings) = stages::parse(&all, at);
    passed(findings)?;
    passed(recursion::cycle(&parsed))
}

/// Modules that passed by themselves, with the library.
fn join(modules: &BTreeMap<String, String>, parsed: Vec<Module>) -> Result<Checked, Findings> {
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

/// Every Rego file of a rule set, the library's first: what an engine gets, and what another Rego engine would have to get.
pub(crate) fn sources<'a>(modules: &'a BTreeMap<String, String>, glue: &'a str) -> Vec<(&'a str, &'a str)> {
    let library = library::FILES.iter().map(|(name, text)| match *name {
        library::NO_MODULES => (*name, glue),
        _ => (*name, *text),
    });
    library.chain(modules.iter().map(|(name, text)| (name.as_str(), text.as_str()))).collect()
}
