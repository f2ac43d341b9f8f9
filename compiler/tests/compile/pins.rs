//! Pins over time.

use cotter_compiler::{compile, orphan_pin_status};
use jiff::ToSpan;
use serde_json::json;

use crate::desk::{Desk, message, now, said};

fn since(plan: &cotter_compiler::Plan) -> String {
    plan.pin_statuses["support"].drift[0].since.clone().unwrap().0.to_string()
}

#[test]
fn since_is_when_this_difference_was_first_seen() {
    let mut world = Desk::with("{sidecars: {support-0: {tools: rugpull}}}").world();
    let first = compile(&world);
    world.pins[0].status = Some(first.pin_statuses["support"].clone());
    world.now = now() + 2.hours();
    assert_eq!(since(&compile(&world)), "2026-11-30T12:00:00Z", "the same difference");

    let mut other = Desk::with("{sidecars: {support-0: {tools: rewritten}}}").world();
    other.pins[0].status = Some(first.pin_statuses["support"].clone());
    other.now = now() + 2.hours();
    assert_eq!(since(&compile(&other)), "2026-11-30T14:00:00Z", "another difference");
}

#[test]
fn a_later_look_at_the_same_thing_is_not_written_again_for_a_while() {
    let mut world = Desk::new().world();
    let first = compile(&world);
    world.pins[0].status = Some(first.pin_statuses["support"].clone());
    world.server.status = Some(first.server_status.clone());
    world.delegations[0].status = Some(first.delegation_statuses["triage"].clone());
    let looks_again = |world: &mut cotter_compiler::World, minutes: i64| {
        world.now = now() + minutes.minutes();
        world.reports[0].catalogue.verified_at = Some(world.now);
        let uses = world.reports[0].uses.get_mut("triage").unwrap();
        (uses.last_used, uses.allowed) = (Some(world.now), 2 + minutes.unsigned_abs());
        compile(world)
    };
    let soon = looks_again(&mut world, 4);
    assert_eq!(soon.pin_statuses, first.pin_statuses);
    assert_eq!(soon.server_status, first.server_status);
    assert_eq!(soon.delegation_statuses, first.delegation_statuses);
    let later = looks_again(&mut world, 5);
    assert_eq!(later.pin_statuses["support"].last_verified.clone().unwrap().0, now() + 5.minutes());
    assert_ne!(later.server_status, first.server_status);
    assert_eq!(later.delegation_statuses["triage"].uses.clone().unwrap().allowed, 7);
}

#[test]
fn a_transition_keeps_its_time_until_the_status_moves() {
    let mut world = Desk::new().world();
    let first = compile(&world);
    world.server.status = Some(first.server_status.clone());
    world.now = now() + 1.hour();
    world.reports.clear();
    let second = compile(&world);
    let time = |status: &cotter_crds::McpServerStatus, type_: &str| {
        status.conditions.iter().find(|condition| condition.type_ == type_).unwrap().last_transition_time.0
    };
    assert_eq!(time(&second.server_status, "Accepted"), now());
    assert_eq!(time(&second.server_status, "Ready"), now() + 1.hour());
    assert!(second.server_status.conditions.iter().all(|condition| condition.observed_generation == Some(3)));
}

#[test]
fn what_was_in_force_stays_in_force_and_is_still_counted() {
    let mut world = Desk::new().world();
    let first = compile(&world);
    let desired = first.snapshot.unwrap().digest().to_string();
    world.server.status = Some(first.server_status);
    world.server.spec.audience = String::new();
    let plan = compile(&world);
    assert!(plan.snapshot.is_none() && plan.children.is_none());
    assert_eq!(
        json!(plan.server_status.snapshot),
        json!({"desired": desired, "enforced": 1, "total": 1, "enforcedOfTotal": "1/1"})
    );
    assert_eq!(json!(plan.server_status.tools)["callableOfDeclared"], "2/2", "what is in force is still counted");
    assert_eq!(said(&plan.server_status.conditions, "Programmed"), "False/Pending");
    assert_eq!(plan.server_status.endpoint.as_deref(), Some("http://support.support.svc:80/mcp"));
}

#[test]
fn a_pin_for_a_server_that_does_not_exist_says_so() {
    let world = Desk::new().world_without_reports();
    let status = orphan_pin_status(&world.pins[0], now());
    assert_eq!(said(&status.conditions, "Accepted"), "True/Accepted");
    assert_eq!(said(&status.conditions, "Observed"), "False/NotObserved");
    assert_eq!(said(&status.conditions, "InSync"), "Unknown/NotObserved");
    assert_eq!(said(&status.conditions, "Ready"), "False/NotObserved");
    assert!(message(&status.conditions, "Ready").contains("there is no McpServer support in this namespace"));
}

/// The reviewer saw one definition, the fingerprint is that of another, which is what the server offers.
#[test]
fn a_definition_that_is_not_the_one_of_its_fingerprint_matches_nothing() {
    let mut tools = json!(Desk::new().world_without_reports().pins[0].spec.tools);
    let patch = json!({"pins": {"support": {"spec": {"tools": tools}}}});
    assert_eq!(Desk::new().and(&patch).plan().server_status.tools.unwrap().callable, 2);
    tools[0]["definition"]["description"] = json!("Edited by hand.");
    let patch = json!({"pins": {"support": {"spec": {"tools": tools}}}});
    let plan = Desk::new().and(&patch).plan();
    let status = &plan.pin_statuses["support"];
    assert_eq!(said(&status.conditions, "Accepted"), "False/DefinitionMismatch");
    assert_eq!(said(&status.conditions, "InSync"), "False/AuthorityExpanding");
    assert_eq!(plan.server_status.tools.unwrap().callable, 1);
    let message = message(&status.conditions, "Accepted");
    assert!(message.contains("what the server offers has that fingerprint, and differs in /description"), "{message}");
}

#[test]
fn a_name_that_yaml_turned_into_a_boolean_is_pointed_at() {
    let mut world = Desk::new().world_without_reports();
    let definition = world.pins[0].spec.tools[0].definition.as_mut().unwrap();
    definition["inputSchema"]["properties"]["true"] = json!({"type": "string"});
    let message = message(&compile(&world).pin_statuses["support"].conditions, "Accepted");
    assert!(message.contains("/inputSchema/properties/true is the name that unquoted y"), "{message}");
}

#[test]
fn a_tool_of_another_server_with_the_same_name_shadows() {
    let mut world = Desk::new().world();
    let mut other = cotter_compiler::Evidence::default();
    other.callable.insert("case_tag".to_owned());
    other.tenants.insert("tenant-8".to_owned());
    world.others.insert("stock".to_owned(), other.clone());
    let shadowed =
        |world: &cotter_compiler::World| compile(world).pin_statuses["support"].summary.clone().unwrap().shadowed;
    assert_eq!(shadowed(&world), 0, "no tenant sees both");
    other.tenants.insert("tenant-7".to_owned());
    world.others.insert("stock".to_owned(), other);
    assert_eq!(shadowed(&world), 1);
}
