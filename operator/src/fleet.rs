//! The live sidecars and what each last said. Memory only: a sidecar tells the whole state of its world on connect.
//!
//! A report counts while the sidecar's stream is open. What a report says about who made it is not believed: the
//! server and the sidecar are those of the checked token.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cotter_core::{
    report::{CatalogueReport, Knowledge, Report},
    snapshot::Digest,
};
use jiff::Timestamp;

use crate::{auth::Identity, key::ServerKey, queue::Queue};

/// A sidecar whose stream broke counts for this long: a reconnect takes a tenth of a second, and a status that says
/// False in between helps nobody. It can only make a condition False for longer, since what it last enforced is known.
pub const LINGER: Duration = Duration::from_secs(3);

/// Sidecars report every 30 s. One that was silent for three times that is not live, whatever its connection says:
/// the connection to a lost node stays open for a quarter of an hour.
pub const SILENCE: Duration = Duration::from_secs(95);

/// Sidecars of one server. Deployments beyond this are not what the design is for; it keeps a stolen account from
/// filling the operator's memory with pods that it makes up (each needs a real pod, so a cluster quota comes first).
pub const MAX_SIDECARS: usize = 1000;

/// Uses of delegations move with each call; status follows them at this pace.
const USES_PACE: Duration = Duration::from_secs(30);

/// What was charged to budgets is persisted at this pace, and at once where calls are used up.
const BUDGET_PACE: Duration = crate::status::BUDGET_PACE;

/// Why a report or a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// No stream of this sidecar is open.
    #[error("no snapshot stream of this pod is open: open it first, reports count only while it is")]
    NotConnected,
    /// [`MAX_SIDECARS`].
    #[error("too many sidecars for one server")]
    Full,
}

#[derive(Debug)]
struct Sidecar {
    pod: String,
    streams: u32,
    /// Changes with each connect, so that a late disconnect cannot end a newer stream's life.
    gone_at: Option<Instant>,
    heard: Instant,
    since: Timestamp,
    report: Option<Arc<Report>>,
    content: Option<(Digest, Digest)>,
}

/// All live sidecars, by server and pod uid.
#[derive(Debug)]
pub struct Fleet {
    servers: Mutex<HashMap<ServerKey, HashMap<String, Sidecar>>>,
    queue: Arc<Queue<ServerKey>>,
}

/// An open stream. Dropping it is the disconnect.
#[derive(Debug)]
pub struct Connection {
    fleet: Arc<Fleet>,
    key: ServerKey,
    uid: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.fleet.disconnect(&self.key, &self.uid);
    }
}

impl Fleet {
    /// No sidecars yet. Changes mark servers in `queue`.
    #[must_use]
    pub fn new(queue: Arc<Queue<ServerKey>>) -> Self {
        Self { servers: Mutex::default(), queue }
    }

    /// Notes that a stream is open, until the answer is dropped.
    ///
    /// # Errors
    /// [`FleetError::Full`].
    pub fn connect(self: &Arc<Self>, key: &ServerKey, who: &Identity) -> Result<Connection, FleetError> {
        let now = Instant::now();
        {
            let mut servers = self.lock();
            let sidecars = servers.entry(key.clone()).or_default();
            sidecars.retain(|_, sidecar| sidecar.counts(now));
            if sidecars.len() >= MAX_SIDECARS && !sidecars.contains_key(&who.pod_uid) {
                return Err(FleetError::Full);
            }
            let sidecar = sidecars.entry(who.pod_uid.clone()).or_insert_with(|| Sidecar::new(who, now));
            sidecar.streams += 1;
            sidecar.gone_at = None;
            sidecar.heard = now;
        }
        self.queue.mark(key.clone());
        Ok(Connection { fleet: self.clone(), key: key.clone(), uid: who.pod_uid.clone() })
    }

    fn disconnect(&self, key: &ServerKey, uid: &str) {
        if let Some(sidecar) = self.lock().get_mut(key).and_then(|sidecars| sidecars.get_mut(uid)) {
            sidecar.streams = sidecar.streams.saturating_sub(1);
            if sidecar.streams == 0 {
                sidecar.gone_at = Some(Instant::now());
            }
        }
        self.queue.mark_after(key.clone(), LINGER + Duration::from_millis(10));
    }

