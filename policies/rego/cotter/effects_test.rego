package cotter.effects_test

import data.cotter.effects

test_reading_is_not_consequential if not effects.consequential({"effect": "Read"})

test_everything_else_is if {
	every effect in ["Write", "Destructive", "External"] {
		effects.consequential({"effect": effect})
	}
}

test_what_can_be_undone if {
	effects.reversible({"effect": "Write"})
	not effects.reversible({"effect": "Destructive"})
	not effects.reversible({"effect": "External"})
}

test_an_unknown_effect_is_refused if {
	count(effects.refusals({"effect": "Harmless"})) == 1
	count(effects.refusals({"effect": "Read"})) == 0
}
