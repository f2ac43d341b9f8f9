//! Clients in a closed loop: each has one connection and one session, and calls again when it has its answer. Every answer is checked.

mod wire;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use memchr::memmem::{self, Finder};
use serde::{Deserialize, Serialize};
use tokio::task::LocalSet;

use self::wire::{Connection, Template};
use crate::{
    error::BenchError,
    process::{cpu_seconds, machine_seconds, resident_kib},
    role::single,
    world::{REVISION, TOOL},
};

/// What a failed client waits before it goes on.
const PAUSE: Duration = Duration::from_millis(5);
/// What is written over by each call's own number: seven digits.
const FIRST_ID: u32 = 1_000_000;
const LAST_ID: u32 = 9_999_999;

/// What the clients have to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// Where to.
    pub(crate) to: SocketAddr,
    /// How many at once.
    pub(crate) connections: usize,
    /// Not counted.
    pub(crate) warm_up_seconds: f64,
    /// Counted.
    pub(crate) seconds: f64,
    /// Bytes of the text in the arguments.
    pub(crate) bytes: usize,
    /// What they present.
    pub(crate) token: String,
    /// The process whose cost is measured, and the upstream.
    pub(crate) proxy: u32,
    /// The upstream's process.
    pub(crate) upstream: u32,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Answered calls.
    pub(crate) calls: u64,
    /// In a second.
    pub(crate) rate: f64,
    /// Half of the calls took at most this long, in microseconds.
    pub(crate) p50: u32,
    /// 99 of 100.
    pub(crate) p99: u32,
    /// CPU of the proxy for one call, in microseconds.
    pub(crate) cpu: f64,
    /// Cores that the proxy kept busy.
    pub(crate) busy: f64,
    /// Cores that everything else on the machine kept busy: what makes a figure doubtful.
    pub(crate) others: f64,
    /// Memory of the proxy before the first request, in KiB.
    pub(crate) idle_kib: u64,
    /// What of it is its own: the rest is the program's file.
    pub(crate) idle_own_kib: u64,
    /// And at the end.
    pub(crate) after_kib: u64,
    /// What went wrong, and how often.
    pub(crate) faults: BTreeMap<String, u64>,
}

struct Client {
    orders: Orders,
    text: String,
    from: Instant,
    until: Instant,
}

#[derive(Default)]
struct Seen {
    micros: Vec<u32>,
    faults: BTreeMap<String, u64>,
}

impl Seen {
    fn fault(&mut self, what: String) {
        *self.faults.entry(what).or_default() += 1;
    }
}

/// Busy seconds of the proxy, of upstream and load, and of the machine.
struct Marks {
    proxy: f64,
    known: f64,
    machine: f64,
    at: Instant,
}

impl Marks {
    fn take(orders: &Orders) -> Result<Self, BenchError> {
        let proxy = cpu_seconds(orders.proxy)?;
        let upstream = if orders.upstream == orders.proxy { 0.0 } else { cpu_seconds(orders.upstream)? };
        let known = proxy + upstream + cpu_seconds(std::process::id())?;
        Ok(Self { proxy, known, machine: machine_seconds()?, at: Instant::now() })
    }
}

