//! The last good snapshot, on disk: what a sidecar starts with that finds no operator.

use std::{io, path::Path};

use cotter_core::snapshot::Sealed;

const FILE: &str = "snapshot.json";

/// Writes the snapshot so that a reader finds the one before or this one, never half of it.
pub(super) async fn save(dir: &Path, sealed: &Sealed) -> io::Result<()> {
    tokio::fs::create_dir_all(dir).await?;
    let (written, kept) = (dir.join(".snapshot.json.new"), dir.join(FILE));
    tokio::fs::write(&written, sealed.bytes().as_bytes()).await?;
    tokio::fs::File::open(&written).await?.sync_all().await?;
    tokio::fs::rename(&written, &kept).await
}

/// The snapshot that was kept, if there is one and it can be read.
#[must_use]
pub fn load(dir: &Path) -> Option<Sealed> {
    let text = std::fs::read_to_string(dir.join(FILE)).ok()?;
    Sealed::open(&text, None).inspect_err(|error| tracing::warn!(%error, "failed to use the kept snapshot")).ok()
}

/// The newer of two snapshots, by the generation that they were made from; the first where that does not tell.
#[must_use]
pub fn newer(kept: Option<Sealed>, given: Option<Sealed>) -> Option<Sealed> {
    match (kept, given) {
        (Some(kept), Some(given)) if given.snapshot().generation > kept.snapshot().generation => Some(given),
        (Some(kept), _) => Some(kept),
        (None, given) => given,
    }
}
