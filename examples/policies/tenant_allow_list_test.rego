package cotter.user.tenant_allow_list_test

import data.cotter.user.tenant_allow_list as module

asks(tool, principal) := {"tool": {"name": tool}, "principal": principal}

test_a_tenant_of_the_pilot_may if {
	count(module.deny) == 0 with input as asks("case_tag", {"tenant": "tenant-7"})
}

test_another_may_not if {
	count(module.deny) == 1 with input as asks("case_tag", {"tenant": "tenant-8"})
}

test_no_tenant_may_not if {
	count(module.deny) == 1 with input as asks("case_tag", {})
}

test_other_tools_are_for_all if {
	count(module.deny) == 0 with input as asks("policy_lookup", {"tenant": "tenant-8"})
}
