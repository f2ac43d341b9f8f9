//! What one server's pass tells the delegations that name it.

use std::collections::BTreeMap;

use cotter_core::report::{Report, Uses};

use super::{Live, tools};
use crate::{plan::Evidence, server::Server};

pub(crate) fn evidence(server: Option<&Server>, live: Live<'_>) -> Evidence {
    Evidence {
        desired: live.desired,
        live: u32::try_from(live.reports.len()).unwrap_or(u32::MAX),
        enforced: u32::try_from(live.enforced()).unwrap_or(u32::MAX),
        uses: uses(live.reports),
        tenants: server.map(|server| server.access.tenants.clone()).unwrap_or_default(),
        callable: tools::callable(live.reports),
    }
}

fn uses(reports: &[&Report]) -> BTreeMap<String, Uses> {
    let mut all: BTreeMap<String, Uses> = BTreeMap::new();
    for (name, one) in reports.iter().flat_map(|report| &report.uses) {
        all.entry(name.clone()).or_default().add(one);
    }
    all
}
