//! A sidecar that is played by a test: a real pod's real token on a real connection.

use std::{sync::Arc, time::Duration};

use cotter_core::{
    catalogue::{Catalogue, Observed, definitions},
    report::{CatalogueReport, Knowledge, Report, Surface},
    snapshot::{Digest, Sealed},
    tool::{ListKind, ToolObject},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::{Bytes, Incoming},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json, value::RawValue};

use super::cluster::{Place, until};

/// What a token is asked for.
pub(crate) struct TokenFor<'a> {
    pub(crate) account: &'a str,
    pub(crate) audience: &'a str,
    pub(crate) pod: Option<&'a Pod>,
}

/// A token as kubelet would project it.
pub(crate) async fn token(place: &Place, wanted: TokenFor<'_>) -> String {
    let bound =
        wanted.pod.map(|pod| json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()}));
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": [wanted.audience], "expirationSeconds": 600, "boundObjectRef": bound}});
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}/token", place.namespace, wanted.account);
    let request = Request::post(path).header("content-type", "application/json").body(body.to_string().into_bytes());
    let answer: Value = place.client.request(request.unwrap()).await.expect("a token is minted");
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// The first pod of a server's Deployment.
pub(crate) async fn pod(place: &Place, server: &str) -> Pod {
    let params = kube::api::ListParams::default().labels(&format!("cotter.dev/server={server}"));
    until("the server's pod", || async { place.api::<Pod>().list(&params).await.unwrap().items.into_iter().next() })
        .await
}

/// Says of the server's first pod what kubelet says once its probe was answered: that it can be called.
pub(crate) async fn ready(place: &Place, server: &str) {
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let name = pod(place, server).await.name_any();
    let patch = kube::api::Patch::Merge(status);
    place.api::<Pod>().patch_status(&name, &kube::api::PatchParams::default(), &patch).await.expect("it is ready");
}

/// A sidecar of one server.
pub(crate) struct Sidecar {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    token: String,
    run: Option<String>,
}

/// What is mounted into a sidecar.
#[derive(serde::Deserialize)]
pub(crate) struct Bootstrap {
    pub(crate) operator: String,
    pub(crate) ca: String,
    pub(crate) snapshot: Option<Line>,
}

/// A line of the stream.
#[derive(serde::Deserialize)]
pub(crate) struct Line {
    pub(crate) digest: Digest,
    pub(crate) snapshot: Box<RawValue>,
}

impl Line {
    /// The snapshot, if its bytes are those that were announced.
    pub(crate) fn open(&self) -> Sealed {
        Sealed::open(self.snapshot.get(), Some(self.digest)).expect("the announced bytes")
    }
}

/// What a sidecar of this server starts with.
pub(crate) async fn bootstrap(place: &Place, server: &str) -> Bootstrap {
    let name = format!("{server}-bootstrap");
    let map = until("the bootstrap", || async { place.api::<ConfigMap>().get_opt(&name).await.unwrap() }).await;
    serde_json::from_str(&map.data.unwrap()["bootstrap.json"]).unwrap()
}

impl Sidecar {
    /// The sidecar of the server's first pod.
    pub(crate) async fn of(place: &Place, server: &str) -> Self {
        let pod = pod(place, server).await;
        let account = pod.spec.as_ref().unwrap().service_account_name.clone().unwrap();
        let token =
            token(place, TokenFor { account: &account, audience: "cotter.dev/operator", pod: Some(&pod) }).await;
        Self::with(place, server, token).await
    }

