package cotter.user.argument_bounds_test

import data.cotter.user.argument_bounds as module

call(tool, args) := {"tool": {"name": tool}, "operation": {"kind": "call"}, "args": args}

test_a_refund_within_bounds_may if {
	count(module.deny) == 0 with input as call("refund", {"amount_cents": 50000})
}

test_a_larger_one_may_not if {
	count(module.deny) == 1 with input as call("refund", {"amount_cents": 50001})
}

test_text_fractions_and_nothing_may_not if {
	every args in [{"amount_cents": "10"}, {"amount_cents": 10.5}, {}] {
		count(module.deny) == 1 with input as call("refund", args)
	}
}

test_a_list_has_no_arguments_and_shows_the_tool if {
	count(module.deny) == 0 with input as {"tool": {"name": "refund"}, "operation": {"kind": "list"}}
}

test_a_case_id_has_a_form if {
	count(module.deny) == 0 with input as call("case_tag", {"case_id": "C-41"})
	count(module.deny) == 1 with input as call("case_tag", {"case_id": "C-٤١"})
	count(module.deny) == 1 with input as call("case_tag", {"case_id": "41; drop"})
}
