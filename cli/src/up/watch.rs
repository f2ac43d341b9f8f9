//! Changes of the folder's files, gathered: an editor that saves makes several.

use std::{path::Path, time::Duration};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

use crate::failure::{Doing as _, Failure};

/// How long it has to be quiet after a change.
const QUIET: Duration = Duration::from_millis(60);

/// The changes of one folder. The watch ends with it.
pub(crate) struct Changes {
    happened: mpsc::Receiver<()>,
    pending: bool,
    _watcher: RecommendedWatcher,
}

/// Watches a folder.
pub(crate) fn folder(path: &Path) -> Result<Changes, Failure> {
    let (tell, happened) = mpsc::channel(1);
    let told = move |event: notify::Result<notify::Event>| {
        // A full channel already says that something happened. Reading is not a change.
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = tell.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(told).doing("watch files")?;
    watcher.watch(path, RecursiveMode::NonRecursive).doing(format!("watch {}", path.display()))?;
    Ok(Changes { happened, pending: false, _watcher: watcher })
}

impl Changes {
    /// Waits until something changed and it is quiet again. A change is not lost when the wait is given up in between.
    pub(crate) async fn changed(&mut self) {
        while !self.pending {
            match self.happened.recv().await {
                Some(()) => self.pending = true,
                None => return std::future::pending().await,
            }
        }
        while tokio::time::timeout(QUIET, self.happened.recv()).await.is_ok_and(|more| more.is_some()) {}
        self.pending = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_survives_a_wait_that_is_given_up() {
        let path = std::env::temp_dir().join(format!("cotter-watch-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let mut changes = folder(&path).unwrap();
        assert!(tokio::time::timeout(QUIET * 2, changes.changed()).await.is_err(), "nothing happened yet");
        std::fs::write(path.join("a.yaml"), "a: 1").unwrap();
        for _ in 0..3 {
            assert!(tokio::time::timeout(QUIET / 4, changes.changed()).await.is_err());
        }
        assert!(tokio::time::timeout(QUIET * 20, changes.changed()).await.is_ok());
        std::fs::remove_dir_all(&path).unwrap();
    }
}
