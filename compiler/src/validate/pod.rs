//! The parts of a pod that the CRD keeps open: they are read here, so that making the pod cannot fail.

use cotter_crds::server::PodTemplate;
use k8s_openapi::api::core::v1::{Affinity, TopologySpreadConstraint, Volume};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::problem::Problems;

/// Reads affinity and spread.
pub(super) fn validate(
    template: &PodTemplate,
    problems: &mut Problems,
) -> (Option<Affinity>, Vec<TopologySpreadConstraint>) {
    let path = "spec.podTemplate";
    let affinity = match template.affinity.is_empty() {
        true => None,
        false => read(format!("{path}.affinity"), &template.affinity, problems),
    };
    let constraints = template.topology_spread_constraints.iter().enumerate();
    let spread = constraints
        .filter_map(|(at, one)| read(format!("{path}.topologySpreadConstraints[{at}]"), one, problems))
        .collect();
    (affinity, spread)
}

/// Reads a volume: its name and its one source.
pub(super) fn volume(path: String, written: &cotter_crds::server::Volume, problems: &mut Problems) -> Option<Volume> {
    let mut whole = written.source.clone();
    whole.insert("name".to_owned(), Value::from(written.name.clone()));
    read(path, &whole, problems)
}

fn read<T: DeserializeOwned>(path: String, written: &Map<String, Value>, problems: &mut Problems) -> Option<T> {
    problems.take(path, serde_json::from_value(Value::Object(written.clone())))
}
