//! The sidecar, as a pod runs it: the same library, runtime and audit sink, under a snapshot with every control on.

use std::{sync::Arc, time::Duration};

use cotter_core::snapshot::{Sealed, Snapshot};
use cotter_proxy::{Config, Sidecar, audit::Sink, sidecar};
use serde_json::Value;
use tokio::sync::watch;

use crate::{error::BenchError, role::ready};

/// How long the sidecar may take to read the server's list.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the process ends.
///
/// # Errors
/// The snapshot is not one, no port is free, or the server's list cannot be read.
pub(crate) fn serve(snapshot: Value, workers: usize) -> Result<(), BenchError> {
    let runtime = sidecar::runtime(workers).map_err(BenchError::system("start the runtime"))?;
    runtime.block_on(async {
        let snapshot: Snapshot = serde_json::from_value(snapshot).map_err(BenchError::wrong("read the snapshot"))?;
        let server = snapshot.server.clone();
        let sealed = Sealed::seal(snapshot).map_err(BenchError::wrong("seal the snapshot"))?;
        let (_snapshots, receiver) = watch::channel(Some(sealed));
        let (reports, _reported) = watch::channel(None);
        let config = Config {
            name: "bench".to_owned(),
            server,
            listen: ([127, 0, 0, 1], 0).into(),
            admin: Some(([127, 0, 0, 1], 0).into()),
            snapshots: receiver,
            reports,
            audit: Sink::Stdout,
            state_dir: None,
            work_dir: None,
            ledger: Arc::default(),
            contact: None,
        };
        let sidecar = Sidecar::start(config).await.map_err(BenchError::wrong("start the sidecar"))?;
        let verified = async {
            while !sidecar.is_ready() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let late = |_| BenchError::Wrong("the sidecar did not read the server's list in 10 s".to_owned());
        tokio::time::timeout(PATIENCE, verified).await.map_err(late)?;
        ready(sidecar.local_addr());
        std::future::pending().await
    })
}
