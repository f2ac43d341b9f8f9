package cotter.delegation_test

import data.cotter.delegation

grant := {"scopes": {"s": true}, "effects": {"Read": true}, "tools": {"t": true}, "tenants": {"a": true}}

tool := {"name": "t", "scope": "s", "effect": "Read"}

test_one_grant_covers_all if {
	found := delegation.permitting(tool) with input as {"principal": {"tenant": "a", "delegated": true}, "grants": {"g": grant}}
	found == {"g"}
}

test_a_gap_is_named if {
	found := delegation.gaps(grant, object.union(tool, {"effect": "Write"})) with input.principal as {"tenant": "a", "delegated": true}
	found == {{"code": "EffectNotDelegated", "detail": "Write"}}
}

test_two_halves_permit_nothing if {
	halves := {
		"one": {"scopes": {"s": true}, "effects": {"Write": true}, "tools": {"t": true}, "tenants": {"a": true}},
		"two": {"scopes": {"z": true}, "effects": {"Read": true}, "tools": {"t": true}, "tenants": {"a": true}},
	}
	found := delegation.permitting(tool) with input as {"principal": {"tenant": "a", "delegated": true}, "grants": halves}
	found == set()
}

test_a_false_entry_gives_nothing if {
	refused := object.union(grant, {"effects": {"Read": false}})
	found := delegation.permitting(tool) with input as {"principal": {"tenant": "a", "delegated": true}, "grants": {"g": refused}}
	found == set()
}

test_who_does_not_act_under_delegations_needs_none if {
	not delegation.required with input as {"principal": {"delegated": false}}
}

test_who_does_needs_one if delegation.required with input as {"principal": {"delegated": true}}

test_a_principal_that_needs_one_lacks_what_no_grant_covers if {
	found := delegation.refusals(tool) with input as {"principal": {"tenant": "b", "delegated": true}, "grants": {"g": grant}}
	found == {{"code": "TenantNotDelegated", "detail": "b"}}
}
