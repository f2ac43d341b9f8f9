# METADATA
# title: The decision
# description: |
#   Whether one principal may see or use one tool. Everything that Cotter decides by policy is decided here; what is decided before
#   (token, audience, pin, limits) cannot be switched off by it. The input and the answer are described by the JSON Schemas beside
#   this folder. An operation is allowed only where a positive proof was found (`proven`) and nothing refuses it: an input that is
#   malformed, or a rule that is undefined, allows nothing.
# entrypoint: true
package cotter.authz

import data.cotter.delegation
import data.cotter.effects
import data.cotter.modules
import data.cotter.scopes
import data.cotter.tenants

# The decision on the tool in question.
decision := verdict(input.tool)

# The same decision on many tools at once, for a list: the rules are the ones above, so what is listed is what can be called.
decisions[name] := verdict(tool) if some name, tool in input.tools

verdict(tool) := {
	"allow": allow(tool, found),
	"reasons": found,
	"challengeScopes": challenge(tool, found),
	"delegations": delegation.permitting(tool),
	"obligations": {"approval": approval(tool)},
} if {
	found := refusals(tool)
}

allow(tool, found) if {
	count(found) == 0
	proven(tool)
} else := false

# Who acts on the token alone needs its scope. Who acts under delegations needs one that permits the whole operation, and the
# token's own scopes where it states any.
proven(tool) if {
	tenants.admitted
	effects.known(tool)
	input.principal.delegated == false
	scopes.held(tool)
}

proven(tool) if {
	tenants.admitted
	effects.known(tool)
	input.principal.delegated == true
	scopes.satisfied(tool)
	count(delegation.permitting(tool)) > 0
}

# Why not. Without any active delegation every operation is refused alike, so nothing else is said.
refusals(tool) := tenants.refusals | delegation.absent if {
	delegation.missing
}

refusals(tool) := union({
	tenants.refusals,
	effects.refusals(tool),
	scopes.refusals(tool),
	delegation.refusals(tool),
	modules.denied(tool),
}) if {
	not delegation.missing
}

# All scopes that this operation needs, where a missing scope is the only obstacle: asking for them would help.
challenge(tool, found) := [tool.scope] if {
	{reason.code | some reason in found} == {"MissingScope"}
} else := []

# A person has to agree where the tool's owner or a module says so.
approval(tool) := "Always" if {
	effects.approval(tool)
} else := "Always" if {
	count(modules.approvals(tool)) > 0
} else := "Never"
