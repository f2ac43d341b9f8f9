//! A cluster as its user sees it: kubectl, a namespace for each test, and pods that call.

use std::{
    io::Write as _,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Deserializer, Value, json};

use crate::{
    client::{self, Answer},
    programs::{Said, root},
};

/// How long anything may take before a test gives up: a pod with an interpreter on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where a client pod has its token.
const TOKEN: &str = "/var/run/secrets/mcp/token";
/// The shell's words that send a request as it is given.
const ANONYMOUS: &str = "exec node --input-type=module - \"$0\" \"$1\" \"$2\"";

/// Runs kubectl.
///
/// # Panics
/// If it cannot be started.
pub fn kubectl(args: &[&str]) -> Said {
    Said::run(Command::new("kubectl").args(args).stdin(Stdio::null()))
}

/// Runs kubectl with this on its standard input.
///
/// # Panics
/// If it cannot be started.
pub fn kubectl_with(args: &[&str], input: &str) -> Said {
    let mut command = Command::new("kubectl");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What it says is little, so it cannot stand still while this is written.
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Said::of(child.wait_with_output().unwrap())
}

/// A namespace of one test; it goes with the test, and stays to be looked at where the test failed.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new one, even where an earlier run left one of this name.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn fresh(name: &str) -> Self {
        let namespace = Self::named(name);
        kubectl(&["create", "namespace", name]).succeeded();
        namespace
    }

    /// One that the test makes itself, and that is not there now.
    ///
    /// # Panics
    /// If what an earlier run left cannot be removed.
    #[must_use]
    pub fn named(name: &str) -> Self {
        kubectl(&["delete", "namespace", name, "--ignore-not-found", "--timeout=90s"]).succeeded();
        Self { name: name.to_owned() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs kubectl in it.
    pub fn kubectl(&self, args: &[&str]) -> Said {
        kubectl(&[&["--namespace", &self.name], args].concat())
    }

    /// Applies a manifest, which the API server may refuse.
    #[must_use]
    pub fn apply(&self, manifest: &str) -> Said {
        kubectl_with(&["--namespace", &self.name, "apply", "-f", "-"], manifest)
    }

    /// An object as it is now.
    ///
    /// # Panics
    /// If it is not there.
    #[must_use]
    pub fn object(&self, kind: &str, name: &str) -> Value {
        serde_json::from_str(&self.kubectl(&["get", kind, name, "-o", "json"]).good()).unwrap()
    }

    /// The pods of a server, or all that have this label.
    ///
    /// # Panics
    /// If they cannot be listed.
    #[must_use]
    pub fn pods(&self, label: &str) -> Vec<Value> {
        let list: Value =
            serde_json::from_str(&self.kubectl(&["get", "pods", "-l", label, "-o", "json"]).good()).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Follows an object until it is as wanted, and gives it.
    ///
    /// # Panics
    /// If it does not become so.
    pub fn wait_until(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.follow(kind, name).until(wanted)
    }

    /// Begins to follow an object, so that nothing that happens from now on is missed.
    ///
    /// # Panics
    /// If kubectl cannot be started.
    #[must_use]
    pub fn follow(&self, kind: &str, name: &str) -> Following<'_> {
        let selector = format!("metadata.name={name}");
        let mut command = Command::new("kubectl");
        command.args(["--namespace", &self.name, "get", kind, "--field-selector", &selector, "--watch", "-o", "json"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (out, (tell, told)) = (child.stdout.take().unwrap(), mpsc::channel());
        thread::spawn(move || {
            let objects = Deserializer::from_reader(std::io::BufReader::new(out)).into_iter::<Value>();
            let _gone = objects.map_while(Result::ok).try_for_each(|object| tell.send(object));
        });
        Following { namespace: self, what: format!("{kind} {name}"), child, told }
    }

    /// Waits until a server is ready, its tools are as said, written as `13/14`, and its only sidecar enforces what is wanted.
    pub fn wait_for_tools(&self, server: &str, tools: &str) -> Value {
        self.wait_until("mcps", server, |object| {
            object.pointer("/status/tools/callableOfDeclared").and_then(Value::as_str) == Some(tools)
                && object.pointer("/status/snapshot/enforcedOfTotal").and_then(Value::as_str) == Some("1/1")
                && is(object, "Ready", "True")
        })
    }

    /// The record that a server's sidecar wrote for this answer.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn record(&self, server: &str, answer: &Answer) -> Value {
        let id = answer.header("cotter-decision").unwrap_or_else(|| panic!("no decision: {answer:?}"));
        let label = format!("cotter.dev/server={server}");
        let log = self.kubectl(&["logs", "-l", &label, "-c", "cotter-proxy", "--tail=-1"]).good();
        let record =
            log.lines().rev().find(|line| line.contains(id)).unwrap_or_else(|| panic!("no record {id}:\n{log}"));
        serde_json::from_str(record).unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !thread::panicking() {
            kubectl(&["delete", "namespace", &self.name, "--wait=false"]);
        }
    }
}

/// An object that is followed.
#[derive(Debug)]
pub struct Following<'n> {
    namespace: &'n Namespace,
    what: String,
    child: Child,
    told: mpsc::Receiver<Value>,
}

impl Following<'_> {
    /// Waits until it is as wanted, and gives it.
    ///
    /// # Panics
    /// If it does not become so.
    pub fn until(self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut last = Value::Null;
        loop {
            let Ok(object) = self.told.recv_timeout(end.saturating_duration_since(Instant::now())) else {
                let pods = self.namespace.kubectl(&["get", "pods,events", "-o", "wide"]);
                panic!("{} never became so:\n{last:#}\n{}{}", self.what, pods.out, pods.err);
            };
            if wanted(&object) {
                return object;
            }
            last = object;
        }
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The condition of an object.
///
/// # Panics
/// If it has none of this type.
#[must_use]
pub fn condition<'o>(object: &'o Value, kind: &str) -> &'o Value {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {object:#}"))
}

