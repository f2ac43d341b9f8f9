//! The audit of a folder: one line of JSON per decision, in the state folder, and the last ones on the board.

use std::{fs::File, io::Write as _, path::PathBuf, sync::Arc};

use cotter_core::audit::Record;
use tokio::sync::mpsc;

use super::board::Board;
use crate::{
    failure::{Doing as _, Failure},
    state::State,
};

/// A file is rotated at this size; one old file is kept.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Records that wait to be written.
pub(crate) const WAITING: usize = 4096;

/// The open file.
pub(crate) struct AuditLog {
    path: PathBuf,
    file: File,
    size: u64,
}

impl AuditLog {
    /// Opens the audit of a folder, to be appended to.
    pub(crate) fn open(state: &State) -> Result<Self, Failure> {
        let path = state.root().join("audit.jsonl");
        let file = File::options().append(true).create(true).open(&path).doing(format!("open {}", path.display()))?;
        let size = file.metadata().doing(format!("read {}", path.display()))?.len();
        Ok(Self { path, file, size })
    }

    /// Writes records until there are no more.
    pub(crate) async fn run(mut self, mut records: mpsc::Receiver<Arc<Record>>, board: Arc<Board>) {
        while let Some(record) = records.recv().await {
            if let Err(error) = self.write(&record) {
                tracing::error!(%error, path = %self.path.display(), "failed to write the audit");
            }
            board.decided(record);
        }
    }

    fn write(&mut self, record: &Record) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        if self.size > MAX_BYTES {
            std::fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            self.file = File::options().append(true).create(true).open(&self.path)?;
            self.size = 0;
        }
        self.size += line.len() as u64;
        self.file.write_all(&line)
    }
}
