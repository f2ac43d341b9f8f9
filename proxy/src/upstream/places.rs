//! Who may have how many processes of a server that starts one for each session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::error::UpstreamError;
use crate::session::Owner;

/// Processes of one server at a time: each is dear. `cotter-shim` keeps the same bound.
pub(super) const MOST: usize = 64;

/// Of them for the reader of the tool list: without it nothing can be called. Two, since its next one starts while its last one ends.
const READER: usize = 2;

/// Of them for callers.
pub(super) const CALLERS: usize = MOST - READER;

/// Of them for one principal, so that none keeps all others out.
const SHARE: usize = CALLERS / 2;

/// The places of one server.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    callers: usize,
    by: HashMap<Arc<Owner>, usize>,
}

/// One place; dropping it makes room.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    owner: Option<Arc<Owner>>,
}

impl Places {
    /// Takes a place for a principal, or for the reader.
    ///
    /// # Errors
    /// `Busy`, `Share`.
    pub(super) fn take(self: &Arc<Self>, owner: Option<&Arc<Owner>>) -> Result<Place, UpstreamError> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.all >= MOST || (owner.is_some() && taken.callers >= CALLERS) {
            return Err(UpstreamError::Busy(taken.all));
        }
        if let Some(owner) = owner {
            let own = taken.by.entry(Arc::clone(owner)).or_default();
            if *own >= SHARE {
                return Err(UpstreamError::Share(SHARE));
            }
            *own += 1;
            taken.callers += 1;
        }
        taken.all += 1;
        Ok(Place { places: Arc::clone(self), owner: owner.cloned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all = taken.all.saturating_sub(1);
        let Some(owner) = &self.owner else { return };
        taken.callers = taken.callers.saturating_sub(1);
        if let Some(own) = taken.by.get_mut(owner) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.by.remove(owner);
            }
        }
    }
}
