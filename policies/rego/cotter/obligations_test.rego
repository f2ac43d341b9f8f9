package cotter.obligations_test

import data.cotter.obligations

tool := {"name": "case_tag", "effect": "Write", "approval": "Never"}

bounded := object.union(tool, {"idempotencyKey": "/key", "limits": {"timeoutMs": 20, "resultBytes": 10}})

test_nothing_declared_asks_for_nothing if obligations.due(tool) == obligations.none

test_what_is_declared_is_asked_for if {
	obligations.due(bounded) == {"approval": "Never", "idempotency": "/key", "timeoutMs": 20, "resultBytes": 10}
}

test_one_bound_of_two if obligations.due(object.union(tool, {"limits": {"timeoutMs": 20}})) == {"approval": "Never", "timeoutMs": 20}

test_a_tool_that_reads_needs_no_key if {
	obligations.due(object.union(bounded, {"effect": "Read"})) == {"approval": "Never", "timeoutMs": 20, "resultBytes": 10}
}

test_what_is_declared_has_its_form if {
	obligations.due(bounded)
	not obligations.due(object.union(bounded, {"limits": {"timeoutMs": "soon"}}))
	not obligations.due(object.union(bounded, {"idempotencyKey": 7}))
}

test_its_owner_wants_a_person if obligations.due(object.union(tool, {"approval": "Always"})) == {"approval": "Always"}

test_what_is_neither_always_nor_never_needs_a_person if {
	obligations.due(object.union(tool, {"approval": "Sometimes"})) == {"approval": "Always"}
	obligations.due(object.remove(tool, ["approval"])) == {"approval": "Always"}
}
