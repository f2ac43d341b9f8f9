//! Without the operator, and without the client.

use std::time::Duration;

use cotter_core::snapshot::Digest;
use cotter_proxy::{contact::Contact, keeper};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    desk::Desk,
    rig::{Rig, seal, snapshot},
};

#[tokio::test]
async fn without_the_operator_the_last_snapshot_goes_on_or_not_as_it_says() {
    for (action, status) in [("Report", 200), ("Refuse", 503)] {
        let contact = Contact::default();
        let silent = contact.clone();
        let rig = Rig::watched(Some(contact), None, |snapshot| {
            snapshot["stale"] = json!({"afterMs": 1500, "action": action});
        })
        .await;
        let token = rig.issuer.token("policy:read");
        silent.heard();
        assert_eq!(rig.modern(&token, "tools/list", json!({})).await.status, 200, "{action}");
        tokio::time::sleep(Duration::from_millis(1700)).await;
        let told = rig.modern(&token, "tools/list", json!({})).await;
        assert_eq!(told.status, status, "{action}");
        if status == 503 {
            assert_eq!(told.json()["error"]["data"]["reason"], "SnapshotStale");
        }
        silent.heard();
        assert_eq!(rig.modern(&token, "tools/list", json!({})).await.status, 200, "{action}");
    }
}

#[tokio::test]
async fn the_last_good_snapshot_is_kept_for_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::watched(None, Some(dir.path().to_owned()), |_| {}).await;
    rig.enforce(|snapshot| snapshot["tools"]["case_tag"]["scope"] = json!("case:admin")).await;
    let enforced: Digest = rig.reports.borrow().as_ref().unwrap().enforced.unwrap();
    let kept = || keeper::load(dir.path()).is_some_and(|kept| kept.digest() == enforced);
    while !kept() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut bad = snapshot(&rig.desk, &rig.issuer.jwks());
    bad["policies"] = json!({"bad.rego": "package cotter.user.bad\n\ndeny contains"});
    rig.snapshots.send_replace(Some(seal(bad)));
    rig.until(|report| report.rejected.is_some()).await;
    assert_eq!(keeper::load(dir.path()).unwrap().digest(), enforced, "one that is not enforced is not kept");
    rig.sidecar.shutdown().await;
    std::fs::write(dir.path().join("snapshot.json"), "{").unwrap();
    assert!(keeper::load(dir.path()).is_none());
}

#[tokio::test]
async fn the_newer_snapshot_starts() {
    let desk = Desk::start().await;
    let of = |generation: i64| {
        let mut value = snapshot(&desk, &json!({"keys": []}));
        value["generation"] = json!(generation);
        seal(value)
    };
    let digest = |sealed: Option<cotter_core::snapshot::Sealed>| sealed.map(|sealed| sealed.digest());
    let (one, two) = (of(1), of(2));
    assert_eq!(digest(keeper::newer(Some(one.clone()), Some(two.clone()))), Some(two.digest()));
    assert_eq!(digest(keeper::newer(Some(two.clone()), Some(one.clone()))), Some(two.digest()));
    assert_eq!(digest(keeper::newer(None, Some(one.clone()))), Some(one.digest()));
    assert_eq!(digest(keeper::newer(Some(one.clone()), None)), Some(one.digest()));
    assert_eq!(digest(keeper::newer(None, None)), None);
}

/// A client that hangs up in the middle of a call leaves a record of what was allowed.
#[tokio::test]
async fn a_call_whose_client_goes_away_is_recorded() {
    let mut rig = Rig::start().await;
    let token = rig.issuer.token("policy:read");
    rig.call(&token, "policy_lookup").await;
    rig.desk.state.lock().unwrap().delay = Duration::from_secs(30);
    let body = crate::rig::request(
        "tools/call",
        crate::rig::stated(json!({"name": "policy_lookup", "arguments": {"topic": "refund"}})),
    )
    .to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\naccept: */*\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: policy_lookup\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(rig.sidecar.local_addr()).await.unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    while rig.desk.calls().len() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stream);
    let record = loop {
        let record = tokio::time::timeout(Duration::from_secs(20), rig.records.recv()).await.unwrap().unwrap();
        if record.status == 499 {
            break record;
        }
    };
    assert!(record.allow && record.fingerprint.is_some(), "{record:?}");
    assert_eq!(record.tool.as_deref(), Some("policy_lookup"));
}
