package cotter.scopes_test

import data.cotter.scopes

tool := {"name": "case_tag", "scope": "case:write"}

test_a_stated_scope_is_held if {
	scopes.held(tool) with input.principal.scopes as ["case:write"]
}

test_another_scope_is_not if {
	not scopes.held(tool) with input.principal.scopes as ["case:read"]
}

test_no_claim_is_not_an_empty_claim if {
	scopes.stated with input.principal.scopes as []
	not scopes.stated with input.principal as {}
}

test_delegations_stand_in_for_an_absent_claim if {
	scopes.satisfied(tool) with input.principal as {"delegated": true}
}

test_nothing_stands_in_for_an_empty_claim if {
	not scopes.satisfied(tool) with input.principal as {"delegated": true, "scopes": []}
}
