package cotter.pins_test

import data.cotter.pins

test_what_was_approved_matches if pins.matched({"pin": {"state": "Matched"}})

test_what_differs_does_not_match if {
	not pins.matched({"pin": {"state": "Drifted", "class": "Text"}})
	pins.drifted({"pin": {"state": "Drifted", "class": "Text"}})
}

test_what_matches_is_not_drifted if not pins.drifted({"pin": {"state": "Matched"}})

test_what_nobody_approved if {
	pins.unapproved({"pin": {"state": "Unpinned"}})
	pins.unapproved({"pin": {"state": "Added"}})
	not pins.unapproved({"pin": {"state": "Matched"}})
}
