//! The child's side: one question from standard input, answered on standard output under limits.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    thread,
};

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::Serialize;

use super::{Job, Limits, Line, Question, Review};
use crate::{
    check,
    sandbox::{Evaluation, Report},
};

/// Stack of the thread that checks: rules of the longest chain that passes need more than the usual 2 MiB.
const STACK: usize = 64 << 20;

/// What came of a job.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Check(Review),
    Test(Result<Report, String>),
    Eval(Result<Box<Evaluation>, String>),
}

impl Limits {
    pub(super) fn all(self) -> [(Resource, Rlimit); 3] {
        let limit = |value| Rlimit { current: Some(value), maximum: Some(value) };
        [(Resource::Cpu, limit(self.cpu_seconds)), (Resource::As, limit(self.memory)), (Resource::Core, limit(0))]
    }
}

/// The child: reads a question from standard input, answers it under limits, and writes what came of it to standard output.
#[must_use]
pub fn serve() -> ExitCode {
    let Ok(question) = serde_json::from_reader::<_, Question>(io::stdin().lock()) else { return ExitCode::from(2) };
    if question.limits.all().into_iter().any(|(resource, limit)| setrlimit(resource, limit).is_err()) {
        return ExitCode::from(2);
    }
    let worker = thread::Builder::new().stack_size(STACK).spawn(move || run(question.job));
    let answer = worker.ok().and_then(|worker| worker.join().ok());
    match answer.map(|answer| say(&Line::Done(answer))) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::from(2),
    }
}

fn run(job: Job) -> Answer {
    // What cannot be said is not missed: the parent names everything then.
    let mut at = |place: &str| drop(say(&Line::<Answer>::At(place.to_owned())));
    match job {
        Job::Check { modules, left_out } => Answer::Check(check::review(&modules, &left_out, &mut at)),
        Job::Test(suite) => Answer::Test(suite.run(&mut at).map_err(|error| error.to_string())),
        Job::Eval { modules, input, explain } => {
            let evaluation = Evaluation::of(&modules, &input, explain);
            Answer::Eval(evaluation.map(Box::new).map_err(|error| error.to_string()))
        }
    }
}

fn say(line: &Line<Answer>) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}
