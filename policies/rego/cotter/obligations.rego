# METADATA
# title: Obligations
# description: |
#   What has to hold on the way of an allowed operation: what the tool's owner declares for it, and a person's agreement where a module
#   asks for one. Each narrows; the sidecar's own bounds hold beside them.
package cotter.obligations

import data.cotter.effects
import data.cotter.modules

# Of what is refused nothing is asked.
none := {"approval": "Never"}

# Most tools declare nothing. Undefined where what is declared has another form: then nothing is permitted.
due(tool) := {"approval": "Never"} if {
	tool.approval == "Never"
	not tool.idempotencyKey
	not tool.limits
	modules.none_asks(tool)
} else := object.union_n([{"approval": approval(tool)}, idempotency(tool), bounds(tool)]) if {
	is_string(object.get(tool, "idempotencyKey", ""))
	every bound in object.get(tool, "limits", {}) {
		is_number(bound)
	}
}

# A person has to agree where the tool's owner or a module says so.
approval(tool) := "Never" if {
	tool.approval == "Never"
	count(modules.approvals(tool)) == 0
} else := "Always"

# Where the key is that makes a repeated call harmless: it matters to whatever does more than read.
idempotency(tool) := {"idempotency": pointer |
	effects.consequential(tool)
	pointer := tool.idempotencyKey
}

# The tool's own deadline and bound on the result.
bounds(tool) := {name: bound |
	some name in ["resultBytes", "timeoutMs"]
	bound := tool.limits[name]
}
