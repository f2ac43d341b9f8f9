//! Processes of a measurement as their parent sees them: started, watched through /proc, and ended.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, ChildStdin, Command, Stdio},
};

use serde::de::DeserializeOwned;

use crate::{
    error::BenchError,
    role::{Orders, READY},
};

/// Ticks of /proc/PID/stat in a second: `USER_HZ`, which is 100 on every architecture that matters here.
const TICKS: f64 = 100.0;

/// One server process. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    _stdin: ChildStdin,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a server and waits until it serves. What it writes to standard output goes to `out`.
    ///
    /// # Errors
    /// It does not start; its own words say why.
    pub(crate) fn start(orders: &Orders, out: Stdio) -> Result<Self, BenchError> {
        let (mut child, stdin) = start(orders, out, Stdio::piped())?;
        let stderr =
            child.stderr.take().ok_or_else(|| BenchError::Wrong("a process has no standard error".to_owned()))?;
        let mut said = String::new();
        for line in BufReader::new(stderr).lines() {
            let line = line.map_err(BenchError::system("hear a process"))?;
            if let Some(address) = line.strip_prefix(READY).and_then(|address| address.parse().ok()) {
                return Ok(Self { child, _stdin: stdin, address });
            }
            said.push_str(&line);
        }
        let _ = child.wait();
        Err(BenchError::Wrong(format!("failed to start a server: {said}")))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a process to its end and gives the result that it wrote.
///
/// # Errors
/// It fails, or writes something else.
pub(crate) fn result<T: DeserializeOwned>(orders: &Orders) -> Result<T, BenchError> {
    let (child, _stdin) = start(orders, Stdio::piped(), Stdio::inherit())?;
    let output = child.wait_with_output().map_err(BenchError::system("wait for a process"))?;
    if !output.status.success() {
        return Err(BenchError::Wrong(format!("a process of the measurement failed: {}", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(BenchError::wrong("read a result"))
}

fn start(orders: &Orders, out: Stdio, err: Stdio) -> Result<(Child, ChildStdin), BenchError> {
    let failed = "start a process";
    let program = std::env::current_exe().map_err(BenchError::system(failed))?;
    let mut command = Command::new(program);
    command.arg("role").stdin(Stdio::piped()).stdout(out).stderr(err);
    let mut child = command.spawn().map_err(BenchError::system(failed))?;
    let orders = serde_json::to_string(orders).map_err(BenchError::wrong("write the orders"))?;
    let stdin = child.stdin.take().ok_or_else(|| BenchError::Wrong("a process has no standard input".to_owned()));
    let given = stdin.and_then(|mut stdin| {
        writeln!(stdin, "{orders}").map_err(BenchError::system("give the orders"))?;
        Ok(stdin)
    });
    match given {
        Ok(stdin) => Ok((child, stdin)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

/// CPU seconds that a process used so far, user and system.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, BenchError> {
    let text = read(&format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; behind it the fields are numbers, utime and stime the 12th and 13th of them.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    Ok(fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS)
}

/// Resident memory of a process, in KiB: all of it, and what is its own (the rest is the program's file, which processes share).
pub(crate) fn resident_kib(pid: u32) -> Result<(u64, u64), BenchError> {
    let text = read(&format!("/proc/{pid}/status"))?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().split(' ').next()?.parse().ok())
    };
    let both = kib("VmRSS:").zip(kib("RssAnon:"));
    both.ok_or_else(|| BenchError::Wrong(format!("/proc/{pid}/status does not tell memory")))
}

/// CPU seconds that the whole machine was busy so far.
pub(crate) fn machine_seconds() -> Result<f64, BenchError> {
    let text = read("/proc/stat")?;
    let fields: Vec<f64> =
        text.lines().next().unwrap_or_default().split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal: all but the waiting.
    let busy = fields.iter().take(8).enumerate().filter(|(place, _)| !matches!(place, 3 | 4));
    Ok(busy.map(|(_, ticks)| ticks).sum::<f64>() / TICKS)
}

fn read(path: &str) -> Result<String, BenchError> {
    fs::read_to_string(path).map_err(BenchError::system(format!("read {path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_cpu_and_memory() {
        let pid = std::process::id();
        let (before, began) = (cpu_seconds(pid).unwrap(), std::time::Instant::now());
        while cpu_seconds(pid).unwrap() < before + 0.05 {
            assert!(began.elapsed().as_secs() < 30, "working for so long has to show");
        }
        let (whole, own) = resident_kib(pid).unwrap();
        assert!(whole > own && own > 50 && machine_seconds().unwrap() > 0.0);
        assert!(cpu_seconds(u32::MAX).is_err());
    }
}
