# The node of the node tier: a network namespace with a control plane, containerd, kubelet, kube-proxy and DNS in it.

start_node() {
	[ "$(id -u)" = 0 ] || fail "the node tier needs root: it makes network namespaces, mounts and control groups" "the control plane tier does not: $here/cluster plane"
	local program
	for program in runc iptables ip conntrack nsenter; do
		command -v "$program" >/dev/null || fail "$program is not installed" "run: $here/../tools/install system"
	done
	[ -x /usr/lib/cni/bridge ] || fail "/usr/lib/cni/bridge is not installed" "run: $here/../tools/install system"
	stop_tier
	refuse_foreign_node
	make_network
	start_control_plane
	make_control_groups
	start_containerd
	start_dns
	start_kubelet
	start_proxy
	load_images "$images/pause.tar"
	await kubelet 60 kubectl_admin get node node1
	await kubelet 60 node_is_ready
	ready_tier
}

node_is_ready() { [ "$(kubectl_admin get node node1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }

# refuse_foreign_node: the network's name is the machine's, the state a checkout's. After stop_tier only another one can be in it.
refuse_foreign_node() {
	local id
	[ -e "/run/netns/$namespace" ] || return 0
	id=$(ip netns pids "$namespace" | head -n 1)
	fail "the node tier of another checkout is up: $(tr '\0' ' ' <"/proc/$id/cmdline" | cut -c 1-120)" "stop it there, with COTTER_TEST_CACHE as it was started"
}

# Pods and Services can be reached from the host, and the host from pods (at $network.1).
make_network() {
	ip netns add "$namespace"
	ip link add "$namespace" type veth peer name host netns "$namespace"
	ip addr add "$network.1/24" dev "$namespace"
	ip link set "$namespace" up
	ip -n "$namespace" link set lo up
	ip -n "$namespace" addr add "$network.2/24" dev host
	ip -n "$namespace" link set host up
	ip -n "$namespace" route add default via "$network.1"
	ip route add "$pods" via "$network.2"
	ip route add "$services" via "$network.2"
	"${enter[@]}" sysctl -qw net.ipv4.ip_forward=1
}

# make_control_groups: pods get a root of their own, so that stopping cannot touch those of a kubelet that this machine may run.
make_control_groups() {
	local controller
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		mkdir -p "/sys/fs/cgroup/$control_group"
	else
		for controller in /sys/fs/cgroup/*/; do mkdir -p "$controller$control_group"; done
	fi
}

start_containerd() {
	mkdir -p "$state"/{containerd,cni}
	# restrict_oom_score_adj: without CAP_SYS_RESOURCE runc may not lower the score and dies of it.
	cat >"$state/containerd.toml" <<-X
	version = 3
	root = "$state/containerd/root"
	state = "$state/containerd/state"
	[grpc]
	  address = "$state/containerd.sock"
	[plugins.'io.containerd.cri.v1.images'.pinned_images]
	  sandbox = 'cotter.test/pause:1'
	[plugins.'io.containerd.cri.v1.runtime']
	  restrict_oom_score_adj = true
	  netns_mounts_under_state_dir = true
	[plugins.'io.containerd.cri.v1.runtime'.cni]
	  bin_dirs = ['/usr/lib/cni']
	  conf_dir = '$state/cni'
	X
	# dataDir: the default lies outside of this folder, and its leases would outlive the pods of an ended cluster.
	cat >"$state/cni/10-pods.conflist" <<-X
	{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
	  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
	  "ipam": {"type": "host-local", "dataDir": "$state/cni/leases", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	X
	spawn containerd containerd -c "$state/containerd.toml"
	await containerd 30 ctr version
}

ctr() { "$bin/ctr" --address "$state/containerd.sock" --namespace k8s.io "$@"; }

start_dns() {
	cat >"$state/Corefile" <<-X
	.:53 {
	  bind $network.2
	  errors
	  kubernetes cluster.local in-addr.arpa {
	    kubeconfig $state/dns.kubeconfig
	  }
	}
	X
	spawn dns coredns -conf "$state/Corefile"
}

start_kubelet() {
	echo "nameserver $network.2" >"$state/resolv.conf"
	cat >"$state/kubelet.yaml" <<-X
	apiVersion: kubelet.config.k8s.io/v1beta1
	kind: KubeletConfiguration
	address: $network.2
	authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
	authorization: {mode: AlwaysAllow}
	cgroupDriver: cgroupfs
	cgroupRoot: /$control_group
	failCgroupV1: false
	clusterDNS: [$network.2]
	clusterDomain: cluster.local
	resolvConf: $state/resolv.conf
	containerRuntimeEndpoint: unix://$state/containerd.sock
	enforceNodeAllocatable: []
	failSwapOn: false
	localStorageCapacityIsolation: false
	X
	spawn kubelet kubelet --config "$state/kubelet.yaml" --kubeconfig "$state/node.kubeconfig" --root-dir "$state/kubelet" \
		--hostname-override node1 --node-ip "$network.2"
}

start_proxy() {
	spawn proxy kube-proxy --kubeconfig "$state/proxy.kubeconfig" --hostname-override node1 --proxy-mode iptables \
		--cluster-cidr "$pods" --conntrack-max-per-core 0
}

# load_images ARCHIVE…: under the name in the archive, and under the name with its digest, so that a pod can ask for either.
load_images() {
	local archive name digest
	[ $# -gt 0 ] || fail "load needs image archives" "make them with: $here/cluster image"
	[ -S "$state/containerd.sock" ] || fail "the node tier is not up" "start it with: $here/cluster node"
	for archive in "$@"; do
		[ -f "$archive" ] || fail "there is no archive $archive" "make it with: $here/cluster image"
		ctr images import "$archive" >"$state/log/import.log" 2>&1 || fail "failed to import $archive: $(tail -n 1 "$state/log/import.log")"
		while read -r digest name; do
			ctr images tag --force "$name" "${name%:*}@$digest" >"$state/log/import.log" 2>&1 || fail "failed to tag $name: $(tail -n 1 "$state/log/import.log")"
			say "loaded $name ($digest)"
		done < <(names_in "$archive")
	done
}

# names_in ARCHIVE: `digest name` for each name in its index.
names_in() {
	tar -xOf "$1" index.json | grep -oE '"(digest|io.containerd.image.name)":"[^"]+"' | cut -d '"' -f 4 | paste -d ' ' - -
}

# end_pods ID…: of the ids of the tier's programs. kubelet goes first, for it would start the pods again; then what each
# shim holds, for a container outlives its shim.
end_pods() {
	local id program shims=() containers=()
	for id in "$@"; do
		mapfile -d '' -t program 2>/dev/null <"/proc/$id/cmdline" || continue
		case ${program[0]:-} in
		*/kubelet) end_processes "$id" ;;
		*/containerd-shim-runc-v2) shims+=("$id") ;;
		esac
	done
	for id in "${shims[@]}"; do
		# shellcheck disable=SC2207
		containers+=($(children_of "$id"))
	done
	end_processes "${shims[@]}" "${containers[@]}"
}

# remove_node: mounts before files, and the namespace last.
remove_node() {
	local mount
	find /sys/fs/cgroup -depth -path "*/$control_group*" -type d -exec rmdir {} + 2>/dev/null || true
	awk -v under="$state/" 'index($2, under) == 1 {print $2}' /proc/mounts | sort -r | while read -r mount; do
		umount -l "$mount" || say "could not unmount $mount"
	done
	[ -e "/run/netns/$namespace" ] || return 0
	[ -z "$(ip netns pids "$namespace")" ] || return 0
	ip link del "$namespace" 2>/dev/null || true
	ip netns del "$namespace"
}
