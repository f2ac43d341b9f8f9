# A second person agrees before anything leaves the house: mail, payments, other parties.
package cotter.user.four_eyes_for_external

require_approval contains "a second person agrees before anything leaves the house" if {
	input.tool.effect == "External"
}
