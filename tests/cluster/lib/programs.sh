# The programs of the cluster, compiled from Go modules. `kube` is one binary under many names (kube/programs.go).

names_of_kube=(coredns etcd helm kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet)
containerd=github.com/containerd/containerd/v2/cmd
version_package=k8s.io/component-base/version

build_programs() {
	command -v go >/dev/null || fail "there is no Go toolchain: 'go' is not on PATH" "install the Go release that $here/go.mod asks for, or a newer one"
	mkdir -p "$bin"
	cd "$here"
	local name version major minor
	version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=. read -r major minor _ <<<"${version#v}"
	export CGO_ENABLED=0
	# Without its version each component takes the others for too old and refuses to run.
	go build -trimpath -o "$bin/" -ldflags "-s -w -X $version_package.gitVersion=$version -X $version_package.gitMajor=$major -X $version_package.gitMinor=$minor" ./kube
	# The shim is a program of its own: linked into containerd, its plugins would register there.
	go build -trimpath -o "$bin/" -ldflags "-s -w" "$containerd"/{containerd,containerd-shim-runc-v2,ctr} ./image ./pause
	for name in "${names_of_kube[@]}"; do ln -sfn kube "$bin/$name"; done
	make_images pause >/dev/null
	say "Kubernetes $version is in $bin"
}

need_programs() {
	local name
	for name in "${names_of_kube[@]}" containerd containerd-shim-runc-v2 ctr image pause; do
		[ -x "$bin/$name" ] || fail "$bin/$name is missing" "run: $here/cluster build"
	done
}
