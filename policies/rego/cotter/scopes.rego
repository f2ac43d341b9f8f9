# METADATA
# title: Scopes
# description: |
#   Each tool demands one scope. A token that states scopes, even an empty list of them, never reaches beyond them; a token without a
#   scope claim (a service account's) reaches only what a delegation gives.
package cotter.scopes

# The token states the tool's scope.
held(tool) if tool.scope in input.principal.scopes

# The token has a scope claim, whatever is in it.
stated if is_array(input.principal.scopes)

# The scope does not stand in the way: it is held, or the token acts under delegations and leaves scopes to them.
satisfied(tool) if held(tool)

satisfied(_) if left_to_delegations

left_to_delegations if {
	input.principal.delegated == true
	not stated
}

refusals(tool) := set() if {
	satisfied(tool)
} else := {{"code": "MissingScope", "detail": tool.scope}}
