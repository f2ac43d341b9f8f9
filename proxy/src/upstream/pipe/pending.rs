//! The requests that wait for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::super::Answer;
use super::super::error::CallError;

type Outcome = Result<Answer, CallError>;

/// The requests of one peer.
#[derive(Debug, Default)]
pub(super) struct Pending {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Outcome>>,
    /// Why nothing will ever be answered again.
    closed: Option<CallError>,
}

/// One request that waits. Dropped, it waits no longer.
#[derive(Debug)]
pub(super) struct Waiting {
    pending: Arc<Pending>,
    id: u64,
    answer: oneshot::Receiver<Outcome>,
}

impl Pending {
    /// Begins to wait; before the request is sent, so that no answer can come too early.
    pub(super) fn expect(self: &Arc<Self>, id: u64) -> Result<Waiting, CallError> {
        let (tell, answer) = oneshot::channel();
        let mut state = self.state();
        if state.closed.is_some() {
            drop(state);
            return Err(self.why(false));
        }
        state.waiting.insert(id, tell);
        Ok(Waiting { pending: Arc::clone(self), id, answer })
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().closed.is_none()
    }

    /// Why nothing can be sent, for a request of which nothing was or something may have been.
    pub(super) fn why(&self, dispatched: bool) -> CallError {
        let why = match &self.state().closed {
            Some(CallError::Unreachable { why, .. }) => why.clone(),
            Some(other) => format!("it was given up, since {other}"),
            None => "the conversation was ended".to_owned(),
        };
        CallError::Unreachable { dispatched, why }
    }

    /// Hands an answer to whoever waits for it. An answer that comes too late is dropped.
    pub(super) fn answer(&self, id: u64, outcome: Outcome) {
        let waiting = self.state().waiting.remove(&id);
        if let Some(waiting) = waiting {
            // Whoever waited may have gone meanwhile.
            let _ = waiting.send(outcome);
        }
    }

    /// Fails everything that waits.
    pub(super) fn fail(&self, error: &CallError) {
        let waiting = std::mem::take(&mut self.state().waiting);
        for waiting in waiting.into_values() {
            let _ = waiting.send(Err(error.clone()));
        }
    }

    /// Fails everything that waits or will.
    pub(super) fn close(&self, why: CallError) {
        self.state().closed.get_or_insert_with(|| why.clone());
        self.fail(&why);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    pub(super) async fn outcome(mut self) -> Outcome {
        match (&mut self.answer).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.pending.why(true)),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pending.state().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_no_longer_leaves_nothing_behind() {
        let pending = Arc::new(Pending::default());
        let waiting: Vec<_> = (0..100).map(|id| pending.expect(id).unwrap()).collect();
        assert_eq!(pending.state().waiting.len(), 100);
        drop(waiting);
        assert_eq!(pending.state().waiting.len(), 0);
    }

    #[test]
    fn nothing_waits_for_a_peer_that_is_gone() {
        let pending = Arc::new(Pending::default());
        pending.close(CallError::lost("it went"));
        let refused = pending.expect(1).unwrap_err();
        assert_eq!(refused, CallError::unreachable("it went"));
    }
}