    /// Takes a report of the sidecar that `who` is. A report that says nothing new marks nothing.
    ///
    /// # Errors
    /// [`FleetError::NotConnected`].
    pub fn report(&self, key: &ServerKey, who: &Identity, mut report: Report) -> Result<(), FleetError> {
        report.sidecar.clone_from(&who.pod);
        let content = Some(contents(&report));
        let before = {
            let mut servers = self.lock();
            let sidecar = servers.get_mut(key).and_then(|sidecars| sidecars.get_mut(&who.pod_uid));
            let sidecar = sidecar.filter(|sidecar| sidecar.streams > 0).ok_or(FleetError::NotConnected)?;
            sidecar.heard = Instant::now();
            sidecar.report = Some(Arc::new(report));
            std::mem::replace(&mut sidecar.content, content)
        };
        match (before, content) {
            (Some((state, uses)), Some((new_state, new_uses))) if state == new_state => {
                if uses != new_uses {
                    self.queue.mark_after(key.clone(), USES_PACE);
                }
            }
            _ => self.queue.mark(key.clone()),
        }
        Ok(())
    }

    /// A sidecar of this server charged something, and the calls of delegations to these servers are used up with it.
    pub fn charged(&self, key: &ServerKey, used_up: Vec<ServerKey>) {
        used_up.into_iter().for_each(|concerned| self.queue.mark(concerned));
        self.queue.mark_after(key.clone(), BUDGET_PACE);
    }

    /// What the live sidecars of a server say, sorted by pod. One that is connected and has not reported yet enforces
    /// nothing that is known.
    pub fn live(&self, server: &cotter_core::name::ServerRef) -> Vec<Arc<Report>> {
        let key = ServerKey::new(server.namespace.as_str(), server.name.as_str());
        let now = Instant::now();
        let mut servers = self.lock();
        let Some(sidecars) = servers.get_mut(&key) else { return Vec::new() };
        sidecars.retain(|_, sidecar| sidecar.counts(now));
        let mut reports: Vec<_> = sidecars
            .values()
            .map(|sidecar| sidecar.report.clone().unwrap_or_else(|| Arc::new(sidecar.unheard(server.clone()))))
            .collect();
        if sidecars.is_empty() {
            servers.remove(&key);
        }
        reports.sort_by(|a, b| a.sidecar.cmp(&b.sidecar));
        reports
    }

