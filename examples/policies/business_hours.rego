# Nothing that changes the world outside office hours: Monday to Friday, 08:00 to 18:00 UTC.
package cotter.user.business_hours

import data.cotter.effects

deny contains "changes are made on weekdays from 08:00 to 18:00 UTC" if {
	effects.consequential(input.tool)
	not open
}

# The only clock is input.now: a decision can be made again later and comes out the same.
open if {
	now := time.parse_rfc3339_ns(input.now)
	time.weekday(now) in {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}
	[hour, _, _] := time.clock(now)
	hour >= 8
	hour < 18
}
