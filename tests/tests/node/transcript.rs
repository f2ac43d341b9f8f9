//! The README's commands on a cluster, as they stand there.

use std::{
    fs,
    os::unix::fs::symlink,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use cotter_tests::{
    cluster::{Namespace, condition, is},
    programs::{Said, ours, root},
    transcript::{self, Step},
};
use serde_json::Value;

/// Where the commands make sense: the checkout's examples, and `kubectl cotter` on the path.
struct Place {
    work: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        symlink(root().join("examples"), work.path().join("examples")).unwrap();
        symlink(ours("cotter"), work.path().join("kubectl-cotter")).unwrap();
        Self { work }
    }

    fn run(&self, step: &Step) -> Said {
        let rest = std::env::var_os("PATH").unwrap();
        let first = std::iter::once(self.work.path().to_path_buf());
        let path = std::env::join_paths(first.chain(std::env::split_paths(&rest))).unwrap();
        let mut command = Command::new("bash");
        Said::run(command.args(["-c", &step.command]).current_dir(self.work.path()).env("PATH", path))
    }

    /// Once, where it changes something; where it shows something, until it shows that: a reader types slower.
    fn try_step(&self, step: &Step) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let said = self.run(step);
            assert_eq!(said.code, Some(0), "{}\n{said:?}", step.command);
            let Some(missing) = transcript::missing(&step.output, &said.out) else { return };
            assert!(Instant::now() < end, "{} never printed {missing:?}:\n{said:?}", step.command);
            thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
#[ignore = "needs a cluster whose node runs pods"]
fn the_cluster_is_as_the_readme_tells_it() {
    let (namespace, place) = (Namespace::named("support"), Place::new());
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = transcript::blocks(&readme).into_iter().filter(|block| block.mark.as_deref() == Some("cluster"));
    let steps: Vec<Step> = blocks.flat_map(|block| block.steps).collect();
    // tests/run installs by this very line; tests/docs.rs holds it to that.
    let (install, steps) = steps.split_first().unwrap();
    assert!(install.command.starts_with("helm install cotter charts/cotter "), "{install:?}");
    assert!(steps.len() > 5, "the README has lost its transcript");
    for step in steps {
        if step.command.starts_with("kubectl cotter pin") {
            says_how_to_pin(&namespace);
        }
        place.try_step(step);
    }
    let pin = fs::read_to_string(place.work.path().join("pin.yaml")).unwrap();
    let reviewed = fs::read_to_string(root().join("examples/support-desk/pin.yaml")).unwrap();
    assert_eq!(pin.replace("  namespace: support\n", ""), reviewed, "the same server, the same pin as on a laptop");
    audits_in_a_pipeline(&namespace);
}

fn says_how_to_pin(namespace: &Namespace) {
    let refused = |server: &Value| is(server, "Ready", "False") && condition(server, "Ready")["reason"] == "NotPinned";
    let server = namespace.wait_until("mcps", "support", refused);
    let message = condition(&server, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("kubectl cotter pin support -n support"), "{message}");
}

/// What the README says of `kubectl wait`: it is an exit code.
fn audits_in_a_pipeline(namespace: &Namespace) {
    let audit = |state: &str| {
        namespace.kubectl(&["wait", "tpin/support", &format!("--for=condition=InSync{state}"), "--timeout=0"]).code
    };
    assert_eq!((audit(""), audit("=false")), (Some(0), Some(1)));
}
