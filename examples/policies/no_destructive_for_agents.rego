# Whoever acts for somebody else, or is no person, does not do what cannot be undone.
package cotter.user.no_destructive_for_agents

import data.cotter.effects

deny contains "an agent may not do what cannot be undone" if {
	agent
	not effects.reversible(input.tool)
}

# The token names an actor (RFC 8693), or a service account holds it.
agent if input.principal.actor

agent if input.principal.serviceAccount
