# Tools of the pilot are for two tenants, although the server admits more.
package cotter.user.tenant_allow_list

pilot := {"tenant-7", "tenant-9"}

# A token without a tenant is not in the list either: `not` over something undefined is true, and so this refuses.
deny contains sprintf("%s is in its pilot and this tenant is not", [input.tool.name]) if {
	startswith(input.tool.name, "case_")
	not input.principal.tenant in pilot
}
