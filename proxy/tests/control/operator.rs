//! An operator that a test makes say anything.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use cotter_core::{
    report::{CatalogueReport, Knowledge, Report},
    snapshot::{Sealed, Snapshot},
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{broadcast, mpsc},
};
use tokio_rustls::TlsAcceptor;

const PATIENCE: Duration = Duration::from_secs(20);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The operator.
pub(crate) struct Fake {
    pub(crate) ca: String,
    port: u16,
    shared: Arc<Shared>,
    reports: mpsc::UnboundedReceiver<Value>,
    charges: mpsc::UnboundedReceiver<Value>,
}

struct Shared {
    /// Lines that the next stream begins with.
    waiting: Mutex<Vec<String>>,
    /// Lines for the stream that is open; an empty one ends it.
    lines: broadcast::Sender<String>,
    reports: mpsc::UnboundedSender<Value>,
    charges: mpsc::UnboundedSender<Value>,
    /// Path and authorization of each stream.
    heard: Mutex<Vec<(String, String)>>,
    /// The run of each stream.
    runs: Mutex<Vec<String>>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certified.cert.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, reports) = mpsc::unbounded_channel();
        let (charged, charges) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            lines: broadcast::Sender::new(64),
            reports: sender,
            charges: charged,
            heard: Mutex::default(),
            runs: Mutex::default(),
        });
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&shared)));
        Self { ca: certified.cert.pem(), port, shared, reports, charges }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/", self.port)
    }

    pub(crate) fn say(&self, sealed: &Sealed) {
        self.say_text(&format!(r#"{{"digest":"{}","snapshot":{}}}"#, sealed.digest(), sealed.bytes()));
    }

    /// Says a line on the stream that is open, or on the next one.
    pub(crate) fn say_text(&self, line: &str) {
        let mut waiting = self.shared.waiting.lock().unwrap();
        if self.shared.lines.receiver_count() == 0 || self.shared.lines.send(line.to_owned()).is_err() {
            waiting.push(line.to_owned());
        }
    }

    /// Ends the stream, and waits until another one opened.
    pub(crate) async fn hang_up(&self) {
        self.until_another_stream(|| drop(self.shared.lines.send(String::new()))).await;
    }

    /// Does something, and waits until another stream opened.
    pub(crate) async fn until_another_stream(&self, what: impl FnOnce()) {
        let streams = self.shared.heard.lock().unwrap().len();
        what();
        let again = async {
            while self.shared.heard.lock().unwrap().len() == streams {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, again).await.expect("the stream ends and another one opens");
    }

    /// The next report.
    pub(crate) async fn reported(&mut self) -> Value {
        tokio::time::timeout(PATIENCE, self.reports.recv()).await.expect("a report").unwrap()
    }

    /// The next message of what was charged.
    pub(crate) async fn charged(&mut self) -> Value {
        tokio::time::timeout(PATIENCE, self.charges.recv()).await.expect("charges").unwrap()
    }

    /// The runs that the streams named.
    pub(crate) fn runs(&self) -> Vec<String> {
        self.shared.runs.lock().unwrap().clone()
    }

    /// Path and authorization of the last stream.
    pub(crate) fn heard(&self) -> (String, String) {
        self.shared.heard.lock().unwrap().last().unwrap().clone()
    }

    pub(crate) fn never_heard(&self) -> bool {
        self.shared.heard.lock().unwrap().is_empty()
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(request, &shared).await) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if path.ends_with("/reports") || path.ends_with("/charges") {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let told = if path.ends_with("/reports") { &shared.reports } else { &shared.charges };
        told.send(serde_json::from_slice(&body).unwrap()).unwrap();
        let mut reply = Response::new(Body::default());
        *reply.status_mut() = StatusCode::NO_CONTENT;
        return reply;
    }
    let authorization = request.headers()["authorization"].to_str().unwrap().to_owned();
    shared.runs.lock().unwrap().push(request.headers()["cotter-run"].to_str().unwrap().to_owned());
    let lines = {
        let mut waiting = shared.waiting.lock().unwrap();
        let receiver = shared.lines.subscribe();
        (std::mem::take(&mut *waiting), receiver)
    };
    shared.heard.lock().unwrap().push((path, authorization));
    let stream = futures::stream::unfold(lines, |(waiting, mut receiver)| async move {
        let mut waiting = std::collections::VecDeque::from(waiting);
        let line = match waiting.pop_front() {
            Some(line) => line,
            None => receiver.recv().await.ok().filter(|line| !line.is_empty())?,
        };
        Some((Ok(Frame::data(Bytes::from(line + "\n"))), (Vec::from(waiting), receiver)))
    });
    Response::new(StreamBody::new(Box::pin(stream)).boxed_unsync())
}

pub(crate) fn snapshot(generation: i64) -> Sealed {
    let value = json!({
        "version": "cotter.snapshot/v1", "server": {"namespace": "support", "name": "support"}, "generation": generation,
        "upstream": {"http": {"url": "http://127.0.0.1:1/mcp"}}, "protocol": {"revisions": []},
        "access": {
            "audience": "support://mcp", "hosts": [], "origins": [], "issuers": [], "tenants": [],
            "insufficientScope": "Hide", "advertisedScopes": [],
        },
        "tools": {}, "pinning": "Quarantine", "grants": [], "policies": {},
        "limits": {
            "requestBytes": 1, "resultBytes": 1, "timeoutMs": 1, "concurrent": 1, "sessions": 1,
            "ratePerPrincipal": {"tokens": 1, "perMs": 1, "burst": 1},
        },
        "verify": {"intervalMs": 1000, "graceMs": 1000}, "stale": {"afterMs": 1000, "action": "Report"},
    });
    let snapshot: Snapshot = serde_json::from_value(value).unwrap();
    Sealed::seal(snapshot).unwrap()
}

pub(crate) fn report(enforced: &Sealed) -> Report {
    Report {
        server: enforced.snapshot().server.clone(),
        sidecar: "test".to_owned(),
        time: jiff::Timestamp::now(),
        enforced: Some(enforced.digest()),
        rejected: None,
        catalogue: CatalogueReport {
            knowledge: Knowledge::Verified,
            verified_at: None,
            tools: Vec::new(),
            offered: 0,
            unlisted: 0,
            definitions: <_>::default(),
        },
        surface: None,
        uses: <_>::default(),
    }
}
