//! Events: for what a person has to do something about and no condition can hold.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use crate::trouble::words;

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
        if let Err(error) = self.recorder.publish(&event, about).await {
            tracing::warn!(reason, error = words(&error), "failed to publish an Event");
        }
    }
}
