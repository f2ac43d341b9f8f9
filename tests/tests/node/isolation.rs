//! The server is the adversary: what it can reach in its pod, and who gets past the sidecar.

use cotter_tests::cluster::{Caller, Namespace};
use serde_json::{Value, json};

use crate::{
    desk::{Files, PODS},
    filesystem::AUDIENCE,
};

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn who_has_no_token_or_no_delegation_gets_nothing() {
    let namespace = Namespace::fresh("callers");
    let (reader, stranger) =
        (Caller::create(&namespace, "reader", AUDIENCE), Caller::create(&namespace, "stranger", AUDIENCE));
    let other = Caller::create(&namespace, "other", "inventory://api");
    let files = Files::apply(&namespace);
    for caller in [&reader, &stranger, &other] {
        files.wait(caller);
    }
    files.serves(&reader);

    let refused = files.read(&stranger);
    assert_eq!(namespace.record("filesystem", &refused)["reasons"][0]["code"], "NoDelegation");
    assert_eq!(refused.json()["error"]["data"]["reason"], "NoDelegation", "{refused:?}");
    let list = stranger.modern(files.url(), "tools/list", None, json!({}));
    assert_eq!(list.json()["error"]["data"]["reason"], "NoDelegation", "{list:?}");

    let anonymous = reader.anonymous(files.url(), "tools/list", json!({}));
    assert_eq!(anonymous.status, 401);
    assert!(anonymous.header("www-authenticate").unwrap().contains("resource_metadata="), "{anonymous:?}");
    let misdirected = files.read(&other);
    assert_eq!((misdirected.status, &misdirected.body), (401, &files_anonymous_body(&reader, &files)));
    assert_eq!(namespace.record("filesystem", &misdirected)["reasons"][0]["code"], "TokenAudience");
}

/// A bad token and none are told the same.
fn files_anonymous_body(caller: &Caller<'_>, files: &Files<'_>) -> Vec<u8> {
    caller.anonymous(files.url(), "tools/call", json!({"name": "read_text_file"})).body
}

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn the_server_shares_nothing_with_its_sidecar_but_a_socket_and_the_network() {
    let namespace = Namespace::fresh("confined");
    let _files = Files::apply(&namespace);
    namespace.wait_for_tools("filesystem", "14/14");
    let pods = namespace.pods(PODS);
    assert_eq!(pods.len(), 1);
    let spec = &pods[0]["spec"];
    assert_eq!(spec["automountServiceAccountToken"], false);
    for shared in ["shareProcessNamespace", "hostPID", "hostNetwork", "hostIPC"] {
        assert!(!spec[shared].as_bool().unwrap_or_default(), "{shared}");
    }
    let (server, sidecar) = (mounts(spec, "server"), mounts(spec, "cotter-proxy"));
    assert_eq!(server, ["cotter-run /run/cotter", "cotter-shim /cotter/bin ro"]);
    let shared: Vec<&String> = sidecar.iter().filter(|mount| server.contains(mount)).collect();
    assert_eq!(shared, ["cotter-run /run/cotter"]);
    assert!(sidecar.contains(&"cotter-state /var/lib/cotter".to_owned()), "{sidecar:?}");
    looks_around(&namespace);
}

/// The volumes of a container with their places, sorted.
fn mounts(spec: &Value, container: &str) -> Vec<String> {
    let containers = spec["containers"].as_array().unwrap();
    let found = containers.iter().find(|one| one["name"] == container).unwrap();
    let describe = |mount: &Value| {
        let read_only = if mount["readOnly"] == true { " ro" } else { "" };
        format!("{} {}{read_only}", mount["name"].as_str().unwrap(), mount["mountPath"].as_str().unwrap())
    };
    let mut mounts: Vec<String> = found["volumeMounts"].as_array().unwrap().iter().map(describe).collect();
    mounts.sort();
    mounts
}

/// What a program in the server's container finds. The image's shell has no tools beside its own words; the brackets keep it
/// from finding itself.
const LOOK: &str = r#"
for path in /var/run/secrets /var/lib/cotter /etc/cotter; do [ -e "$path" ] && echo "sees $path"; done
for process in /proc/[0-9]*; do
  while IFS= read -r line; do case $line in *cotter-prox[y]*) echo "sees the sidecar at $process";; esac; done <"$process/cmdline"
done 2>/dev/null
echo x 2>/dev/null >/cotter/bin/cotter-shim && echo "can change the shim"
echo x 2>/dev/null >/cotter/bin/other && echo "can put programs beside the shim"
echo socket: /run/cotter/*
echo looked
"#;

fn looks_around(namespace: &Namespace) {
    let args = ["exec", "deployment/filesystem", "-c", "server", "--", "sh", "-c", LOOK];
    let said = namespace.kubectl(&args).good();
    assert_eq!(said, "socket: /run/cotter/shim.sock\nlooked\n");
}
