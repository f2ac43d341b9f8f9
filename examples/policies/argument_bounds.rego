# What a call may say. A rule that reads input.args is evaluated for each call (some 50 µs); everything else is remembered.
package cotter.user.argument_bounds

# When a list is made there are no arguments: the tool stays visible, and only the call is refused.
deny contains "amount_cents has to be a whole number from 1 to 50000" if {
	input.tool.name == "refund"
	input.operation.kind == "call"
	not good_amount
}

# A missing amount, text, or a fraction is not good: whatever cannot be shown to be good is refused.
good_amount if {
	amount := input.args.amount_cents
	is_number(amount)
	amount == round(amount)
	amount >= 1
	amount <= 50000
}

deny contains "case_id has the form C-123" if {
	input.operation.kind == "call"
	id := input.args.case_id
	not good_id(id)
}

# [0-9] and not \d: that would take digits of every script.
good_id(id) if regex.match(`^C-[0-9]{1,9}$`, id)
