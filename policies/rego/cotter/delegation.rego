# METADATA
# title: Delegations
# description: |
#   Who may act for whom. A principal that acts under delegations is permitted by one single grant that covers scope, effect, tool and
#   tenant together: two grants that cover half each permit nothing. The grants in the input are those that name this principal and
#   are active now, already narrowed along their chain.
package cotter.delegation

required if input.principal.delegated != false

# It needs a delegation and has none at all.
missing if {
	required
	count(input.grants) == 0
}

absent contains {"code": "NoDelegation"} if missing

# Names of the grants that permit the whole operation, each by itself.
permitting(tool) := {name |
	some name, grant in input.grants
	grant.scopes[tool.scope]
	grant.effects[tool.effect]
	grant.tools[tool.name]
	grant.tenants[input.principal.tenant]
}

# What is missing, where a delegation is required: for each grant by itself.
refusals(tool) := set() if {
	count(permitting(tool)) > 0
} else := union({gaps(grant, tool) | some grant in input.grants})

# What one grant does not cover.
gaps(grant, tool) := {{"code": code, "detail": detail} |
	some code, detail in {
		"EffectNotDelegated": tool.effect,
		"ScopeNotDelegated": tool.scope,
		"TenantNotDelegated": tenant,
		"ToolNotDelegated": tool.name,
	}
	not covers(grant, tool, code)
}

covers(grant, tool, "ScopeNotDelegated") if grant.scopes[tool.scope]

covers(grant, tool, "EffectNotDelegated") if grant.effects[tool.effect]

covers(grant, tool, "ToolNotDelegated") if grant.tools[tool.name]

covers(grant, _, "TenantNotDelegated") if grant.tenants[input.principal.tenant]

tenant := input.principal.tenant

default tenant := "(none)"
