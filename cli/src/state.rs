//! The state folder of one folder of manifests: ports, the development issuer's key, the socket of the running `up`.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use cotter_core::snapshot::Digest;
use serde::{Deserialize, Serialize};

use crate::failure::{Doing as _, Failure};

/// First port that is tried for an endpoint.
const FIRST_PORT: u16 = 7801;
/// Endpoints are looked for in this many ports.
const PORTS: u16 = 199;

/// The state of one folder.
#[derive(Debug, Clone)]
pub(crate) struct State {
    root: PathBuf,
    folder: PathBuf,
}

/// What is remembered between runs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Memory {
    ports: BTreeMap<String, u16>,
}

impl State {
    /// The state of a folder, made where it does not exist. Two folders of one name get different places.
    pub(crate) fn of(folder: &Path) -> Result<Self, Failure> {
        let folder = folder.canonicalize().doing(format!("open the folder {}", folder.display()))?;
        let name = folder.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
        let plain = base()?.join(&name);
        let digest = Digest::of(folder.as_os_str().as_encoded_bytes()).to_string();
        let short = digest.get(7..15).unwrap_or_default();
        let root = if owner(&plain).is_none_or(|owner| owner == folder) {
            plain
        } else {
            base()?.join(format!("{name}-{short}"))
        };
        let state = Self { root, folder };
        make_private(&state.root)?;
        let text = state.folder.to_string_lossy().into_owned();
        fs::write(state.root.join("folder"), text).doing(format!("write to {}", state.root.display()))?;
        Ok(state)
    }

    /// All states that exist, for finding the running ones.
    pub(crate) fn all() -> Result<Vec<Self>, Failure> {
        let entries = match fs::read_dir(base()?) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Failure::cannot(format!("failed to read the state folder: {error}"))),
        };
        let roots = entries.filter_map(Result::ok).map(|entry| entry.path());
        let mut all: Vec<Self> = roots.filter_map(|root| owner(&root).map(|folder| Self { root, folder })).collect();
        all.sort_by(|a, b| a.root.cmp(&b.root));
        Ok(all)
    }

    /// Where the state is kept.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of manifests.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket of the running `up`.
    pub(crate) fn socket(&self) -> PathBuf {
        self.root.join("up.sock")
    }

    /// The port of a server's endpoint: the remembered one, else the first that is free and not another server's.
    pub(crate) fn port(&self, server: &str) -> Result<u16, Failure> {
        let path = self.root.join("ports.json");
        let mut memory: Memory =
            fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        if let Some(port) = memory.ports.get(server) {
            return Ok(*port);
        }
        let taken = |port: &u16| memory.ports.values().any(|other| other == port);
        let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let port = (FIRST_PORT..FIRST_PORT + PORTS).find(|port| !taken(port) && free(port));
        let port =
            port.ok_or_else(|| Failure::cannot(format!("no free port in {FIRST_PORT}..{}", FIRST_PORT + PORTS)))?;
        memory.ports.insert(server.to_owned(), port);
        let text = serde_json::to_vec_pretty(&memory).doing("write the ports")?;
        fs::write(&path, text).doing(format!("write {}", path.display()))?;
        Ok(port)
    }

    /// Reads a private file, or makes it with what `make` gives.
    pub(crate) fn private(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Vec<u8>, Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let path = self.root.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let bytes = make()?;
                let mut options = fs::OpenOptions::new();
                let mut file = options
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)
                    .doing(format!("make {}", path.display()))?;
                std::io::Write::write_all(&mut file, &bytes).doing(format!("write {}", path.display()))?;
                Ok(bytes)
            }
            Err(error) => Err(Failure::cannot(format!("failed to read {}: {error}", path.display()))),
        }
    }
}

/// `$XDG_STATE_HOME/cotter`, else `~/.local/state/cotter` (XDG Base Directory Specification).
fn base() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let state =
        state.ok_or_else(|| Failure::cannot("no place for state: set HOME or XDG_STATE_HOME to an absolute path"))?;
    Ok(state.join("cotter"))
}

fn owner(root: &Path) -> Option<PathBuf> {
    fs::read_to_string(root.join("folder")).ok().map(PathBuf::from)
}

fn make_private(path: &Path) -> Result<(), Failure> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).doing(format!("make the state folder {}", path.display()))
}
