//! Temporary directories, removed when the process ends, or by a later one if it was killed.
//!
//! # Invariants
//! * A directory has a file that its process keeps locked: one whose lock is free belongs to a process that has ended.
//! * Only directories of the same user are removed, and never through a symbolic link.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context as _;
use tempfile::TempDir;

/// The start of their names; the purpose and a random part follow.
const PREFIX: &str = "cairn-";

/// The locked file, and its name before it is locked.
const LOCK: &str = "process.lock";
const UNLOCKED: &str = "process.new";

/// A temporary directory, removed on drop.
pub(crate) struct Temporary {
    dir: TempDir,
    /// Locked until the process ends.
    _lock: File,
}

impl Temporary {
    /// Makes one for `purpose`, and removes those of processes that have ended.
    pub(crate) fn new(purpose: &str) -> anyhow::Result<Self> {
        remove_abandoned();
        Self::make(purpose).context("making a temporary directory (TMPDIR names another place)")
    }

    fn make(purpose: &str) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(&format!("{PREFIX}{purpose}-")).tempdir()?;
        let lock = File::create_new(dir.path().join(UNLOCKED))?;
        lock.lock()?;
        // Under its name only once it is locked: another process may look at any moment.
        fs::rename(dir.path().join(UNLOCKED), dir.path().join(LOCK))?;
        Ok(Self { dir, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the directories of processes that have ended. A failure leaves them to the next process.
pub(crate) fn remove_abandoned() {
    remove_abandoned_in(&std::env::temp_dir());
}

fn remove_abandoned_in(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|of| of.is_dir() && of.uid() == rustix::process::geteuid().as_raw());
        if !is_ours {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if lock.try_lock().is_ok() {
            match fs::remove_dir_all(entry.path()) {
                Ok(()) => {
                    tracing::info!(path = %entry.path().display(), "removed the directory of a process that was killed");
                }
                Err(error) => {
                    tracing::warn!(path = %entry.path().display(), %error, "the directory of a process that was killed stays");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_once_its_process_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, locked: bool| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            let lock = File::create(path.join(LOCK)).unwrap();
            if locked {
                lock.lock().unwrap();
            }
            (path, lock)
        };
        let (running, _kept) = make("cairn-demo-1", true);
        let (ended, lock) = make("cairn-demo-2", true);
        drop(lock);
        let (foreign, _) = make("other-3", false);
        let unlocked = folder.path().join("cairn-demo-4");
        fs::create_dir(&unlocked).unwrap();
        std::os::unix::fs::symlink(&foreign, folder.path().join("cairn-demo-5")).unwrap();
        remove_abandoned_in(folder.path());
        assert!(running.exists() && foreign.exists() && unlocked.exists() && !ended.exists());
    }
}
