//! A server with a client beside it, in a namespace of any name.

use std::fs;

use cotter_tests::{
    client::Answer,
    cluster::{Caller, Namespace},
    folder::Folder,
};
use serde_json::{Value, json};

/// The filesystem example in another namespace: its image has a shell, so that a test can look around in it.
pub(crate) struct Files<'n> {
    namespace: &'n Namespace,
    folder: Folder,
    url: String,
}

/// Its label.
pub(crate) const PODS: &str = "cotter.dev/server=filesystem";

impl<'n> Files<'n> {
    /// Applies all of it.
    pub(crate) fn apply(namespace: &'n Namespace) -> Self {
        let folder = Folder::of_example("filesystem");
        let here = format!("namespace: {}", namespace.name());
        for file in ["server.yaml", "delegation.yaml"] {
            folder.replace(file, "namespace: files", &here);
        }
        let files = Self { namespace, folder, url: format!("http://filesystem.{}.svc/mcp", namespace.name()) };
        for file in ["server.yaml", "pin.yaml", "delegation.yaml"] {
            files.apply_file(file);
        }
        files
    }

    /// Changes a file and applies it.
    pub(crate) fn change(&self, file: &str, from: &str, to: &str) {
        self.folder.replace(file, from, to);
        self.apply_file(file);
    }

    fn apply_file(&self, file: &str) {
        let manifest = fs::read_to_string(self.folder.path().join(file)).unwrap();
        self.namespace.apply(&manifest).succeeded();
    }

    /// Its endpoint.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Waits until all of it is there, and this caller can reach it.
    pub(crate) fn wait(&self, caller: &Caller<'_>) {
        self.namespace.wait_for_tools("filesystem", "14/14");
        caller.wait();
        caller.reaches(&self.url);
    }

    /// Reads a file as this caller; `None` where nobody answers.
    pub(crate) fn try_read(&self, caller: &Caller<'_>) -> Option<Answer> {
        let params = json!({"name": "read_text_file", "arguments": {"path": "/srv/files/hello.txt"}});
        caller.try_modern(&self.url, "tools/call", Some("read_text_file"), params)
    }

    /// Reads a file as this caller.
    pub(crate) fn read(&self, caller: &Caller<'_>) -> Answer {
        self.try_read(caller).unwrap()
    }

    /// Asserts that this caller can read.
    pub(crate) fn serves(&self, caller: &Caller<'_>) {
        let answer = self.read(caller);
        let text = answer.json().pointer("/result/content/0/text").and_then(Value::as_str).map(str::to_owned);
        assert!(text.is_some_and(|text| text.starts_with("Hello")), "{answer:?}");
    }
}

/// What has to stay as it is where nothing may restart: each container of the pods, and how often it was started.
pub(crate) fn starts(namespace: &Namespace) -> Vec<(String, String, u64)> {
    let mut starts = Vec::new();
    for pod in namespace.pods(PODS) {
        for container in pod["status"]["containerStatuses"].as_array().unwrap() {
            let name = |value: &Value| value.as_str().unwrap().to_owned();
            let count = container["restartCount"].as_u64().unwrap();
            starts.push((name(&pod["metadata"]["name"]), name(&container["name"]), count));
        }
    }
    starts.sort();
    starts
}
