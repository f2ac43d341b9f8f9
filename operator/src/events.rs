//! Events: for what a person has to do something about and no condition can hold.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use crate::trouble::words;

/// An Event is not worth waiting for.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Events of the operator.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// Events through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let reporter = Reporter { controller: "cotter-operator".to_owned(), instance: None };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Warns. The same again within minutes is one Event that is counted up.
    pub async fn warn(&self, about: &ObjectReference, reason: &str, note: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note.chars().take(1000).collect()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        match tokio::time::timeout(PATIENCE, self.recorder.publish(&event, about)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(reason, error = words(&error), "failed to publish an Event"),
            Err(_elapsed) => tracing::warn!(reason, "failed to publish an Event in time"),
        }
    }
}
