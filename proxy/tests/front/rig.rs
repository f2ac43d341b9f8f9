//! A sidecar between a test and a desk.

use std::{path::PathBuf, sync::Arc, time::Duration};

use cotter_core::{
    audit::Record,
    catalogue::ToolState,
    fingerprint::{Ignore, Scheme, fingerprint},
    report::{Knowledge, Report},
    snapshot::{Sealed, Snapshot},
};
use cotter_proxy::{Config, Sidecar, audit::Sink, contact::Contact, ledger::Ledger};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::{
    desk::{Desk, LOOKUP, TAG},
    issuer::{AUDIENCE, ISSUER, Issuer},
};

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// How long anything that has to happen may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Rig {
    pub(crate) sidecar: Sidecar,
    pub(crate) desk: Desk,
    pub(crate) issuer: Issuer,
    pub(crate) snapshots: watch::Sender<Option<Sealed>>,
    pub(crate) reports: watch::Receiver<Option<Arc<Report>>>,
    pub(crate) records: mpsc::Receiver<Arc<Record>>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer, whole.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Everything that a caller could tell two answers apart by, but the decision's id and the time of day.
    pub(crate) fn face(&self) -> (u16, Vec<(String, String)>, String) {
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), format!("{value:?}")))
            .filter(|(name, _)| name != "cotter-decision" && name != "date")
            .collect();
        headers.sort();
        (self.status, headers, self.body.clone())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// The snapshot of the running example, with both tools pinned.
pub(crate) fn snapshot(desk: &Desk, jwks: &Value) -> Value {
    let print = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        json!({"fingerprint": fingerprint(&value, Scheme::ToolV1, &Ignore::NONE).unwrap(), "definition": value})
    };
    json!({
        "version": "cotter.snapshot/v1",
        "server": {"namespace": "support", "name": "support"},
        "generation": 1,
        "upstream": {"http": {"url": desk.url}},
        "protocol": {"revisions": ["2025-06-18", LEGACY, MODERN]},
        "access": {
            "audience": AUDIENCE, "hosts": ["support.support.svc"], "origins": ["https://app.example"],
            "issuers": [{
                "name": "corp", "issuer": ISSUER, "jwks": jwks,
                "claims": {"tenant": "tenant", "scopes": "scope", "groups": "groups"},
            }],
            "tenants": ["tenant-7"], "insufficientScope": "Hide", "advertisedScopes": [],
        },
        "tools": {
            "policy_lookup": {"scope": "policy:read", "effect": "Read"},
            "case_tag": {"scope": "case:write", "effect": "Write"},
        },
        "pinning": "Quarantine",
        "pin": {
            "name": "support", "scheme": "cotter.tool/v1", "enforcement": "Quarantine", "onDrift": {"Cosmetic": "Report"},
            "tools": {"policy_lookup": print(LOOKUP), "case_tag": print(TAG)},
        },
        "grants": [],
        "policies": {},
        "limits": {
            "requestBytes": 65536, "resultBytes": 65536, "timeoutMs": 5000, "concurrent": 64, "sessions": 100,
            "ratePerPrincipal": {"tokens": 1000, "perMs": 1000, "burst": 1000},
        },
        "verify": {"intervalMs": 1000, "graceMs": 300000},
        "stale": {"afterMs": 300000, "action": "Report"},
    })
}

