# Starting, awaiting and ending the programs of a tier.

declare -A pid_of=()

# spawn NAME PROGRAM [ARGUMENT…]: in the background, in the tier's network, in a session of its own (so that Ctrl-C in
# the terminal does not reach it), logging to a file. All of setsid, nsenter and the program keep one process id.
spawn() {
	local name=$1 program=$2
	shift 2
	mkdir -p "$state/log"
	PATH=$bin:$PATH setsid "${enter[@]}" "$bin/$program" "$@" </dev/null >"$state/log/$name.log" 2>&1 9>&- &
	pid_of[$name]=$!
}

# await NAME SECONDS COMMAND…: until the command succeeds. A program that ended meanwhile, be it this one or another
# that it builds upon, is reported with its last words.
await() {
	local name=$1 limit=$2 deadline=$((SECONDS + $2)) other
	shift 2
	until "$@" >/dev/null 2>&1; do
		for other in "${!pid_of[@]}"; do
			kill -0 "${pid_of[$other]}" 2>/dev/null || fail_with_log "$other" "$other ended"
		done
		[ $SECONDS -lt $deadline ] || fail_with_log "$name" "$name is not ready after $limit s"
		sleep 0.1
	done
}

fail_with_log() {
	tail -n 15 "$state/log/$1.log" >&2
	fail "$2; its last lines are above" "the whole log: $state/log/$1.log"
}

# tier_processes prints the ids of this tier's programs: ours by their path, this tier's by a path among their arguments.
# Reading it off /proc finds them also when whoever started them is gone, and never hits a recycled id.
tier_processes() {
	local entry words
	for entry in /proc/[0-9]*; do
		words=()
		mapfile -d '' -t words 2>/dev/null <"$entry/cmdline" || continue
		case ${words[0]:-} in "$bin"/*) ;; *) continue ;; esac
		case "${words[*]:1}" in *"$state/"*) echo "${entry#/proc/}" ;; esac
	done
}

# end_processes ID…: SIGKILL, and wait until they are gone. An API server that is asked politely after its etcd is gone
# hangs on its own shutdown, and a kubelet tries to tidy up pods; nothing here is worth keeping.
end_processes() {
	[ $# -gt 0 ] || return 0
	local id
	kill -KILL "$@" 2>/dev/null || true
	for id in "$@"; do
		while kill -0 "$id" 2>/dev/null && ! is_zombie "$id"; do sleep 0.05; done
	done
}

is_zombie() { [[ $(cat "/proc/$1/stat" 2>/dev/null) == *') Z '* ]]; }

children_of() { cat /proc/"$1"/task/*/children 2>/dev/null || true; }

# stop_tier ends everything of the tier and removes its state. It is right to call at any time, also when nothing runs.
stop_tier() {
	local ids
	mapfile -t ids < <(tier_processes)
	[ ${#ids[@]} -eq 0 ] || say "stopping the $tier tier (${#ids[@]} programs)"
	[ "$tier" = plane ] || end_pods "${ids[@]}"
	end_processes "${ids[@]}"
	[ "$tier" = plane ] || remove_node
	rm -rf "$state"
}

show_logs() {
	local file
	for file in "$state"/log/*.log; do
		[ -e "$file" ] || fail "the $tier tier has no logs: it was not started, or was stopped"
		printf '\n===== %s\n' "$file"
		tail -n "$1" "$file"
	done
}
