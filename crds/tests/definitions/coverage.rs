//! No field and no rule is without a case.

use std::collections::BTreeSet;

use cotter_crds::check::{Place, validate};

use crate::{
    case::{self, Expect},
    manifest, probe, site,
};

#[test]
fn every_field_is_in_some_manifest() {
    for (kind, schema) in site::schemas() {
        let manifests = manifest::all();
        let of_kind = manifests.iter().filter(|manifest| manifest.object["kind"] == kind.as_str());
        let filled: BTreeSet<String> =
            of_kind.flat_map(|manifest| site::filled(&schema, &manifest.object)).map(|site| site.place).collect();
        let declared = site::declared(&schema).into_iter().map(|(place, _)| place);
        let missing: Vec<String> =
            declared.filter(|place| place.starts_with("spec") && !filled.contains(place)).collect();
        assert!(missing.is_empty(), "{kind}: write these fields in a manifest of cases/full: {missing:?}");
    }
}

#[test]
fn every_rule_at_every_place_refuses_some_case() {
    let mut refused = BTreeSet::new();
    let cases = case::written().into_iter().chain(probe::all());
    for case in cases.filter(|case| matches!(case.expect, Expect::Refused { .. })) {
        let kind = case.object["kind"].as_str().unwrap().to_owned();
        for problem in validate(&case.object, Place::Cluster) {
            refused.insert((kind.clone(), problem.message));
        }
    }
    for (kind, schema) in site::schemas() {
        for (place, schema) in site::declared(&schema) {
            for message in site::messages(schema) {
                assert!(
                    refused.contains(&(kind.clone(), message.to_owned())),
                    "{kind} {place}: no case for {message:?}"
                );
            }
        }
    }
}

#[test]
fn a_message_says_what_to_write_in_one_line() {
    for (kind, schema) in site::schemas() {
        for (place, schema) in site::declared(&schema) {
            for message in site::messages(schema) {
                assert!(!message.contains('\n') && message.len() > 20, "{kind} {place}: {message:?}");
            }
        }
    }
}

#[test]
fn every_field_is_explained() {
    for (kind, schema) in site::schemas() {
        for (place, schema) in site::declared(&schema) {
            let of_a_pod = ["container.", "resources", "podTemplate.", "selector", "conditions"];
            let exempt = place.is_empty() || place.ends_with("[]") || of_a_pod.iter().any(|part| place.contains(part));
            let name_and_version = place.starts_with("spec.surface.serverInfo.");
            let said = schema.get("description").and_then(|text| text.as_str()).is_some_and(|text| text.len() > 3);
            let open = place.ends_with(".definition.name");
            assert!(said || exempt || name_and_version || open, "{kind} {place} has no description");
        }
    }
}
