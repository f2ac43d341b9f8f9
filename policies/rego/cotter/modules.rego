# METADATA
# title: Modules of the user
# description: |
#   What the modules in `cotter.user.*` refuse or want a person to agree to. This file stands for "there are none"; for a server with
#   modules it is replaced by one that is written from them, rule by rule. Modules can only add refusals and approvals.
package cotter.modules

denied(_) := set()

approvals(_) := set()

# No module refuses the tool.
none_refuses(_) := true

# No module wants a person to agree.
none_asks(_) := true
