//! The socket of a running `up`: how the other commands find and ask it. Only the user who started it can connect.

use std::{collections::BTreeMap, fs, io::ErrorKind, os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, State as Shared},
    http::StatusCode,
    routing::get,
};
use cotter_core::{audit::Record, report::Definitions, snapshot::Snapshot};
use tokio::net::UnixListener;

use super::board::Board;
use crate::{
    failure::{Doing as _, Failure},
    running,
    state::State,
    wire::{Identity, Objects, Server},
};

/// A record is written just after its answer: how often, and how long apart, it is looked for.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(25);

/// Takes the folder's socket; refused where another `up` has it.
pub(crate) async fn take(state: &State) -> Result<UnixListener, Failure> {
    let path = state.socket();
    if running::answers(state).await {
        let holder = running::Running { state: state.clone() };
        let pid = holder.get::<Identity>("/v1/identity").await.ok().flatten().map_or(0, |identity| identity.pid);
        let folder = state.folder().display();
        return Err(Failure::cannot(format!("`cotter up` already runs for {folder}, as process {pid}: stop it first")));
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::cannot(format!("failed to clear {}: {error}", path.display())));
        }
        _ => {}
    }
    let listener = UnixListener::bind(&path).doing(format!("listen at {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).doing(format!("protect {}", path.display()))?;
    Ok(listener)
}

/// Answers until the process ends.
pub(crate) async fn serve(listener: UnixListener, board: Arc<Board>) {
    let router = Router::new()
        .route("/v1/identity", get(|| async { Json(Identity { pid: std::process::id() }) }))
        .route("/v1/objects", get(objects))
        .route("/v1/servers", get(servers))
        .route("/v1/observed/{server}", get(observed))
        .route("/v1/snapshots/{server}", get(snapshot))
        .route("/v1/charged/{server}", get(charged))
        .route("/v1/decisions/{id}", get(decision))
        .with_state(board);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "failed to answer at the socket");
    }
}

async fn objects(Shared(board): Shared<Arc<Board>>) -> Json<Objects> {
    Json(Objects { items: board.shown().objects })
}

async fn servers(Shared(board): Shared<Arc<Board>>) -> Json<Vec<Server>> {
    Json(board.shown().servers)
}

async fn observed(
    Shared(board): Shared<Arc<Board>>,
    Path(server): Path<String>,
) -> Result<Json<Definitions>, StatusCode> {
    board.shown().observed.remove(&server).map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn snapshot(Shared(board): Shared<Arc<Board>>, Path(server): Path<String>) -> Result<Json<Snapshot>, StatusCode> {
    let sealed = board.shown().snapshots.remove(&server).ok_or(StatusCode::NOT_FOUND)?;
    Ok(Json(Snapshot::clone(sealed.snapshot())))
}

async fn charged(
    Shared(board): Shared<Arc<Board>>,
    Path(server): Path<String>,
) -> Result<Json<BTreeMap<String, u64>>, StatusCode> {
    board.charged(&server).map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn decision(Shared(board): Shared<Arc<Board>>, Path(id): Path<String>) -> Result<Json<Record>, StatusCode> {
    for _ in 0..LOOKS {
        if let Some(record) = board.decision(&id) {
            return Ok(Json(Record::clone(&record)));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Err(StatusCode::NOT_FOUND)
}
