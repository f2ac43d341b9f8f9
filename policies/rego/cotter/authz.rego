# METADATA
# title: The decision
# description: |
#   Whether one principal may see or use one tool. Everything that Cotter decides by policy is decided here; what is decided before
#   (token, audience, pin, limits) cannot be switched off by it. The input and the answer are described by the JSON Schemas beside
#   this folder. An operation is allowed only where something permits it (`proof`) and no module refuses it: an input that is malformed,
#   or a rule that is undefined, permits nothing. Rules that are no functions are named in full: through an import the engine evaluates
#   the whole package for one of them.
# entrypoint: true
package cotter.authz

import data.cotter.delegation
import data.cotter.effects
import data.cotter.modules
import data.cotter.obligations
import data.cotter.scopes

# The decision on the tool in question.
decision := verdict(input.tool)

# The same decision on many tools at once, for a list: the rules are the ones above, so what is listed is what can be called.
decisions := {name: verdict(tool) | some name, tool in input.tools}

verdict(tool) := {
	"version": "cotter.decision/v1",
	"allow": true,
	"reasons": [],
	"challengeScopes": [],
	"delegations": permitting,
	"obligations": due,
} if {
	data.cotter.tenants.admitted

	# What effects.known says, once more: calls of functions are what a decision costs.
	tool.effect in {"Read", "Write", "Destructive", "External"}
	permitting := proof(tool)
	modules.none_refuses(tool)
	due := obligations.due(tool)
} else := {
	"version": "cotter.decision/v1",
	"allow": false,
	"reasons": found,
	"challengeScopes": challenge(tool, found),
	"delegations": [],
	"obligations": data.cotter.obligations.none,
} if {
	found := refusals(tool)
}

# What permits the operation: the token's own scope (no delegation is named then), or, for who acts under delegations, one that permits
# all of it, within the token's own scopes where it states any. Undefined where nothing does.
proof(tool) := [] if {
	input.principal.delegated == false
	scopes.held(tool)
} else := permitting if {
	input.principal.delegated == true
	scopes.satisfied(tool)
	permitting := delegation.permitting(tool)
	count(permitting) > 0
}

# Why not. Without any active delegation every operation is refused alike, so nothing else is said.
refusals(tool) := data.cotter.tenants.refusals | data.cotter.delegation.absent if {
	data.cotter.delegation.missing
} else := union({
	data.cotter.tenants.refusals,
	effects.refusals(tool),
	scopes.refusals(tool),
	delegation.refusals(tool),
	modules.denied(tool),
}) if {
	data.cotter.delegation.required
} else := union({
	data.cotter.tenants.refusals,
	effects.refusals(tool),
	scopes.refusals(tool),
	modules.denied(tool),
})

# All scopes that this operation needs, where a missing scope is the only obstacle: asking for them would help.
challenge(tool, found) := [tool.scope] if {
	found == {{"code": "MissingScope", "detail": tool.scope}}
} else := []
