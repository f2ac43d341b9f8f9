//! Finding the running `up` of a folder, and asking it.

use std::path::{Path, PathBuf};

use http::{Method, StatusCode};
use serde::de::DeserializeOwned;

use crate::{
    failure::{Doing as _, Failure},
    http1::{self, Ask},
    state::State,
    wire::Server,
};

/// A running `up`.
pub(crate) struct Running {
    /// Its state folder.
    pub(crate) state: State,
}

impl Running {
    /// The `up` of a folder; without a folder, the only one that runs.
    pub(crate) async fn find(folder: Option<&Path>) -> Result<Self, Failure> {
        if let Some(folder) = folder {
            let state = State::of(folder)?;
            if answers(&state).await {
                return Ok(Self { state });
            }
            let folder = folder.display();
            return Err(Failure::cannot(format!("no `cotter up` runs for {folder}; start one: cotter up -f {folder}")));
        }
        let mut running = Vec::new();
        for state in State::all()? {
            if answers(&state).await {
                running.push(state);
            }
        }
        match running.len() {
            0 => Err(Failure::cannot("no `cotter up` runs; start one: cotter up -f DIR")),
            1 => running.pop().map(|state| Self { state }).ok_or_else(|| Failure::cannot("no `cotter up` runs")),
            _ => Err(Failure::cannot(format!("several `cotter up` run; say which with -f:{}", listed(&running)))),
        }
    }

    /// A server of the folder, as its owner sees it.
    pub(crate) async fn server(&self, name: &str) -> Result<Server, Failure> {
        let servers: Vec<Server> = self.get("/v1/servers").await?.unwrap_or_default();
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        let found = servers.into_iter().find(|server| server.name == name);
        found.ok_or_else(|| Failure::cannot(format!("no server {name:?} runs here; there are: {}", names.join(", "))))
    }

    /// Asks for a value.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Failure> {
        let ask = Ask { method: Method::GET, path, headers: Vec::new(), body: None };
        let answer = http1::unix(&self.state.socket(), ask).await?;
        match answer.status {
            StatusCode::OK => serde_json::from_slice(&answer.body).map(Some).doing("read the answer of `cotter up`"),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(Failure::cannot(String::from_utf8_lossy(&answer.body).into_owned())),
        }
    }
}

/// Whether somebody listens at the state's socket.
pub(crate) async fn answers(state: &State) -> bool {
    tokio::net::UnixStream::connect(state.socket()).await.is_ok()
}

fn listed(states: &[State]) -> String {
    let folders: Vec<PathBuf> = states.iter().map(|state| state.folder().to_path_buf()).collect();
    folders.iter().map(|folder| format!("\n  -f {}", folder.display())).collect()
}
