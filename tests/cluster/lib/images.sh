# The images of the tests, made from static programs and installed packages. Nothing is pulled.

: "${cache:?this file is sourced by cluster}"
programs=$cache/static # where tests/run puts the workspace's programs, static and stripped
node_packages=$cache/tools/node

# image_recipes: the names that `cluster image` knows, in the order in which they are made.
image_recipes=(pause operator proxy cotter support-desk filesystem-2026.1.14 filesystem-2026.7.4 mcp-client)

image_names() { echo "${image_recipes[*]}"; }

make_images() {
	local name
	if [ "${1:-}" = --bin ]; then
		programs=${2:?--bin needs a directory}
		shift 2
	fi
	[ -x "$bin/image" ] || fail "$bin/image is missing" "run: $here/cluster build"
	[ $# -gt 0 ] || set -- "${image_recipes[@]}"
	mkdir -p "$images"
	for name in "$@"; do
		case $name in
		pause) make_image pause cotter.test/pause:1 --file "$bin/pause:/pause" --entrypoint /pause ;;
		operator) make_program_image operator cotter.test/cotter-operator:test cotter-operator ;;
		proxy) make_program_image proxy cotter.test/cotter-proxy:test cotter-proxy cotter-shim ;;
		# pause keeps a client pod alive, so that commands can be executed in it: command: [pause]
		cotter) make_program_image cotter cotter.test/cotter:test cotter --file "$bin/pause:/usr/local/bin/pause" ;;
		support-desk) make_program_image support-desk cotter.test/support-desk:1.0.0 support-desk --name registry.example/support-desk:1.0.0 ;;
		filesystem-*) make_filesystem_image "${name#filesystem-}" ;;
		mcp-client) make_mcp_client_image ;;
		*) fail "there is no image '$name'" "there are: $(image_names)" ;;
		esac
	done
}

# make_image FILE NAME FLAG…: with what every program expects to find: a user, a place for temporary files, and the
# order of host names that glibc falls back to only where it was not built static.
make_image() {
	local file=$images/$1.tar name=$2
	shift 2
	"$bin/image" --out "$file" --name "$name" --env PATH=/usr/local/bin:/usr/bin:/bin --env HOME=/home/nonroot \
		--dir /tmp:1777 --dir /home/nonroot:0750:65532 \
		--file "$here/rootfs/passwd:/etc/passwd" --file "$here/rootfs/group:/etc/group" --file "$here/rootfs/nsswitch.conf:/etc/nsswitch.conf" "$@"
}

# make_program_image FILE NAME PROGRAM… [FLAG…]: the first program is the entry point.
make_program_image() {
	local file=$1 name=$2 entry=$3 flags=()
	shift 2
	while [ $# -gt 0 ] && [[ $1 != --* ]]; do
		[ -x "$programs/$1" ] || fail "$programs/$1 is missing" "build it with: tests/run --only build"
		flags+=(--file "$programs/$1:/usr/local/bin/$1:0755")
		shift
	done
	make_image "$file" "$name" "${flags[@]}" "$@" --entrypoint "/usr/local/bin/$entry"
}

# node_flags: the Node interpreter with its libraries, and the two programs that a package's start script needs.
node_flags() {
	local program
	for program in node env sh; do
		program=$(readlink -f "$(command -v "$program")") || fail "$program is not on PATH"
		printf '%s\n' --libs "$program"
	done
	printf '%s\n' --file "$(readlink -f "$(command -v node)"):/usr/local/bin/node" --file /usr/bin/env:/usr/bin/env --file /bin/sh:/bin/sh
}

# The public server as it is published, serving /srv/files. The interpreter is a layer by itself, stored once for all.
make_filesystem_image() {
	local release=$1 modules=$node_packages/filesystem-$1/node_modules flags
	[ -d "$modules" ] || fail "$modules is missing" "run: $here/../tools/install node"
	mapfile -t flags < <(node_flags)
	make_image "filesystem-$release" "cotter.test/filesystem:$release" --name "registry.example/mcp-server-filesystem:$release" "${flags[@]}" \
		--layer --tree "$modules:/usr/local/lib/filesystem/node_modules" \
		--link /usr/local/bin/mcp-server-filesystem:/usr/local/lib/filesystem/node_modules/.bin/mcp-server-filesystem \
		--dir /srv/files:0755:65532 --file "$here/rootfs/hello.txt:/srv/files/hello.txt:0644:65532" \
		--workdir /srv --entrypoint mcp-server-filesystem --cmd /srv/files
}

# A pod in which the public TypeScript SDK runs: node --input-type=module - <script, from /app.
make_mcp_client_image() {
	local modules=$node_packages/clients/node_modules flags
	[ -d "$modules" ] || fail "$modules is missing" "run: $here/../tools/install node"
	mapfile -t flags < <(node_flags)
	make_image mcp-client cotter.test/mcp-client:test "${flags[@]}" --file "$bin/pause:/usr/local/bin/pause" \
		--layer --tree "$modules:/app/node_modules" --workdir /app --entrypoint pause
}