/// Runs the clients to their end.
///
/// # Errors
/// A process to be watched is gone.
pub(crate) fn run(orders: Orders) -> Result<Outcome, BenchError> {
    let (idle_kib, idle_own_kib) = resident_kib(orders.proxy)?;
    let from = Instant::now() + Duration::from_secs_f64(orders.warm_up_seconds);
    let until = from + Duration::from_secs_f64(orders.seconds);
    let text = "the quick brown fox jumps over a lazy dog ".chars().cycle().take(orders.bytes).collect();
    let client = Rc::new(Client { orders, text, from, until });
    let seen = Rc::new(RefCell::new(Seen::default()));
    let (before, after) = single()?.block_on(LocalSet::new().run_until(async {
        let clients = (0..client.orders.connections).map(|_| {
            let (client, seen) = (Rc::clone(&client), Rc::clone(&seen));
            tokio::task::spawn_local(async move {
                if let Err(fault) = client.run(&seen).await {
                    seen.borrow_mut().fault(fault);
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        tokio::time::sleep_until(client.from.into()).await;
        let before = Marks::take(&client.orders)?;
        tokio::time::sleep_until(client.until.into()).await;
        let after = Marks::take(&client.orders)?;
        for client in clients {
            let _ = client.await;
        }
        Ok::<_, BenchError>((before, after))
    }))?;
    let (after_kib, _) = resident_kib(client.orders.proxy)?;
    let mut seen = seen.borrow_mut();
    seen.micros.sort_unstable();
    let calls = seen.micros.len() as u64;
    let wall = (after.at - before.at).as_secs_f64();
    let cpu = after.proxy - before.proxy;
    let others = (after.machine - before.machine) - (after.known - before.known);
    Ok(Outcome {
        calls,
        rate: calls as f64 / client.orders.seconds,
        p50: quantile(&seen.micros, 0.5),
        p99: quantile(&seen.micros, 0.99),
        cpu: cpu * 1e6 / calls.max(1) as f64,
        busy: cpu / wall,
        others: (others / wall).max(0.0),
        idle_kib,
        idle_own_kib,
        after_kib,
        faults: std::mem::take(&mut seen.faults),
    })
}

/// Of sorted numbers, the one that this share of them does not exceed.
fn quantile(sorted: &[u32], share: f64) -> u32 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place).or(sorted.last()).copied().unwrap_or(0)
}

impl Client {
    async fn run(&self, seen: &RefCell<Seen>) -> Result<(), String> {
        let (mut connection, session) = self.open().await?;
        let params = format!(r#"{{"name":"{TOOL}","arguments":{{"text":"{}"}}}}"#, self.text);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{params}}}"#);
        let request = self.request(Some(&session), &body);
        let mut call = Template::new(request, &FIRST_ID.to_string()).ok_or("the request has no id")?;
        let text = Finder::new(&self.text);
        for id in (FIRST_ID..=LAST_ID).cycle() {
            let start = Instant::now();
            if start >= self.until {
                break;
            }
            let digits = id.to_string();
            let checked = match connection.exchange(call.with(&digits)).await {
                Ok(answer) if answer.status != 200 => Err(format!("call: {} {:.200}", answer.status, answer.text())),
                Ok(answer)
                    if text.find(answer.body).is_none() || memmem::find(answer.body, digits.as_bytes()).is_none() =>
                {
                    Err(format!("call: another answer: {:.200}", answer.text()))
                }
                Ok(_) => Ok(()),
                Err(fault) => Err(fault),
            };
            let end = Instant::now();
            if let Err(fault) = checked {
                seen.borrow_mut().fault(fault);
                tokio::time::sleep(PAUSE).await;
                connection = Connection::open(self.orders.to).await?;
            } else if start >= self.from && end <= self.until {
                seen.borrow_mut().micros.push(u32::try_from((end - start).as_micros()).unwrap_or(u32::MAX));
            }
        }
        Ok(())
    }

    /// Opens a session, and looks whether the tool is listed.
    async fn open(&self) -> Result<(Connection, String), String> {
        let mut connection = Connection::open(self.orders.to).await?;
        let client = r#""capabilities":{},"clientInfo":{"name":"load","version":"1"}"#;
        let params = format!(r#"{{"protocolVersion":"{REVISION}",{client}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        let answer = connection.exchange(&self.request(None, &body)).await?;
        let session = answer.session.clone().filter(|_| answer.status == 200);
        let session = session.ok_or_else(|| format!("initialize: {} {:.200}", answer.status, answer.text()))?;
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = connection.exchange(&self.request(Some(&session), body)).await?;
        if answer.status != 202 {
            return Err(format!("initialized: {}", answer.status));
        }
        let body = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let answer = connection.exchange(&self.request(Some(&session), body)).await?;
        if memmem::find(answer.body, format!("\"name\":\"{TOOL}\"").as_bytes()).is_none() {
            return Err(format!("tools/list: {} {:.200}", answer.status, answer.text()));
        }
        Ok((connection, session))
    }

    fn request(&self, session: Option<&str>, body: &str) -> Vec<u8> {
        let Orders { to, token, .. } = &self.orders;
        let session = session.map_or_else(String::new, |session| {
            format!("mcp-protocol-version: {REVISION}\r\nmcp-session-id: {session}\r\n")
        });
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {token}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{session}\r\n",
            body.len()
        );
        (head + body).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_numbers() {
        let numbers: Vec<u32> = (1..=100).collect();
        assert_eq!((quantile(&numbers, 0.5), quantile(&numbers, 0.99), quantile(&numbers, 1.0)), (51, 100, 100));
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