    /// Somebody with this token who asks for this server.
    pub(crate) async fn with(place: &Place, server: &str, token: String) -> Self {
        let bootstrap = bootstrap(place, server).await;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(bootstrap.ca.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
        let base = format!("{}/v1/namespaces/{}/servers/{server}", bootstrap.operator, place.namespace);
        Self { http: Client::builder(TokioExecutor::new()).build(connector), base, token, run: None }
    }

    /// The same sidecar asking for another server.
    pub(crate) fn asks_for(&mut self, place: &Place, server: &str) {
        let (base, _) = self.base.split_once("/v1/").unwrap();
        self.base = format!("{base}/v1/namespaces/{}/servers/{server}", place.namespace);
    }

    /// The same sidecar in a run of this name.
    pub(crate) fn in_run(mut self, run: &str) -> Self {
        self.run = Some(run.to_owned());
        self
    }

    /// Tells what the run charged to one budget, and gives the status of the answer.
    pub(crate) async fn charges(&self, key: &str, calls: u64) -> u16 {
        let charges = json!({"run": self.run.as_ref().unwrap(), "made": calls, "charged": {key: calls}});
        self.post_to("charges", charges.to_string().into_bytes()).await
    }

    /// Opens the stream, or says with which status it was refused.
    pub(crate) async fn open(&self) -> Result<Stream, u16> {
        let request =
            Request::get(format!("{}/snapshots", self.base)).header("authorization", format!("Bearer {}", self.token));
        let request = match &self.run {
            Some(run) => request.header("cotter-run", run),
            None => request,
        };
        let answer = self.http.request(request.body(Full::default()).unwrap()).await.expect("the operator answers");
        match answer.status().as_u16() {
            200 => Ok(Stream { body: answer.into_body(), text: Vec::new() }),
            status => Err(status),
        }
    }

    /// Posts a report and gives the status of the answer.
    pub(crate) async fn report(&self, report: &Report) -> u16 {
        self.post(serde_json::to_vec(report).unwrap()).await
    }

    /// Posts anything as a report.
    pub(crate) async fn post(&self, body: Vec<u8>) -> u16 {
        self.post_to("reports", body).await
    }

    async fn post_to(&self, what: &str, body: Vec<u8>) -> u16 {
        let request =
            Request::post(format!("{}/{what}", self.base)).header("authorization", format!("Bearer {}", self.token));
        let request = request.header("content-type", "application/json").body(Full::from(body)).unwrap();
        self.http.request(request).await.expect("the operator answers").status().as_u16()
    }
}

/// An open stream. Dropping it closes the connection.
pub(crate) struct Stream {
    body: Incoming,
    text: Vec<u8>,
}

impl Stream {
    /// The next snapshot.
    pub(crate) async fn next(&mut self) -> Sealed {
        self.next_within(Duration::from_secs(20)).await.expect("a snapshot comes")
    }

    /// The next snapshot, if one comes in time.
    pub(crate) async fn next_within(&mut self, time: Duration) -> Option<Sealed> {
        tokio::time::timeout(time, async {
            loop {
                let line = self.line().await.expect("the stream goes on");
                if line.starts_with("{\"digest\"") {
                    return serde_json::from_str::<Line>(&line).unwrap().open();
                }
            }
        })
        .await
        .ok()
    }

    /// What is told next of one budget, before any snapshot: calls elsewhere, live sidecars, place.
    pub(crate) async fn told(&mut self, key: &str) -> (u64, u64, u64) {
        let line = async {
            loop {
                let line: Value = serde_json::from_str(&self.line().await.expect("the stream goes on")).unwrap();
                assert!(line.get("snapshot").is_none(), "a snapshot comes before what was charged");
                if let Some(share) = line.pointer(&format!("/budgets/{key}")) {
                    return ["elsewhere", "sidecars", "place"].map(|name| share[name].as_u64().unwrap());
                }
            }
        };
        let [elsewhere, sidecars, place] =
            tokio::time::timeout(Duration::from_secs(20), line).await.expect("it is told");
        (elsewhere, sidecars, place)
    }

    /// Whether the stream ends in time.
    pub(crate) async fn ends(&mut self) -> bool {
        let end = async { while self.line().await.is_some() {} };
        tokio::time::timeout(Duration::from_secs(20), end).await.is_ok()
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.text.iter().position(|byte| *byte == b'\n') {
                let rest = self.text.split_off(at + 1);
                let line = std::mem::replace(&mut self.text, rest);
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            let frame = self.body.frame().await?.ok()?;
            self.text.extend_from_slice(&frame.into_data().ok()?);
        }
    }
}

/// What a sidecar says that enforces this snapshot in front of a server with these tools.
pub(crate) fn report(sealed: &Sealed, tools: &[Value]) -> Report {
    let parse = |tool: &Value| ToolObject::parse(&tool.to_string(), ListKind::Tools).unwrap();
    let observed = Observed { tools: tools.iter().map(parse).collect(), digest: Digest::of(b"list") };
    let catalogue = Catalogue::verify(sealed.snapshot(), &observed);
    let now = Timestamp::now();
    Report {
        server: sealed.snapshot().server.clone(),
        sidecar: "somebody-else".to_owned(),
        time: now,
        enforced: Some(sealed.digest()),
        rejected: None,
        catalogue: CatalogueReport {
            knowledge: Knowledge::Verified,
            verified_at: Some(now),
            tools: catalogue.tools(),
            offered: u32::try_from(catalogue.offered()).unwrap(),
            unlisted: u32::try_from(catalogue.unlisted()).unwrap(),
            definitions: definitions(&observed),
        },
        surface: Some(Surface {
            protocol: "2025-11-25".to_owned(),
            transport: "stdio".to_owned(),
            server_name: "support-desk".to_owned(),
            server_version: "1.0.0".to_owned(),
            ..Surface::default()
        }),
        uses: std::collections::BTreeMap::new(),
    }
}
