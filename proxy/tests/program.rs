//! The program of a pod: starts without its operator from what it was given, guards, records, and ends when it is told to.

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Read as _, Write as _},
        net::TcpStream,
        path::Path,
        process::{Child, Command, Stdio},
        time::Duration,
    };

    use cotter_core::snapshot::{Sealed, Snapshot};
    use serde_json::{Value, json};

    const PROGRAM: &str = env!("CARGO_BIN_EXE_cotter-proxy");

    fn snapshot(generation: i64) -> Sealed {
        let value = json!({
            "version": "cotter.snapshot/v1", "server": {"namespace": "support", "name": "support"}, "generation": generation,
            "upstream": {"http": {"url": "http://127.0.0.1:1/mcp"}}, "protocol": {"revisions": ["2025-11-25"]},
            "access": {
                "audience": "support://mcp", "hosts": [], "origins": [], "issuers": [], "tenants": ["*"],
                "insufficientScope": "Hide", "advertisedScopes": [],
            },
            "tools": {}, "pinning": "Quarantine", "grants": [], "policies": {},
            "limits": {
                "requestBytes": 1000, "resultBytes": 1000, "timeoutMs": 1000, "concurrent": 1, "sessions": 1,
                "ratePerPrincipal": {"tokens": 1, "perMs": 1, "burst": 1},
            },
            "verify": {"intervalMs": 1000, "graceMs": 1000}, "stale": {"afterMs": 60000, "action": "Report"},
        });
        Sealed::seal(serde_json::from_value::<Snapshot>(value).unwrap()).unwrap()
    }

    /// A pod's folder with its bootstrap file; the operator is nowhere.
    fn pod(snapshot: Option<&Sealed>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let ca = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap().cert.pem();
        let mut bootstrap = json!({
            "operator": "https://localhost:1", "ca": ca, "server": {"namespace": "support", "name": "support"},
        });
        if let Some(sealed) = snapshot {
            let value: Value = serde_json::from_str(sealed.bytes()).unwrap();
            bootstrap["snapshot"] = json!({"digest": sealed.digest(), "snapshot": value});
        }
        // The exact bytes matter: the text of the snapshot goes in as it is.
        let mut text = bootstrap.to_string();
        if let Some(sealed) = snapshot {
            let value = serde_json::from_str::<Value>(sealed.bytes()).unwrap().to_string();
            text = text.replace(&value, sealed.bytes());
        }
        std::fs::write(dir.path().join("bootstrap.json"), text).unwrap();
        std::fs::write(dir.path().join("token"), "t").unwrap();
        dir
    }

    fn start(dir: &Path) -> Child {
        Command::new(PROGRAM)
            .arg("--bootstrap")
            .arg(dir.join("bootstrap.json"))
            .arg("--token-file")
            .arg(dir.join("token"))
            .arg("--state-dir")
            .arg(dir.join("state"))
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .env("POD_NAME", "support-0")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Reads the log until the line that has this message.
    fn log(lines: &mut impl Iterator<Item = std::io::Result<String>>, message: &str) -> Value {
        loop {
            let line: Value = serde_json::from_str(&lines.next().expect("the log goes on").unwrap()).unwrap();
            if line["fields"]["message"] == message {
                return line["fields"].clone();
            }
        }
    }

    fn ask(address: &str, text: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(address: &str, path: &str) -> String {
        ask(address, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }

    fn end(mut child: Child) {
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn it_starts_from_its_bootstrap_and_ends_when_told() {
        let given = snapshot(1);
        let dir = pod(Some(&given));
        let mut child = start(dir.path());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = log(&mut lines, "listening");
        let clients = listening["clients"].as_str().unwrap().to_owned();
        let admin = listening["admin"].as_str().unwrap().trim_start_matches("Some(").trim_end_matches(')').to_owned();
        assert_eq!(log(&mut lines, "enforcing a new snapshot")["snapshot"], given.digest().to_string());
        assert!(get(&admin, "/healthz").starts_with("HTTP/1.1 200"));
        assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 503"), "the server never answered");
        let post = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\ncontent-type: application/json\r\n\
                    content-length: 2\r\nconnection: close\r\n\r\n{}";
        assert!(ask(&clients, post).starts_with("HTTP/1.1 401"));
        let mut record = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut record).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        assert_eq!((&record["reasons"][0]["code"], &record["status"]), (&json!("TokenMissing"), &json!(401)));
        assert_eq!(record["snapshot"], given.digest().to_string());
        end(child);
    }

    /// The second start finds what the first one kept, although its bootstrap gives nothing.
    #[test]
    fn it_starts_from_what_it_kept() {
        let given = snapshot(7);
        let dir = pod(Some(&given));
        for bootstrap in [true, false] {
            if !bootstrap {
                std::fs::copy(pod(None).path().join("bootstrap.json"), dir.path().join("bootstrap.json")).unwrap();
            }
            let mut child = start(dir.path());
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let enforced = log(&mut lines, "enforcing a new snapshot");
            assert_eq!(enforced["snapshot"], given.digest().to_string());
            while !dir.path().join("state/snapshot.json").exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            end(child);
        }
    }

    #[test]
    fn what_it_cannot_start_with_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("bootstrap.json"), "{}").unwrap();
        let output = start(dir.path()).wait_with_output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && log.contains("bootstrap.json") && log.contains("missing field"), "{log}");
    }
}
