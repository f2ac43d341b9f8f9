package cotter.user.no_destructive_for_agents_test

import data.cotter.user.no_destructive_for_agents as module

asks(effect, principal) := {"tool": {"effect": effect}, "principal": principal}

bot := {"issuer": "https://login.example.com", "subject": "bot"}

test_a_person_may if {
	count(module.deny) == 0 with input as asks("Destructive", {"subject": "mia"})
}

test_an_actor_may_not if {
	count(module.deny) == 1 with input as asks("Destructive", {"subject": "mia", "actor": bot})
}

test_a_service_account_may_not if {
	account := {"namespace": "support", "name": "triage-bot"}
	count(module.deny) == 1 with input as asks("External", {"subject": "x", "serviceAccount": account})
}

test_an_actor_may_write if {
	count(module.deny) == 0 with input as asks("Write", {"subject": "mia", "actor": bot})
}