    /// How many sidecars are known, live or lingering.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().values().map(HashMap::len).sum()
    }

    /// Whether no sidecar is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Marks the servers of sidecars that fell silent, so that status says so.
    pub fn sweep(&self, now: Instant) {
        let silent = |sidecars: &HashMap<String, Sidecar>| sidecars.values().any(|sidecar| !sidecar.counts(now));
        let keys: Vec<_> = self.lock().iter().filter(|(_, s)| silent(s)).map(|(key, _)| key.clone()).collect();
        keys.into_iter().for_each(|key| self.queue.mark(key));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerKey, HashMap<String, Sidecar>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sidecar {
    fn new(who: &Identity, now: Instant) -> Self {
        let (pod, since) = (who.pod.clone(), Timestamp::now());
        Self { pod, streams: 0, gone_at: None, heard: now, since, report: None, content: None }
    }

    fn counts(&self, now: Instant) -> bool {
        let lingers = self.gone_at.is_none_or(|gone| now.saturating_duration_since(gone) < LINGER);
        lingers && now.saturating_duration_since(self.heard) < SILENCE
    }

    fn unheard(&self, server: cotter_core::name::ServerRef) -> Report {
        let why = "the sidecar is connected and has not reported yet".to_owned();
        Report {
            server,
            sidecar: self.pod.clone(),
            time: self.since,
            enforced: None,
            rejected: None,
            catalogue: CatalogueReport {
                knowledge: Knowledge::NeverRead { why },
                verified_at: None,
                tools: Vec::new(),
                offered: 0,
                unlisted: 0,
                definitions: std::collections::BTreeMap::new(),
            },
            surface: None,
            uses: std::collections::BTreeMap::new(),
        }
    }
}

/// What a report says, without its clocks: the state, and apart from it the uses.
fn contents(report: &Report) -> (Digest, Digest) {
    let mut state = report.clone();
    let uses = std::mem::take(&mut state.uses);
    state.time = Timestamp::UNIX_EPOCH;
    state.catalogue.verified_at = None;
    let digest = |bytes: Result<Vec<u8>, serde_json::Error>| Digest::of(&bytes.unwrap_or_default());
    (digest(serde_json::to_vec(&state)), digest(serde_json::to_vec(&uses)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(pod: &str) -> Identity {
        Identity {
            namespace: "support".into(),
            service_account: "support-mcp".into(),
            pod: pod.into(),
            pod_uid: format!("uid-{pod}"),
        }
    }

    fn server() -> cotter_core::name::ServerRef {
        serde_json::from_str(r#"{"namespace":"support","name":"support"}"#).unwrap()
    }

    fn report(time: &str, enforced: &str) -> Report {
        let digest = Digest::of(enforced.as_bytes());
        serde_json::from_value(serde_json::json!({
            "server": {"namespace": "support", "name": "support"}, "sidecar": "whatever the body says", "time": time,
            "enforced": digest, "catalogue": {"knowledge": "Verified", "verifiedAt": time, "tools": [],
            "offered": 0, "unlisted": 0},
        }))
        .unwrap()
    }

    fn fleet() -> (Arc<Fleet>, Arc<Queue<ServerKey>>, ServerKey) {
        let queue = Arc::new(Queue::default());
        (Arc::new(Fleet::new(queue.clone())), queue, ServerKey::new("support", "support"))
    }

    #[test]
    fn a_report_without_a_stream_is_refused() {
        let (fleet, queue, key) = fleet();
        let refused = fleet.report(&key, &identity("a"), report("2026-11-30T00:00:00Z", "x"));
        assert_eq!(refused, Err(FleetError::NotConnected));
        assert!(queue.is_empty() && fleet.live(&server()).is_empty());
    }

    #[test]
    fn a_report_is_the_one_of_the_tokens_pod_whatever_it_says() {
        let (fleet, _, key) = fleet();
        let _a = fleet.connect(&key, &identity("a")).unwrap();
        let _b = fleet.connect(&key, &identity("b")).unwrap();
        fleet.report(&key, &identity("b"), report("2026-11-30T00:00:00Z", "x")).unwrap();
        let live = fleet.live(&server());
        let names: Vec<_> = live.iter().map(|report| report.sidecar.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(live[0].enforced.is_none(), "connected, and nothing is known of it");
        assert_eq!(live[1].enforced, Some(Digest::of(b"x")));
    }

    #[tokio::test]
    async fn the_same_report_again_marks_nothing_and_another_does() {
        let (fleet, queue, key) = fleet();
        let _stream = fleet.connect(&key, &identity("a")).unwrap();
        let say = |time, enforced| fleet.report(&key, &identity("a"), report(time, enforced)).unwrap();
        say("2026-11-30T00:00:00Z", "x");
        let taken = queue.take().await;
        queue.done(&taken, true);
        say("2026-11-30T00:00:30Z", "x");
        assert!(queue.is_empty(), "a clock is no news");
        say("2026-11-30T00:00:30Z", "y");
        assert!(!queue.is_empty());
    }

    #[test]
    fn a_broken_stream_lingers_and_then_does_not_count() {
        let (fleet, _, key) = fleet();
        let stream = fleet.connect(&key, &identity("a")).unwrap();
        let second = fleet.connect(&key, &identity("a")).unwrap();
        drop(stream);
        fleet.report(&key, &identity("a"), report("2026-11-30T00:00:00Z", "x")).expect("the second stream is open");
        drop(second);
        assert_eq!(fleet.live(&server()).len(), 1, "it lingers");
        let refused = fleet.report(&key, &identity("a"), report("2026-11-30T00:00:00Z", "y"));
        assert_eq!(refused, Err(FleetError::NotConnected), "but nothing new is believed");
        let later = Instant::now() + LINGER;
        assert!(fleet.lock()[&key].values().all(|sidecar| !sidecar.counts(later)));
    }

    #[test]
    fn a_silent_sidecar_does_not_count() {
        let (fleet, queue, key) = fleet();
        let _stream = fleet.connect(&key, &identity("a")).unwrap();
        let now = Instant::now();
        assert!(fleet.lock()[&key].values().all(|sidecar| sidecar.counts(now + SILENCE / 2)));
        assert!(fleet.lock()[&key].values().all(|sidecar| !sidecar.counts(now + SILENCE)));
        fleet.sweep(now + SILENCE);
        assert!(!queue.is_empty());
    }
}
