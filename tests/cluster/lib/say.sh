# What the harness says, all on standard error: standard output is for what a script wants to read.

say() { printf 'cluster: %s\n' "$*" >&2; }

# fail WHAT [WHAT TO DO]
fail() {
	printf 'cluster: error: %s\n' "$@" >&2
	exit 1
}
