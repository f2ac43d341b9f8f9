package cotter.authz_test

import data.cotter.authz
import data.cotter.effects

principal := {"tenant": "tenant-7", "scopes": ["case:write"], "delegated": false}

server := {"tenants": {"tenant-7": true}}

tool := {"name": "case_tag", "scope": "case:write", "effect": "Write", "approval": "Never", "pin": {"state": "Matched"}}

other := object.union(tool, {"name": "case_purge", "scope": "case:admin"})

test_a_list_decides_as_a_call_does if {
	found := authz.decisions with input as {
		"server": server,
		"principal": principal,
		"grants": {},
		"tools": {"case_tag": tool, "case_purge": other},
	}
	found.case_tag == authz.decision with input as {"server": server, "principal": principal, "grants": {}, "tool": tool}
	found.case_purge == authz.decision with input as {"server": server, "principal": principal, "grants": {}, "tool": other}
	found.case_tag.allow == true
	found.case_purge.allow == false
}

test_an_empty_input_allows_nothing if not authz.decision.allow with input as {}

permitted(effect) if {
	found := authz.decision with input as {
		"server": server,
		"principal": principal,
		"grants": {},
		"tool": object.union(tool, {"effect": effect}),
	}
	found.allow == true
}

test_every_known_effect_may_be_permitted if {
	every effect in ["Read", "Write", "Destructive", "External"] {
		effects.known({"effect": effect})
		permitted(effect)
	}
}

test_no_other_effect_may_be_permitted if {
	every effect in ["Harmless", "read", ""] {
		not effects.known({"effect": effect})
		not permitted(effect)
	}
}
