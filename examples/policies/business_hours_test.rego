package cotter.user.business_hours_test

import data.cotter.user.business_hours

at(time, effect) := {"now": time, "tool": {"effect": effect}}

test_a_monday_morning_is_open if {
	count(business_hours.deny) == 0 with input as at("2026-11-30T08:00:00Z", "Write")
}

test_the_evening_is_closed if {
	count(business_hours.deny) == 1 with input as at("2026-11-30T18:00:00Z", "Write")
}

test_a_sunday_is_closed if {
	count(business_hours.deny) == 1 with input as at("2026-11-29T12:00:00Z", "External")
}

test_reading_is_always_open if {
	count(business_hours.deny) == 0 with input as at("2026-11-29T03:00:00Z", "Read")
}