/// Whether an object's condition has this status, and was judged for the object as it is now.
#[must_use]
pub fn is(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let judged = |condition: &&Value| condition["observedGeneration"] == object["metadata"]["generation"];
    conditions.iter().filter(judged).any(|condition| condition["type"] == kind && condition["status"] == status)
}

/// A pod with the public TypeScript SDK and a token of its own service account.
#[derive(Debug)]
pub struct Caller<'n> {
    namespace: &'n Namespace,
    name: String,
}

impl<'n> Caller<'n> {
    /// Makes the service account and the pod. The token in it is for this audience.
    ///
    /// # Panics
    /// If they are refused.
    #[must_use]
    pub fn create(namespace: &'n Namespace, account: &str, audience: &str) -> Self {
        namespace.kubectl(&["create", "serviceaccount", account]).succeeded();
        let token = json!({"serviceAccountToken": {"path": "token", "audience": audience, "expirationSeconds": 600}});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": account},
            "spec": {
                "serviceAccountName": account, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "client", "image": "cotter.test/mcp-client:test",
                    "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/mcp", "readOnly": true}],
                }],
                "volumes": [{"name": "token", "projected": {"sources": [token]}}],
            },
        });
        namespace.apply(&pod.to_string()).succeeded();
        Self { namespace, name: account.to_owned() }
    }

    /// Waits until it runs.
    ///
    /// # Panics
    /// If it does not.
    pub fn wait(&self) {
        self.namespace.wait_until("pod", &self.name, |pod| pod["status"]["phase"] == "Running");
    }

    /// Takes steps with the public client, as [`client::Client::run`] does.
    ///
    /// # Panics
    /// If the client itself fails.
    #[must_use]
    pub fn sdk(&self, url: &str, steps: &Value) -> Vec<Value> {
        let script = std::fs::read_to_string(root().join("tests/clients/typescript.mjs")).unwrap();
        let shell = format!(
            "read -r token <{TOKEN}; COTTER_TEST_TOOLS=/app exec node --input-type=module - \"$0\" \"$token\" \"$1\""
        );
        let said = self.exec(&[&shell, url, &steps.to_string()], &script);
        let answers: Vec<Value> = said
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {said:?}")))
            .collect();
        assert!(!answers.is_empty(), "{said:?}");
        answers
    }

    /// Waits until somebody answers there: a node's kube-proxy leads to a pod up to a second after it is said to be ready.
    ///
    /// # Panics
    /// If nobody does.
    pub fn reaches(&self, url: &str) {
        let end = Instant::now() + PATIENCE;
        while self.fetch(ANONYMOUS, url, "tools/list", None, json!({})).is_none() {
            assert!(Instant::now() < end, "nobody answers at {url}");
        }
    }

    /// Sends one stateless request, as [`client::modern`] does, with the pod's token; `None` where nobody answers.
    ///
    /// # Panics
    /// If the client itself fails.
    #[must_use]
    pub fn try_modern(&self, url: &str, method: &str, name: Option<&str>, params: Value) -> Option<Answer> {
        let shell = format!("read -r token <{TOKEN}; {ANONYMOUS} \"$token\"");
        self.fetch(&shell, url, method, name, params)
    }

    /// The same, where somebody has to answer.
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn modern(&self, url: &str, method: &str, name: Option<&str>, params: Value) -> Answer {
        self.try_modern(url, method, name, params).unwrap_or_else(|| panic!("nobody answers at {url}"))
    }

    /// The same without a token.
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn anonymous(&self, url: &str, method: &str, params: Value) -> Answer {
        self.fetch(ANONYMOUS, url, method, None, params).unwrap_or_else(|| panic!("nobody answers at {url}"))
    }

    fn fetch(&self, shell: &str, url: &str, method: &str, name: Option<&str>, params: Value) -> Option<Answer> {
        let script = std::fs::read_to_string(root().join("tests/clients/bare.mjs")).unwrap();
        let (headers, body) = client::request(method, name, params);
        let said = self.exec(&[shell, url, &json!(headers).to_string(), &body], &script);
        if said.err.contains("fetch failed") {
            return None;
        }
        let answer: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("no answer: {said:?}"));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let line = |pair: &Value| format!("{}: {}", text(&pair[0]), text(&pair[1]));
        let head: Vec<String> = answer["headers"].as_array().unwrap().iter().map(line).collect();
        let status = u16::try_from(answer["status"].as_u64().unwrap()).unwrap();
        Some(Answer { status, head: head.join("\n"), body: text(&answer["body"]).into_bytes() })
    }

    fn exec(&self, shell: &[&str], input: &str) -> Said {
        let fixed = ["--namespace", &self.namespace.name, "exec", "-i", &self.name, "--", "sh", "-c"];
        kubectl_with(&[&fixed[..], shell].concat(), input)
    }
}
