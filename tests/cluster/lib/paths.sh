# Where things are, and what tells the two tiers apart. Both can be up at the same time:
# the control plane tier listens on loopback, the node tier has a network namespace of its own.

: "${here:?this file is sourced by cluster}"
cache=${COTTER_TEST_CACHE:-$(cd "$here/../.." && pwd)/.cache}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
bin=$cache/cluster/bin
images=$cache/cluster/images

namespace=cotter-node # of the network, and the host's end of the link to it
control_group=cotter-test
network=172.29.77     # host .1, node .2
pods=10.131.0.0/24
services=10.132.0.0/16

# use_tier plane|node: everything about a tier follows from its name.
use_tier() {
	tier=$1
	state=$cache/cluster/$tier
	case $tier in
	plane) address=127.0.0.1 first_port=26440 enter=() ;;
	# nsenter, not `ip netns exec`: that one mounts a fresh /sys, which hides the control groups from kubelet.
	node) address=$network.2 first_port=6440 enter=(nsenter "--net=/run/netns/$namespace") ;;
	*) fail "a tier is 'plane' or 'node', not '$tier'" ;;
	esac
	api_port=$((first_port + 3))
	etcd_port=$((first_port + 4))
	peer_port=$((first_port + 5))
	controllers_port=$((first_port + 6))
	scheduler_port=$((first_port + 7))
	# The kernel's limit for the path of a Unix socket is 107 bytes; kubelet's longest under here needs 40.
	case $state in *[[:space:]]*) fail "the path $state has a space in it" "set COTTER_TEST_CACHE to a folder without one" ;; esac
	[ ${#state} -le 65 ] || fail "the path $state is too long for the sockets below it (65 bytes at most)" "set COTTER_TEST_CACHE to a shorter one"
}

# lock_tier waits until nobody else starts or stops this tier. The programs that are started do not inherit the lock.
lock_tier() {
	mkdir -p "$state"
	exec 9>"$cache/cluster/$tier.lock"
	flock -w 120 9 || fail "another start or stop of the $tier tier has been going on for two minutes" "see: fuser $cache/cluster/$tier.lock"
}
