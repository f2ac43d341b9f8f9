//! Budgets across sidecars and restarts: nothing that was charged is forgotten, and nothing is counted twice.

use std::time::{Duration, Instant};

use cotter_crds::AgentDelegation;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    cluster::{Place, exclusive, operator, until},
    sidecar::Sidecar,
};

async fn delegation(place: &Place, servers: &[&str], budget: Value) -> String {
    let servers: Vec<Value> = servers.iter().map(|name| json!({"name": name})).collect();
    let made = place.apply::<AgentDelegation>(json!({"metadata": {"name": "triage"}, "spec": {
        "delegate": {"serviceAccount": {"name": "triage", "namespace": "agents"}}, "budget": budget,
        "to": {"servers": servers}, "scopes": ["policy:read"], "effects": ["Read"], "tenants": ["tenant-7"],
        "expiresAt": "2026-12-31T00:00:00Z",
    }}));
    made.await.uid().unwrap()
}

async fn sidecar(place: &Place, server: &str, run: &str) -> Sidecar {
    Sidecar::of(place, server).await.in_run(run)
}

/// Waits until the status says so many calls of so many.
async fn used(place: &Place, wanted: &str) {
    until(&format!("status.budget to be {wanted}"), || async {
        let status = place.api::<AgentDelegation>().get("triage").await.unwrap().status?;
        (status.budget?.used == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn a_budget_outlives_sidecars_and_the_operator() {
    let (mut operator, place) = (exclusive().await, Place::new().await);
    place.server("support", |_| ()).await;
    let key = delegation(&place, &["support"], json!({"calls": 10})).await;
    place.wait::<AgentDelegation>("triage", "Active", "True", "Active").await;
    used(&place, "0/10").await;

    let first = sidecar(&place, "support", "r1").await;
    assert_eq!(first.charges(&key, 1).await, 409, "no stream is open, so nobody is believed");
    let mut stream = first.open().await.unwrap();
    assert_eq!(stream.told(&key).await, (0, 1, 0));
    let sealed = stream.next().await;
    let budgets = &sealed.snapshot().grants[0].budgets;
    assert_eq!((budgets.len(), budgets[0].key(), budgets[0].calls), (1, key.as_str(), Some(10)));
    assert_eq!(first.charges(&key, 4).await, 204);
    drop(stream);

    let second = sidecar(&place, "support", "r2").await;
    let mut stream = second.open().await.unwrap();
    assert_eq!(stream.told(&key).await.0, 4, "what the run before charged");
    assert_eq!((first.charges(&key, 9).await, second.charges(&key, 2).await), (409, 204), "the run before has ended");
    used(&place, "6/10").await;

    operator.stop().await;
    operator.spawn().await;
    let mut stream = second.open().await.unwrap();
    assert_eq!(stream.told(&key).await.0, 4, "a run that goes on has its own count");
    assert_eq!(second.charges(&key, 3).await, 204, "one more, made while the operator was away");
    let third = sidecar(&place, "support", "r3").await;
    let mut stream = third.open().await.unwrap();
    assert_eq!(stream.told(&key).await.0, 7);
    assert_eq!(third.charges(&key, 3).await, 204);
    place.wait::<AgentDelegation>("triage", "Active", "False", "BudgetExhausted").await;
    used(&place, "10/10").await;
    delegation(&place, &["support"], json!({"calls": 11})).await;
    place.wait::<AgentDelegation>("triage", "Active", "True", "Active").await;
    used(&place, "10/11").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a kube-apiserver: KUBECONFIG"]
async fn two_sidecars_share_a_budget() {
    let (_operator, place) = (operator().await, Place::new().await);
    place.server("support", |_| ()).await;
    place.server("billing", |_| ()).await;
    let key = delegation(&place, &["support", "billing"], json!({"calls": 10, "perMinute": 5})).await;
    place.wait::<AgentDelegation>("triage", "Active", "True", "Active").await;
    used(&place, "0/10").await;
    let (a, b) = (sidecar(&place, "support", "a").await, sidecar(&place, "billing", "b").await);
    let mut to_a = a.open().await.unwrap();
    assert_eq!(to_a.told(&key).await, (0, 1, 0));
    to_a.next().await;
    let mut to_b = b.open().await.unwrap();
    assert_eq!((to_b.told(&key).await, to_a.told(&key).await), ((0, 2, 1), (0, 2, 0)));
    to_b.next().await;
    let charged = Instant::now();
    assert_eq!(a.charges(&key, 7).await, 204);
    assert_eq!(to_b.told(&key).await, (7, 2, 1));
    println!("charge to the other sidecar: {:?}", charged.elapsed());
    assert!(charged.elapsed() < Duration::from_secs(3));
    assert_eq!(b.charges(&key, 2).await, 204);
    assert_eq!(to_a.told(&key).await, (2, 2, 0));
    used(&place, "9/10").await;
    assert_eq!(a.charges(&key, 8).await, 204);
    let used_up = place.wait::<AgentDelegation>("triage", "Active", "False", "BudgetExhausted").await;
    assert!(used_up.message.contains("10 calls"), "{}", used_up.message);
    drop(to_b);
    assert_eq!(to_a.told(&key).await, (2, 1, 0), "alone again, and what the other one charged stays charged");
}
