//! The transcripts of the documentation: commands with what they print, to be run as they stand.
//!
//! A fenced block marked `console` is a transcript. The HTML comment before it says where it runs: `<!-- test: local -->`. Of the
//! output that is shown every line has to appear, in order; ages, times, dates, ports and runs of spaces may differ.

/// One command and what it is said to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The command, without the prompt.
    pub command: String,
    /// The lines below it.
    pub output: Vec<String>,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What its comment says, if it has one.
    pub mark: Option<String>,
    /// Lines before the first command: what a program that already runs says.
    pub lines: Vec<String>,
    /// The commands.
    pub steps: Vec<Step>,
}

/// All transcripts of a document.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut mark, mut open) = (Vec::new(), None, None::<Block>);
    for line in text.lines() {
        match &mut open {
            Some(_) if line.trim() == "```" => blocks.extend(open.take()),
            Some(block) => block.add(line),
            None if line.trim() == "```console" => {
                open = Some(Block { mark: mark.take(), lines: Vec::new(), steps: Vec::new() });
            }
            None => mark = comment(line).or_else(|| mark.take().filter(|_| line.trim().is_empty())),
        }
    }
    blocks
}

fn comment(line: &str) -> Option<String> {
    let inner = line.trim().strip_prefix("<!-- test:")?.strip_suffix("-->")?;
    Some(inner.trim().to_owned())
}

impl Block {
    fn add(&mut self, line: &str) {
        if let Some(command) = line.strip_prefix("$ ") {
            self.steps.push(Step { command: command.to_owned(), output: Vec::new() });
        } else if !line.trim().is_empty() {
            self.steps.last_mut().map_or(&mut self.lines, |step| &mut step.output).push(line.to_owned());
        }
    }
}

/// The first line that should be in the output, in order, and is not.
#[must_use]
pub fn missing(wanted: &[String], output: &str) -> Option<String> {
    let mut lines = output.lines().map(level);
    wanted.iter().find(|wanted| !lines.any(|line| line.ends_with(&level(wanted)))).cloned()
}

/// A line without what differs from run to run.
fn level(line: &str) -> String {
    let words = line.split_whitespace().map(|word| match word {
        _ if is_age(word) => "AGE".to_owned(),
        _ if word.contains("127.0.0.1:") => "ENDPOINT".to_owned(),
        _ if word.len() == 10 && word.chars().filter(|c| *c == '-').count() == 2 => "DATE".to_owned(),
        _ if word.contains("/.local/state/") || word.contains("/state/cotter/") => "STATE".to_owned(),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `9s`, `2m`, `3m12s`, `41d`.
fn is_age(word: &str) -> bool {
    let units = word.chars().filter(|c| "smhd".contains(*c)).count();
    units > 0
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || "smhd".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_read_with_its_mark() {
        let text =
            "x\n<!-- test: local -->\n```console\nsaid before\n$ a b\none\n\ntwo\n$ c\n```\n```console\n$ d\n```\n";
        let blocks = blocks(text);
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].mark.as_deref(), Some("local"));
        assert_eq!(blocks[0].lines, ["said before"]);
        assert_eq!(
            blocks[0].steps[0],
            Step { command: "a b".to_owned(), output: vec!["one".to_owned(), "two".to_owned()] }
        );
        assert_eq!(blocks[1].mark, None);
    }

    #[test]
    fn what_differs_from_run_to_run_may_differ_and_nothing_else() {
        let wanted = ["support   True    2/2     0       1/1       http://127.0.0.1:7801/mcp   1s".to_owned()];
        assert_eq!(missing(&wanted, "x\nsupport True 2/2 0 1/1 http://127.0.0.1:7999/mcp 3m12s\n"), None);
        assert!(missing(&wanted, "support True 1/2 0 1/1 http://127.0.0.1:7999/mcp 3m12s\n").is_some());
        let order = ["a".to_owned(), "b".to_owned()];
        assert!(missing(&order, "b\na\n").is_some());
    }
}
