//! How the sidecar reaches the server: in a pod over its loopback or the shim's socket, on a laptop as its own child.

use cotter_core::snapshot;

use crate::{
    build::{CA_FILE, CREDENTIALS_DIR, CREDENTIALS_FILE, SOCKET},
    local,
    plan::{Notice, Process, SecretFile},
    problem::Problems,
    server::{Container, KeyOf, Remote, Server, Transport, Upstream},
    world::{LocalSettings, Mode},
};

/// The upstream of a snapshot, and what has to be there before it can be used.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) upstream: snapshot::Upstream,
    pub(crate) process: Option<Process>,
    pub(crate) files: Vec<SecretFile>,
    pub(crate) notices: Vec<Notice>,
}

impl Reached {
    const fn plain(upstream: snapshot::Upstream) -> Self {
        Self { upstream, process: None, files: Vec::new(), notices: Vec::new() }
    }
}

/// # Errors
/// On a laptop, what the manifest needs and the folder does not have.
pub(crate) fn reach(server: &Server, mode: &Mode) -> Result<Reached, Problems> {
    match (&server.upstream, mode) {
        (Upstream::Container(container), Mode::Cluster(_)) => Ok(Reached::plain(in_pod(container))),
        (Upstream::Remote(remote), Mode::Cluster(_)) => Ok(Reached::plain(elsewhere(remote, CREDENTIALS_DIR))),
        (Upstream::Container(container), Mode::Local(folder)) => child(container, folder),
        (Upstream::Remote(remote), Mode::Local(folder)) => from_laptop(server, remote, folder),
    }
}

fn in_pod(container: &Container) -> snapshot::Upstream {
    match &container.transport {
        Transport::Stdio(sessions) => snapshot::Upstream::Socket { path: SOCKET.to_owned(), sessions: *sessions },
        Transport::Http { port, path } => loopback(*port, path),
    }
}

fn loopback(port: u16, path: &str) -> snapshot::Upstream {
    let url = format!("http://127.0.0.1:{port}{path}");
    snapshot::Upstream::Http { url, credentials: None, ca_file: None }
}

fn elsewhere(remote: &Remote, dir: &str) -> snapshot::Upstream {
    snapshot::Upstream::Http {
        url: remote.url.clone(),
        credentials: remote.credentials.as_ref().map(|credentials| snapshot::Credentials {
            file: format!("{dir}/{CREDENTIALS_FILE}"),
            header: credentials.header.clone(),
            prefix: credentials.prefix.clone(),
        }),
        ca_file: remote.ca.as_ref().map(|_| format!("{dir}/{CA_FILE}")),
    }
}

fn child(container: &Container, folder: &LocalSettings) -> Result<Reached, Problems> {
    let program = local::program(container, folder)?;
    let text = format!("starting {} (the image is not used here)", program.command.join(" "));
    let mut notices = vec![Notice { about: "server", text }];
    notices.extend(program.notices);
    if !container.volume_mounts.is_empty() {
        let text = "volumes are not mounted here: the program sees the files of this computer".to_owned();
        notices.push(Notice { about: "server", text });
    }
    let (upstream, process) = match &container.transport {
        Transport::Stdio(sessions) => {
            (snapshot::Upstream::Child { command: program.command, env: program.env, sessions: *sessions }, None)
        }
        Transport::Http { port, path } => {
            (loopback(*port, path), Some(Process { command: program.command, env: program.env, port: *port }))
        }
    };
    Ok(Reached { upstream, process, files: Vec::new(), notices })
}

fn from_laptop(server: &Server, remote: &Remote, folder: &LocalSettings) -> Result<Reached, Problems> {
    let mut problems = Problems::default();
    let dir = folder.state_dir.join("upstream").join(server.id.name.as_str());
    let credentials =
        remote.credentials.as_ref().map(|credentials| (CREDENTIALS_FILE, "credentials.secretRef", &credentials.secret));
    let ca = remote.ca.as_ref().map(|ca| (CA_FILE, "tls.caSecretRef", ca));
    let mut files = Vec::new();
    for (file, field, wanted) in credentials.into_iter().chain(ca) {
        match secret(wanted, folder) {
            Some(contents) => files.push(SecretFile { path: dir.join(file), contents }),
            None => problems.add(
                format!("spec.upstream.remote.{field}"),
                format_args!("there is no Secret {} with the key {} in this folder: add one", wanted.name, wanted.key),
            ),
        }
    }
    let notices = vec![Notice { about: "server", text: format!("using {}", remote.url) }];
    let upstream = elsewhere(remote, &dir.to_string_lossy());
    problems.finish(Some(Reached { upstream, process: None, files, notices }))
}

fn secret(wanted: &KeyOf, folder: &LocalSettings) -> Option<String> {
    folder.secrets.get(&wanted.name)?.get(&wanted.key).cloned()
}
