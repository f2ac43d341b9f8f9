//! Every command of the documentation, as it stands there.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use cotter_tests::{
    folder::Folder,
    programs::{Said, ours, root},
    transcript::{self, Block, Step},
};

/// The build of the first command is `tests/run`'s own; the rest of that line is what the transcript runs.
const FIRST: &str = "cargo build --release && target/release/cotter up -f examples/support-desk";

/// A place where the commands of the documentation make sense: the examples below it, the programs on the path.
struct Place {
    work: tempfile::TempDir,
    up: Option<(Child, PathBuf)>,
}

impl Place {
    fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        let examples = work.path().join("examples");
        fs::create_dir(&examples).unwrap();
        for name in ["support-desk", "policies"] {
            let example = Folder::of_example(name);
            let copied = Command::new("cp").arg("-r").arg(example.path()).arg(&examples).status().unwrap();
            assert!(copied.success());
        }
        Self { work, up: None }
    }

    fn command(&self, text: &str) -> Command {
        let mut command = Command::new("bash");
        let programs = ours("cotter").parent().unwrap().to_path_buf();
        let rest = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&rest))).unwrap();
        command.args(["-o", "pipefail", "-c", text]).current_dir(self.work.path()).env("PATH", path);
        command.env("HOME", self.work.path()).env_remove("XDG_STATE_HOME");
        command
    }

    fn start(&mut self, text: &str) {
        let log = self.work.path().join("up.log");
        let file = File::create(&log).unwrap();
        let mut command = self.command(&format!("exec {text}"));
        let child = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        self.up = Some((child, log));
    }

    /// What `up` said, as soon as it said all of this.
    fn wait_for(&self, wanted: &[String]) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let said = fs::read_to_string(&self.up.as_ref().unwrap().1).unwrap();
            let Some(missing) = transcript::missing(wanted, &said) else { return };
            assert!(Instant::now() < end, "up never said {missing:?}:\n{said}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn run(&mut self, block: &Block) {
        self.wait_for_lines(&block.lines);
        for step in &block.steps {
            if step.command.starts_with("cotter up ") {
                self.start(&step.command);
                // The table comes again once everything is read, after the advice.
                let (table, said): (Vec<String>, Vec<String>) =
                    step.output.iter().cloned().partition(|line| line.contains("http://"));
                self.wait_for(&said);
                self.wait_for(&table);
                continue;
            }
            self.try_until(step);
        }
    }

    /// Runs a command until it prints what it is said to: a reader types slower than files are watched.
    fn try_until(&self, step: &Step) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let said = Said::run(&mut self.command(&step.command));
            let output = format!("{}{}", said.out, said.err);
            let missing = transcript::missing(&step.output, &output);
            if missing.is_none() && matches!(said.code, Some(0 | 1)) {
                return;
            }
            assert!(
                Instant::now() < end,
                "{} never printed {missing:?}, but ({:?})\n{output}",
                step.command,
                said.code
            );
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn wait_for_lines(&self, lines: &[String]) {
        if !lines.is_empty() {
            self.wait_for(lines);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.up {
            let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
            thread::sleep(Duration::from_millis(500));
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn readme() -> Vec<Block> {
    document("README.md")
}

fn document(name: &str) -> Vec<Block> {
    transcript::blocks(&fs::read_to_string(root().join(name)).unwrap())
}

#[test]
fn every_transcript_of_the_readme_says_where_it_runs() {
    for block in readme() {
        let known = block.mark.as_deref().is_some_and(|mark| ["local", "local up", "cluster"].contains(&mark));
        let first = block.steps.iter().all(|step| step.command == FIRST);
        assert!(known || first, "no test runs {block:?}");
    }
}

#[test]
fn the_cluster_is_installed_as_the_readme_says() {
    let commands: Vec<String> = readme().into_iter().flat_map(|block| block.steps).map(|step| step.command).collect();
    let install = commands.iter().find(|command| command.starts_with("helm install ")).unwrap();
    let script = fs::read_to_string(root().join("tests/run")).unwrap();
    assert!(script.contains(install.as_str()), "tests/run installs in another way than {install:?}");
}

#[test]
#[ignore = "needs the programs, built"]
fn the_first_ten_minutes_are_as_the_readme_tells_them() {
    let mut place = Place::new();
    let blocks: Vec<Block> = readme()
        .into_iter()
        .filter(|block| block.mark.as_deref().is_some_and(|mark| mark.starts_with("local")))
        .collect();
    assert!(blocks.len() > 4, "the README has lost its transcript");
    for block in &blocks {
        place.run(block);
    }
}

#[test]
#[ignore = "needs the programs, built"]
fn the_policy_guide_does_what_it_says() {
    let mut place = Place::new();
    let blocks = document("docs/policy.md");
    assert!(
        blocks.len() > 2 && blocks.iter().all(|block| block.mark.as_deref() == Some("files")),
        "a block has no mark"
    );
    for block in &blocks {
        place.run(block);
    }
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    for document in ["README.md", "CONTRIBUTING.md", "docs/policy.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for path in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|path| path.contains('/') && !path.contains([' ', '*', '$', ':', '<']))
        {
            let exists = Path::new(&root()).join(path.trim_end_matches('/')).exists();
            let is_endpoint = path.starts_with('/') || path.ends_with("jsonl");
            // The version of a document, such as `cotter.snapshot/v1`.
            let is_version = path.starts_with("cotter.") && path.contains("/v");
            assert!(exists || is_endpoint || is_version, "{document} names {path}, which is not there");
        }
    }
}
