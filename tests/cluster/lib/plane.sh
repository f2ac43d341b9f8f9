# The control plane, of either tier.

# start_plane: the tier that needs neither root nor pods.
start_plane() {
	stop_tier
	# A loopback address is not allowed as an endpoint, so nobody publishes it.
	start_control_plane --endpoint-reconciler-type none
	ready_tier
}

# start_control_plane [API SERVER FLAG…]
start_control_plane() {
	mkdir -p "$state"/{pki,log}
	make_credentials
	start_etcd
	start_apiserver "$@"
	start_controllers
	start_scheduler
}

# Who may speak to the API server: a token each, new for each start. `name user groups`.
credentials='admin admin system:masters
controllers system:kube-controller-manager -
scheduler system:kube-scheduler -
node system:node:node1 system:nodes
proxy system:kube-proxy -
dns dns system:masters'

make_credentials() {
	local name user groups token
	openssl genrsa -out "$state/pki/accounts.key" 2048 2>/dev/null
	openssl rsa -in "$state/pki/accounts.key" -pubout -out "$state/pki/accounts.pub" 2>/dev/null
	(umask 077 && : >"$state/pki/tokens.csv")
	while read -r name user groups; do
		token=$(openssl rand -hex 16)
		echo "$token,$user,$name,${groups#-}" >>"$state/pki/tokens.csv"
		write_kubeconfig "$name" "$token"
	done <<<"$credentials"
}

# The API server makes its own certificate for the address that it binds, with the authority that signed it in one file.
write_kubeconfig() {
	(umask 077 && cat >"$state/$1.kubeconfig") <<-X
	apiVersion: v1
	kind: Config
	clusters: [{name: cotter-$tier, cluster: {server: "https://$address:$api_port", certificate-authority: "$state/pki/apiserver.crt"}}]
	users: [{name: $1, user: {token: "$2"}}]
	contexts: [{name: cotter-$tier, context: {cluster: cotter-$tier, user: $1}}]
	current-context: cotter-$tier
	X
}

start_etcd() {
	local client=http://127.0.0.1:$etcd_port peer=http://127.0.0.1:$peer_port
	spawn etcd etcd --data-dir "$state/etcd" --unsafe-no-fsync --log-level warn \
		--listen-client-urls "$client" --advertise-client-urls "$client" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
}

start_apiserver() {
	spawn apiserver kube-apiserver --etcd-servers "http://127.0.0.1:$etcd_port" \
		--bind-address "$address" --advertise-address "$address" --secure-port "$api_port" --cert-dir "$state/pki" \
		--token-auth-file "$state/pki/tokens.csv" --authorization-mode Node,RBAC --allow-privileged \
		--service-account-issuer https://kubernetes.default.svc --api-audiences https://kubernetes.default.svc \
		--service-account-key-file "$state/pki/accounts.pub" --service-account-signing-key-file "$state/pki/accounts.key" \
		--service-cluster-ip-range "$services" --kubelet-preferred-address-types InternalIP "$@"
	await apiserver 60 kubectl_admin get --raw /readyz
}

start_controllers() {
	local config=$state/controllers.kubeconfig
	spawn controllers kube-controller-manager --kubeconfig "$config" --authentication-kubeconfig "$config" --authorization-kubeconfig "$config" \
		--bind-address 127.0.0.1 --secure-port "$controllers_port" --cert-dir "$state/pki/controllers" --leader-elect=false \
		--service-account-private-key-file "$state/pki/accounts.key" --root-ca-file "$state/pki/apiserver.crt" --use-service-account-credentials
}

start_scheduler() {
	local config=$state/scheduler.kubeconfig
	spawn scheduler kube-scheduler --kubeconfig "$config" --authentication-kubeconfig "$config" --authorization-kubeconfig "$config" \
		--bind-address 127.0.0.1 --secure-port "$scheduler_port" --cert-dir "$state/pki/scheduler" --leader-elect=false
}

kubectl_admin() { "$bin/kubectl" --kubeconfig "$state/admin.kubeconfig" "$@"; }

# ready_tier: what nothing reports as ready but the first test would stumble over is the default service account.
ready_tier() {
	await controllers 60 kubectl_admin get serviceaccount default -n default
	say "the $tier tier is up: Kubernetes at https://$address:$api_port"
	say "use it with: export KUBECONFIG=$state/admin.kubeconfig PATH=$bin:\$PATH"
}
