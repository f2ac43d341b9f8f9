//! Snapshots that are swapped while callers are busy: each request is decided by exactly one of them, whole.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use cotter_core::{
    audit::Record,
    fingerprint::{Ignore, Scheme, fingerprint},
    reason::DenyReason,
    snapshot::{Digest, Sealed},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    desk::WIPE,
    issuer::ISSUER,
    rig::{Rig, Told, seal, snapshot},
};

const SWAPS: u64 = 240;
const CALLERS: usize = 8;
/// Answers between two swaps, at least.
const BETWEEN: u64 = 6;

/// The two kinds of revision differ in policy, in delegation and in pin, so that every mixture shows:
/// an even one lists `policy_lookup` and `wipe_all`, an odd one `case_tag`.
fn revision(rig: &Rig, number: u64) -> Sealed {
    let (letter, closed) = if number.is_multiple_of(2) { ("A", "case_tag") } else { ("B", "policy_lookup") };
    let wipe: Value = serde_json::from_str(WIPE).unwrap();
    let mut value = snapshot(&rig.desk, &rig.issuer.jwks());
    value["generation"] = json!(number + 1);
    value["tools"]["wipe_all"] = json!({"scope": "policy:read", "effect": "Write"});
    value["pin"]["tools"]["wipe_all"] = json!({
        "fingerprint": fingerprint(&wipe, Scheme::ToolV1, &Ignore::NONE).unwrap(), "definition": wipe,
        "mismatched": letter == "B",
    });
    value["grants"] = json!([{
        "name": format!("grant-{letter}"), "delegate": {"subject": {"issuer": ISSUER, "subject": "alice"}},
        "scopes": ["policy:read", "case:write"], "effects": ["Read", "Write"], "tools": [["*"]], "tenants": ["tenant-7"],
        "expiresAt": "2099-01-01T00:00:00Z",
    }]);
    let rule = format!("deny contains \"{letter}\" if input.tool.name == \"{closed}\"");
    value["policies"] = json!({"rules.rego": format!("package cotter.user.rules\n\n{rule}\n")});
    // Many requests come from one caller.
    value["limits"]["ratePerPrincipal"] = json!({"tokens": 1_000_000, "perMs": 1000, "burst": 1_000_000});
    seal(value)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Ask {
    List,
    LegacyList,
    Call(&'static str),
}

const ASKS: [Ask; 5] =
    [Ask::List, Ask::Call("policy_lookup"), Ask::Call("case_tag"), Ask::LegacyList, Ask::Call("wipe_all")];

/// An answer, with the first and the last revision that may have given it.
struct Heard {
    ask: Ask,
    told: Told,
    from: u64,
    until: u64,
}

#[derive(Default)]
struct Desk {
    /// The revision that was last sent off, and the one that was last acknowledged.
    sent: AtomicU64,
    acknowledged: AtomicU64,
    answers: AtomicU64,
    heard: Mutex<Vec<Heard>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_swap_under_load_leaves_no_request_decided_by_half_of_each() {
    let mut rig = Rig::start().await;
    let records = collect(std::mem::replace(&mut rig.records, mpsc::channel(1).1));
    let (rig, desk) = (Arc::new(rig), Arc::new(Desk::default()));
    let numbers: HashMap<Digest, u64> = (0..=SWAPS).map(|number| (revision(&rig, number).digest(), number)).collect();
    swap(&rig, &desk, 0).await;
    let callers: Vec<_> = (0..CALLERS).map(|place| tokio::spawn(ask(rig.clone(), desk.clone(), place))).collect();
    for number in 1..=SWAPS {
        swap(&rig, &desk, number).await;
        let goal = desk.answers.load(SeqCst) + BETWEEN;
        while desk.answers.load(SeqCst) < goal {
            assert!(callers.iter().all(|caller| !caller.is_finished()), "a caller gave up");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    desk.sent.store(u64::MAX, SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
    let mut seen: HashMap<(Ask, bool), u64> = HashMap::new();
    let heard = std::mem::take(&mut *desk.heard.lock().unwrap());
    for heard in heard {
        let record = record(&records, &heard.told).await;
        let number = numbers[&record.snapshot.expect("a snapshot decided")];
        let (from, until) = (heard.from, heard.until);
        assert!((from..=until).contains(&number), "{number} decided between {from} and {until}: {:?}", heard.told);
        judge(heard.ask, &heard.told, &record, number.is_multiple_of(2));
        *seen.entry((heard.ask, number.is_multiple_of(2))).or_default() += 1;
    }
    assert_eq!(seen.len(), ASKS.len() * 2, "every question met both kinds: {seen:?}");
}

async fn swap(rig: &Rig, desk: &Desk, number: u64) {
    let sealed = revision(rig, number);
    let digest = sealed.digest();
    desk.sent.store(number, SeqCst);
    rig.snapshots.send_replace(Some(sealed));
    rig.until(|report| report.enforced == Some(digest)).await;
    desk.acknowledged.store(number, SeqCst);
}

/// One caller, until the last swap is over.
async fn ask(rig: Arc<Rig>, desk: Arc<Desk>, place: usize) {
    let token = rig.issuer.token("policy:read case:write");
    let session = rig.session(&token).await;
    for ask in ASKS.iter().copied().cycle().skip(place) {
        let from = desk.acknowledged.load(SeqCst);
        let told = match ask {
            Ask::List => rig.modern(&token, "tools/list", json!({})).await,
            Ask::LegacyList => rig.legacy(&token, &session, "tools/list", json!({})).await,
            Ask::Call(tool) => rig.call(&token, tool).await,
        };
        let until = desk.sent.load(SeqCst);
        desk.heard.lock().unwrap().push(Heard { ask, told, from, until: until.min(SWAPS) });
        desk.answers.fetch_add(1, SeqCst);
        if until == u64::MAX {
            return;
        }
    }
}

/// What one revision answers, in its list, in its calls and in its records.
fn judge(ask: Ask, told: &Told, record: &Record, even: bool) {
    let (letter, listed): (_, &[&str]) =
        if even { ("A", &["policy_lookup", "wipe_all"]) } else { ("B", &["case_tag"]) };
    assert!(told.status < 500, "{told:?}");
    let tool = match ask {
        Ask::Call(tool) => tool,
        Ask::List | Ask::LegacyList => {
            let tools = told.json()["result"]["tools"].as_array().unwrap_or_else(|| panic!("{told:?}")).clone();
            let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            return assert_eq!(names, listed, "{told:?}");
        }
    };
    assert_eq!(record.allow, listed.contains(&tool), "{letter}: {record:?}");
    if record.allow {
        assert_eq!(record.delegation.as_deref(), Some(format!("grant-{letter}").as_str()), "{record:?}");
        assert!(told.json()["result"]["content"].is_array(), "{told:?}");
        return;
    }
    assert_eq!(told.json()["error"]["message"], "Unknown tool", "{told:?}");
    let reason = record.reasons.first().map(|reason| (reason.code, reason.detail.as_deref()));
    let expected =
        if tool == "wipe_all" { (DenyReason::Quarantined, None) } else { (DenyReason::PolicyDenied, Some(letter)) };
    assert_eq!(reason, Some(expected), "{record:?}");
}

type Records = Arc<Mutex<HashMap<String, Arc<Record>>>>;

fn collect(mut from: mpsc::Receiver<Arc<Record>>) -> Records {
    let records = Records::default();
    let kept = records.clone();
    tokio::spawn(async move {
        while let Some(record) = from.recv().await {
            kept.lock().unwrap().insert(record.id.clone(), record);
        }
    });
    records
}

async fn record(records: &Records, told: &Told) -> Arc<Record> {
    let id = told.header("cotter-decision").unwrap();
    let wait = async {
        loop {
            if let Some(record) = records.lock().unwrap().get(id) {
                return record.clone();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("every decision is recorded")
}
