package cotter.user.starter_test

import data.cotter.user.starter

test_the_desk_may_write if {
	count(starter.deny) == 0 with input as {"tool": {"effect": "Write"}, "principal": {"groups": ["desk"]}}
}

test_others_may_not if {
	count(starter.deny) == 1 with input as {"tool": {"effect": "Write"}, "principal": {"groups": []}}
}

test_others_may_read if {
	count(starter.deny) == 0 with input as {"tool": {"effect": "Read"}, "principal": {"groups": []}}
}
