//! What goes on when something ends: the operator, the server, its container.

use std::time::Instant;

use cotter_tests::cluster::{Caller, Namespace, condition, is, kubectl};
use serde_json::Value;

use crate::{
    desk::{Files, PODS, starts},
    filesystem::AUDIENCE,
    said::figure,
};

const SYSTEM: [&str; 2] = ["--namespace", "cotter-system"];
const OPERATOR: &str = "deployment/cotter-operator";

/// Takes the operator away, and brings it back however the test ends.
struct Absence;

impl Absence {
    fn begin() -> Self {
        let absence = Self;
        kubectl(&[&SYSTEM[..], &["scale", OPERATOR, "--replicas=0"]].concat()).succeeded();
        let gone = ["wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=cotter", "--timeout=60s"];
        kubectl(&[&SYSTEM[..], &gone].concat()).succeeded();
        absence
    }
}

impl Drop for Absence {
    fn drop(&mut self) {
        kubectl(&[&SYSTEM[..], &["scale", OPERATOR, "--replicas=1"]].concat());
    }
}

fn is_allowed(record: &Value) -> bool {
    record["allow"].as_bool().unwrap()
}

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn sidecars_serve_without_the_operator_and_learn_what_they_missed_when_it_is_back() {
    let namespace = Namespace::fresh("alone");
    let reader = Caller::create(&namespace, "reader", AUDIENCE);
    let files = Files::apply(&namespace);
    files.wait(&reader);
    files.serves(&reader);
    let before = starts(&namespace);

    let absence = Absence::begin();
    files.serves(&reader);
    files.change("delegation.yaml", "  tenants:", "  suspended: true\n  tenants:");
    files.serves(&reader);
    drop(absence);

    let began = Instant::now();
    let suspended = |delegation: &Value| is(delegation, "Active", "False") && is(delegation, "Enforced", "True");
    let delegation = namespace.wait_until("adel", "reader", suspended);
    figure("from an operator's start to a revocation of its absence enforced", began);
    assert_eq!(condition(&delegation, "Active")["reason"], "Suspended", "{delegation:#}");
    let refused = files.read(&reader);
    let record = namespace.record("filesystem", &refused);
    assert!(!is_allowed(&record), "{record}");
    assert_eq!(record["reasons"][0]["code"], "NoDelegation");
    namespace.wait_for_tools("filesystem", "14/14");
    assert_eq!(starts(&namespace), before, "nothing was restarted");
}

/// Ends every process of the container but the first, which is the shim, and this one.
const END_SERVER: &str = r#"for process in /proc/[0-9]*; do
  id=${process#/proc/}; [ "$id" = 1 ] || [ "$id" = $$ ] || kill -9 "$id"
done"#;

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn a_server_that_dies_is_started_again_and_so_is_its_container() {
    let namespace = Namespace::fresh("crash");
    let reader = Caller::create(&namespace, "reader", AUDIENCE);
    let files = Files::apply(&namespace);
    files.wait(&reader);
    files.serves(&reader);
    let before = starts(&namespace);
    let in_server =
        |script: &str| namespace.kubectl(&["exec", "deployment/filesystem", "-c", "server", "--", "sh", "-c", script]);

    in_server(END_SERVER).succeeded();
    recovers(&files, &reader);
    assert_eq!(starts(&namespace), before, "the server alone was started again");

    in_server("kill 1");
    let restarted = |pod: &Value| {
        let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
        let server = statuses.iter().find(|status| status["name"] == "server").unwrap();
        server["restartCount"].as_u64() > Some(0) && !server["state"]["running"].is_null()
    };
    let name = namespace.pods(PODS)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    namespace.wait_until("pod", &name, restarted);
    recovers(&files, &reader);
    let after = starts(&namespace);
    let sidecar = |starts: &[(String, String, u64)]| starts.iter().find(|one| one.1 == "cotter-proxy").cloned();
    assert_eq!(sidecar(&after), sidecar(&before), "the sidecar went on");
    namespace.wait_for_tools("filesystem", "14/14");
}

/// The next calls may say that the server is away, for as long as it takes to start; then all is well.
fn recovers(files: &Files<'_>, reader: &Caller<'_>) {
    let began = Instant::now();
    for attempt in 1.. {
        let answer = files.try_read(reader);
        let result = answer.as_ref().map(|answer| answer.json()["result"].clone()).unwrap_or_default();
        if !result.is_null() && result["isError"] != true {
            figure(&format!("from the server's end to an answer, by attempt {attempt}"), began);
            return;
        }
        assert!(began.elapsed().as_secs() < 60, "{answer:?}");
    }
}
