//! The definitions as sidecars see them, beside the pin: what `diff` and `approve` read. Attacker text, never in status.

use std::collections::BTreeMap;

use cotter_core::report::{Knowledge, Report};
use k8s_openapi::api::core::v1::ConfigMap;

use super::metadata;
use crate::{plan::Observed, server::Server};

/// A ConfigMap holds 1 MiB; the rest is left for metadata.
const MAX_BYTES: usize = 900 * 1024;
/// How many names an annotation lists.
const MAX_NAMES: usize = 64;

/// The key under which the ConfigMap has the definitions.
pub const OBSERVED_KEY: &str = "tools.json";

/// Gathers the definitions that live sidecars report; `None` while none has read the list.
#[must_use]
pub(crate) fn observed(reports: &[Report]) -> Option<Observed> {
    let read = reports.iter().filter(|report| !matches!(report.catalogue.knowledge, Knowledge::NeverRead { .. }));
    let mut by_name: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut any = false;
    for report in read {
        any = true;
        for (name, raw) in &report.catalogue.definitions {
            *by_name.entry(name).or_default().entry(raw.get()).or_default() += 1;
        }
    }
    any.then(|| bounded(&by_name))
}

fn bounded(by_name: &BTreeMap<&str, BTreeMap<&str, usize>>) -> Observed {
    let differing = by_name.iter().filter(|(_, texts)| texts.len() > 1).map(|(name, _)| (*name).to_owned()).collect();
    let mut chosen: Vec<(&str, &str)> =
        by_name.iter().filter_map(|(name, texts)| Some((*name, most_frequent(texts)?))).collect();
    let mut sizes: Vec<(usize, &str)> = chosen.iter().map(|(name, text)| (text.len() + 1, *name)).collect();
    sizes.sort_unstable();
    let mut left = MAX_BYTES;
    // The smallest are kept: as many definitions as fit.
    let kept = sizes.iter().take_while(|(size, _)| left.checked_sub(*size).map(|rest| left = rest).is_some()).count();
    let mut omitted: Vec<String> = sizes.iter().skip(kept).map(|(_, name)| (*name).to_owned()).collect();
    omitted.sort_unstable();
    chosen.retain(|(name, _)| omitted.binary_search_by(|left_out| left_out.as_str().cmp(name)).is_err());
    let texts: Vec<&str> = chosen.iter().map(|(_, text)| *text).collect();
    Observed { tools_json: format!("{{\"tools\":[{}]}}", texts.join(",")), differing, omitted }
}

/// The definition that most sidecars see; of equally frequent ones the first by text, so that it does not flip.
fn most_frequent<'t>(texts: &BTreeMap<&'t str, usize>) -> Option<&'t str> {
    texts.iter().max_by(|(a, some), (b, other)| some.cmp(other).then(b.cmp(a))).map(|(text, _)| *text)
}

pub(super) fn config_map(server: &Server, seen: &Observed) -> ConfigMap {
    let mut metadata = metadata::of(server, &metadata::observed_name(server.id.name.as_str()));
    let lists = [("cotter.dev/differing", &seen.differing), ("cotter.dev/omitted", &seen.omitted)];
    let annotations: BTreeMap<String, String> = lists
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(key, names)| (key.to_owned(), names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(",")))
        .collect();
    metadata.annotations = (!annotations.is_empty()).then_some(annotations);
    let data = BTreeMap::from([(OBSERVED_KEY.to_owned(), seen.tools_json.clone())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}
