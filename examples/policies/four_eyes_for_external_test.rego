package cotter.user.four_eyes_for_external_test

import data.cotter.user.four_eyes_for_external as module

test_external_waits_for_a_person if {
	count(module.require_approval) == 1 with input as {"tool": {"effect": "External"}}
}

test_writing_does_not if {
	count(module.require_approval) == 0 with input as {"tool": {"effect": "Write"}}
}
