# METADATA
# title: Effects
# description: |
#   What a tool does to the world, as its owner declares it. An effect by itself refuses nobody: approval, delegations and modules act
#   on it. An effect that this policy does not know is refused.
package cotter.effects

known(tool) if tool.effect in {"Read", "Write", "Destructive", "External"}

# Whether a repeated or lost call matters.
consequential(tool) if tool.effect in {"Write", "Destructive", "External"}

# Whether the effect can be undone within the tenant's own systems.
reversible(tool) if tool.effect in {"Read", "Write"}

refusals(tool) := set() if {
	known(tool)
} else := {{"code": "PolicyUndefined", "detail": "the tool has no known effect"}}
