package cotter.tenants_test

import data.cotter.tenants

test_a_listed_tenant_is_admitted if {
	tenants.admitted with input as {"server": {"tenants": {"a": true}}, "principal": {"tenant": "a"}}
}

test_another_is_not if {
	not tenants.admitted with input as {"server": {"tenants": {"a": true}}, "principal": {"tenant": "b"}}
}

test_without_a_tenant_only_the_star_admits if {
	not tenants.admitted with input as {"server": {"tenants": {"a": true}}, "principal": {}}
	tenants.admitted with input as {"server": {"tenants": {"*": true}}, "principal": {}}
}