pub(crate) fn seal(value: Value) -> Sealed {
    let snapshot: Snapshot = serde_json::from_value(value).unwrap();
    Sealed::seal(snapshot).unwrap()
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A sidecar that enforces the running example with a change, and has read the desk's list.
    pub(crate) async fn with(change: impl FnOnce(&mut Value)) -> Self {
        let rig = Self::unread(change).await;
        rig.until(|report| matches!(report.catalogue.knowledge, Knowledge::Verified)).await;
        rig
    }

    /// The same with an operator that may fall silent, or a folder for the last snapshot.
    pub(crate) async fn watched(
        contact: Option<Contact>,
        state_dir: Option<PathBuf>,
        change: impl FnOnce(&mut Value),
    ) -> Self {
        let rig = Self::built(contact, state_dir, change).await;
        rig.until(|report| matches!(report.catalogue.knowledge, Knowledge::Verified)).await;
        rig
    }

    /// The same, whether the list was read or not.
    pub(crate) async fn unread(change: impl FnOnce(&mut Value)) -> Self {
        Self::built(None, None, change).await
    }

    async fn built(contact: Option<Contact>, state_dir: Option<PathBuf>, change: impl FnOnce(&mut Value)) -> Self {
        let (desk, issuer) = (Desk::start().await, Issuer::new("one"));
        let mut value = snapshot(&desk, &issuer.jwks());
        change(&mut value);
        let (snapshots, receiver) = watch::channel(Some(seal(value)));
        let (sender, reports) = watch::channel(None);
        let (sink, records) = mpsc::channel(1024);
        let config = Config {
            name: "test".to_owned(),
            server: serde_json::from_value(json!({"namespace": "support", "name": "support"})).unwrap(),
            listen: "127.0.0.1:0".parse().unwrap(),
            admin: Some("127.0.0.1:0".parse().unwrap()),
            snapshots: receiver,
            reports: sender,
            audit: Sink::Channel(sink),
            state_dir,
            work_dir: None,
            ledger: Arc::new(Ledger::alone()),
            contact,
        };
        let sidecar = Sidecar::start(config).await.unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let rig = Self { sidecar, desk, issuer, snapshots, reports, records, client };
        rig.until(|report| report.enforced.is_some() || report.rejected.is_some()).await;
        rig
    }

    /// Waits for a report that fits.
    pub(crate) async fn until(&self, fits: impl Fn(&Report) -> bool) -> Arc<Report> {
        let mut reports = self.reports.clone();
        let wait = reports.wait_for(|report| report.as_deref().is_some_and(&fits));
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(report) => report.unwrap().clone().unwrap(),
            Err(_) => panic!("no report fits: {:?}", self.reports.borrow()),
        }
    }

    /// Waits until a tool is in a state.
    pub(crate) async fn until_tool(&self, tool: &str, state: ToolState) -> Arc<Report> {
        self.until(|report| report.catalogue.tools.iter().any(|t| t.name == tool && t.state == state)).await
    }

    /// Puts a changed snapshot in force.
    pub(crate) async fn enforce(&self, change: impl FnOnce(&mut Value)) {
        let mut value = snapshot(&self.desk, &self.issuer.jwks());
        value["generation"] = json!(2);
        change(&mut value);
        let sealed = seal(value);
        let digest = sealed.digest();
        self.snapshots.send_replace(Some(sealed));
        self.until(|report| report.enforced == Some(digest)).await;
    }

    pub(crate) async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Told {
        let address = self.sidecar.local_addr();
        let mut request = Request::builder().method(method).uri(format!("http://{address}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let (head, body) = self.client.request(request).await.unwrap().into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Told { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Posts a text with the headers that every message has, and more.
    pub(crate) async fn post_text(&self, token: Option<&str>, more: &[(&str, &str)], body: &str) -> Told {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        headers.extend(more);
        self.send(Method::POST, "/mcp", &headers, body).await
    }

    pub(crate) async fn post(&self, token: &str, more: &[(&str, &str)], body: &Value) -> Told {
        self.post_text(Some(token), more, &body.to_string()).await
    }

    /// Opens a legacy session.
    pub(crate) async fn session(&self, token: &str) -> String {
        let told = self.post(token, &[], &initialize(LEGACY)).await;
        assert_eq!(told.status, 200, "{told:?}");
        told.header("mcp-session-id").unwrap().to_owned()
    }

    /// One request of the legacy era in a session.
    pub(crate) async fn legacy(&self, token: &str, session: &str, method: &str, params: Value) -> Told {
        let headers = [("mcp-session-id", session), ("mcp-protocol-version", LEGACY)];
        self.post(token, &headers, &request(method, params)).await
    }

    /// One request of the modern era, with the headers that it needs.
    pub(crate) async fn modern(&self, token: &str, method: &str, params: Value) -> Told {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        self.post(token, &headers, &request(method, stated(params))).await
    }

    /// Names of the tools that a principal with these scopes is listed.
    pub(crate) async fn listed(&self, token: &str) -> Vec<String> {
        let told = self.modern(token, "tools/list", json!({})).await;
        let tools = told.json()["result"]["tools"].as_array().unwrap_or_else(|| panic!("{told:?}")).clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn call(&self, token: &str, tool: &str) -> Told {
        // What both tools take.
        let arguments = json!({"topic": "refund", "case_id": "case-1", "tag": "eligible", "idempotency_key": "k-1"});
        self.modern(token, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The record of an answer.
    pub(crate) async fn record(&mut self, told: &Told) -> Arc<Record> {
        let id = told.header("cotter-decision").unwrap().to_owned();
        loop {
            let record = tokio::time::timeout(PATIENCE, self.records.recv()).await.expect("a record").unwrap();
            if record.id == id {
                return record;
            }
        }
    }
}

pub(crate) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn initialize(revision: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    request("initialize", json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client}))
}

/// The parameters with what every modern request states.
pub(crate) fn stated(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}
