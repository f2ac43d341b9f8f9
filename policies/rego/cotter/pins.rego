# METADATA
# title: Pins
# description: |
#   How the tool's definition compares with what was approved. The sidecar acts on pins before the policy is asked: what gets here is
#   servable. These rules are for modules that want to be stricter, for example about tools that are served as observed.
package cotter.pins

# The definition is exactly what was approved.
matched(tool) if tool.pin.state == "Matched"

# It differs, and the pin lets this class of difference pass.
drifted(tool) if tool.pin.state == "Drifted"

# Nobody approved it, and the server's owner lets unpinned tools pass.
unapproved(tool) if tool.pin.state in {"Added", "Unpinned"}
