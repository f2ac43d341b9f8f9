# Tools of the pilot are for two tenants, although the server admits more.
package cotter.user.tenant_allow_list

pilot := {"tenant-7", "tenant-9"}

# `not` over a rule that is undefined is true, and so a token without a tenant is refused as well.
deny contains sprintf("%s is in its pilot and this tenant is not", [input.tool.name]) if {
	startswith(input.tool.name, "case_")
	not takes_part
}

# A rule of its own: in OPA, `not input.principal.tenant in pilot` would not refuse where there is no tenant.
takes_part if input.principal.tenant in pilot
