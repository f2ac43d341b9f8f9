# METADATA
# title: Tenants
# description: |
#   Who may be here at all. A token's tenant has to be among the server's; `*` admits every tenant, and it alone admits a token that
#   names none. The sidecar checks the same before anything else; here it holds for whoever evaluates the policy by itself.
package cotter.tenants

admitted if {
	input.server.tenants[input.principal.tenant]
} else if {
	input.server.tenants["*"]
}

refusals contains {"code": "TenantNotAdmitted", "detail": name} if not admitted

# The tenant as the token names it.
name := input.principal.tenant

default name := "(none)"
