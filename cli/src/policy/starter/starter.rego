# A policy module. It can only refuse, or ask for a person's agreement; nothing it says can allow what the library refuses.
#
# It belongs to a package below `cotter.user` and contributes two sets:
#   deny contains reason              refuse, with a reason that the owner reads in the audit record
#   require_approval contains reason  a person has to agree first
#
# What is asked about is in `input`: input.principal, input.tool, input.server, input.operation, input.now, and, for a call, input.args.
# A rule that reads input.args or input.now is evaluated for each call; a decision on all others is remembered.
package cotter.user.starter

# Nobody from outside the desk may change anything.
deny contains "only the desk may change cases" if {
	input.tool.effect != "Read"
	not "desk" in input.principal.groups
}
