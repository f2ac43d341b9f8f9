package cotter.modules_test

import data.cotter.modules

test_where_there_are_no_modules_nothing_is_refused_and_nobody_is_asked if {
	count(modules.denied({"name": "tool"})) == 0
	count(modules.approvals({"name": "tool"})) == 0
	modules.none_refuses({"name": "tool"})
	modules.none_asks({"name": "tool"})
}
