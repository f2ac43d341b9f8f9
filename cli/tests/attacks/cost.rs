//! What a process takes, as `/proc` tells it.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Ticks of a processor in a second, as `/proc` counts.
const TICKS: u64 = 100;

/// What a process took.
#[derive(Default)]
pub(crate) struct Cost {
    pub(crate) work: Duration,
    /// The most memory that it had, in KiB.
    pub(crate) peak: u64,
}

/// A line of `/proc/…/status`, in KiB.
fn status(process: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
}

/// The state of a process, and the processor time that it and the children it waited for took.
fn work(process: &str) -> (char, Duration) {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11..15].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    (fields[0].chars().next().unwrap(), Duration::from_millis(ticks * 1000 / TICKS))
}

/// Runs a command, and looks at it until it has ended but is not yet waited for.
pub(crate) fn measured(command: &mut Command, out: &Path) -> (Option<i32>, String, Cost) {
    let mut child = command.stdout(File::create(out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let process = child.id().to_string();
    let mut cost = Cost::default();
    loop {
        cost.peak = cost.peak.max(status(&process, "VmHWM:").unwrap_or_default());
        let (state, work) = work(&process);
        if state == 'Z' {
            cost.work = work;
            break;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    (child.wait().unwrap().code(), String::from_utf8_lossy(&fs::read(out).unwrap()).into_owned(), cost)
}

/// What a call of this very process took.
pub(crate) fn own<T>(call: impl FnOnce() -> T) -> (T, Cost) {
    // The highest mark begins anew.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let (before, began) = (status("self", "VmRSS:").unwrap(), work("self").1);
    let value = call();
    let peak = status("self", "VmHWM:").unwrap().saturating_sub(before);
    (value, Cost { work: work("self").1 - began, peak })
}
