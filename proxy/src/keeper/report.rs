//! The sidecar's state as it tells it.

use cotter_core::report::{CatalogueReport, Definitions, Knowledge, Rejected, Report};
use jiff::Timestamp;

use crate::state::{Enforced, Shared};

/// The report of this moment.
pub(super) fn make(
    shared: &Shared,
    name: &str,
    enforced: Option<&Enforced>,
    definitions: Option<&Definitions>,
    rejected: Option<Rejected>,
) -> Report {
    Report {
        server: shared.server.clone(),
        sidecar: name.to_owned(),
        time: Timestamp::now(),
        enforced: enforced.map(Enforced::digest),
        rejected,
        catalogue: enforced.map_or_else(nothing, |enforced| catalogue(enforced, definitions)),
        surface: enforced.and_then(|enforced| enforced.surface.as_deref().cloned()),
        uses: shared.uses.all(),
    }
}

fn nothing() -> CatalogueReport {
    CatalogueReport {
        knowledge: Knowledge::NeverRead { why: "no snapshot yet".to_owned() },
        verified_at: None,
        tools: Vec::new(),
        offered: 0,
        unlisted: 0,
        definitions: Definitions::new(),
    }
}

fn catalogue(enforced: &Enforced, definitions: Option<&Definitions>) -> CatalogueReport {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let catalogue = &enforced.catalogue;
    let mut tools = catalogue.tools();
    if enforced.catalogue().is_err() {
        // What is not known any more is not callable, whatever it was.
        tools.iter_mut().for_each(|tool| tool.callable = false);
    }
    CatalogueReport {
        knowledge: enforced.knowledge.clone(),
        verified_at: enforced.verified_at,
        tools,
        offered: count(catalogue.offered()),
        unlisted: count(catalogue.unlisted()),
        definitions: definitions.cloned().unwrap_or_default(),
    }
}
