//! Objects of ours that cannot be read: told by an Event and a condition, once for each revision.
//!
//! The CustomResourceDefinition refuses what this program cannot read, unless it is of another version than this
//! program. So this happens in the middle of an upgrade, to one object among many.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams},
    core::error_boundary::InvalidObject,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::{apply::MANAGER, events::Events, key::ServerKey, metrics::Metrics, queue::Queue, trouble::words};

/// The reason in the condition and the Event.
const REASON: &str = "Unreadable";
/// The parser's message names the field; what it quotes from the object is cut.
const MAX_MESSAGE: usize = 300;

/// For all that is told of one object: the next waits behind it.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What a watch says about one object.
#[derive(Debug, Clone)]
pub struct Complaint {
    resource: ApiResource,
    metadata: ObjectMeta,
    error: Option<String>,
}

impl Complaint {
    /// It cannot be read.
    #[must_use]
    pub fn unreadable<K: Resource<DynamicType = ()>>(object: &InvalidObject) -> Self {
        let error = Some(object.error.chars().take(MAX_MESSAGE).collect());
        Self { resource: ApiResource::erase::<K>(&()), metadata: object.metadata.clone(), error }
    }

    /// It can be read again, or is gone.
    #[must_use]
    pub fn readable<K: Resource<DynamicType = ()>>(metadata: &ObjectMeta) -> Self {
        let metadata =
            ObjectMeta { name: metadata.name.clone(), namespace: metadata.namespace.clone(), ..ObjectMeta::default() };
        Self { resource: ApiResource::erase::<K>(&()), metadata, error: None }
    }

    fn id(&self) -> (String, ServerKey) {
        (self.resource.kind.clone(), self.key())
    }

    fn key(&self) -> ServerKey {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        ServerKey::new(text(&self.metadata.namespace), text(&self.metadata.name))
    }
}

/// What the watches send.
pub enum Message {
    /// About one object.
    Complaint(Box<Complaint>),
    /// Everything before this was worked off: answered by dropping the other end.
    Barrier(tokio::sync::oneshot::Sender<()>),
}

/// Servers with a pin that cannot be read: by server, the names of such pins.
pub type BadPins = HashMap<ServerKey, Vec<String>>;

/// What is known of an object that was complained about: its revision, and for a pin the server that it names.
type Known = HashMap<(String, ServerKey), (Option<i64>, Option<ServerKey>)>;

/// Complains until the watches end. `bad_pins` always holds which servers have a pin that cannot be read: such a server
/// is treated as having a pin that approves nothing, since no pin at all could mean that everything is let through.
pub async fn run(
    client: Client,
    events: Events,
    mut messages: mpsc::Receiver<Message>,
    bad_pins: watch::Sender<BadPins>,
    (queue, metrics): (Arc<Queue<ServerKey>>, Arc<Metrics>),
) {
    let mut known = Known::new();
    while let Some(message) = messages.recv().await {
        // A barrier is dropped here, and that is its answer.
        let Message::Complaint(complaint) = message else { continue };
        let before = known.get(&complaint.id()).cloned();
        match &complaint.error {
            None => {
                if let Some((_, server)) = known.remove(&complaint.id()) {
                    tell(&known, &bad_pins);
                    server.into_iter().for_each(|server| queue.mark(server));
                }
            }
            Some(_) if before.is_some_and(|(revision, _)| revision == complaint.metadata.generation) => {}
            Some(error) => {
                metrics.undecodable.add();
                let telling = tokio::time::timeout(PATIENCE, complain(&client, &events, &complaint, error));
                let server = telling.await.unwrap_or_default();
                known.insert(complaint.id(), (complaint.metadata.generation, server.clone()));
                tell(&known, &bad_pins);
                server.into_iter().for_each(|server| queue.mark(server));
            }
        }
    }
}

fn tell(known: &Known, bad_pins: &watch::Sender<BadPins>) {
    let mut pins = BadPins::new();
    for ((_, pin), (_, server)) in known {
        if let Some(server) = server {
            pins.entry(server.clone()).or_default().push(pin.name.clone());
        }
    }
    bad_pins.send_replace(pins);
}

/// Says what is wrong where people look. Gives back the server that a bad pin names, as far as that can be told.
async fn complain(client: &Client, events: &Events, complaint: &Complaint, error: &str) -> Option<ServerKey> {
    let key = complaint.key();
    let message = format!("this version of the operator cannot read it and keeps to what it was before: {error}");
    tracing::error!(kind = complaint.resource.kind, %key, error, "object cannot be read");
    events.warn(&reference(complaint), REASON, &message).await;
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &key.namespace, &complaint.resource);
    let params = PatchParams::apply(MANAGER).force();
    if let Err(error) = api.patch_status(&key.name, &params, &Patch::Apply(status(complaint, &message))).await {
        tracing::warn!(kind = complaint.resource.kind, %key, error = words(&error), "failed to say so in its status");
    }
    if complaint.resource.kind != "ToolPin" {
        return None;
    }
    let pin = api
        .get(&key.name)
        .await
        .inspect_err(|error| tracing::warn!(%key, error = words(error), "failed to read the pin raw"))
        .ok()?;
    let server = pin.data.pointer("/spec/serverRef/name").and_then(Value::as_str)?;
    Some(ServerKey::new(key.namespace, server))
}

fn status(complaint: &Complaint, message: &str) -> Value {
    let key = complaint.key();
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let generation = complaint.metadata.generation;
    let condition = |kind: &str| {
        json!({"type": kind, "status": "False", "reason": REASON, "message": message,
            "observedGeneration": generation, "lastTransitionTime": now})
    };
    json!({
        "apiVersion": complaint.resource.api_version,
        "kind": complaint.resource.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "status": {"observedGeneration": generation, "conditions": [condition("Accepted"), condition("Ready")]},
    })
}

fn reference(complaint: &Complaint) -> k8s_openapi::api::core::v1::ObjectReference {
    k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some(complaint.resource.api_version.clone()),
        kind: Some(complaint.resource.kind.clone()),
        name: complaint.metadata.name.clone(),
        namespace: complaint.metadata.namespace.clone(),
        uid: complaint.metadata.uid.clone(),
        ..k8s_openapi::api::core::v1::ObjectReference::default()
    }
}
