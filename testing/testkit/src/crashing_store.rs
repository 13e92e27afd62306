//! A store that rejects all commits after the first n, as if the process had crashed there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{Batch, Durability, Snapshot, Store};

/// A store that rejects all commits after a given number; reads continue.
pub struct CrashingStore {
    store: Arc<dyn Store>,
    commits_left: AtomicU64,
}

impl CrashingStore {
    /// Passes the first `commits` commits to `store`.
    pub fn after(commits: u64, store: Arc<dyn Store>) -> Self {
        Self { store, commits_left: AtomicU64::new(commits) }
    }
}

impl CrashingStore {
    /// Rejects all commits from now on.
    pub fn end(&self) {
        self.commits_left.store(0, Ordering::Relaxed);
    }
}

impl Store for CrashingStore {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.store.snapshot()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        let one_less =
            self.commits_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        match one_less {
            Ok(_) => self.store.commit(batch, durability),
            Err(_) => Err(store::Error::ReadOnly { path: "the end".into() }),
        }
    }

    fn room(&self) -> Result<(), store::Error> {
        self.store.room()
    }

    fn sync(&self) -> Result<(), store::Error> {
        self.store.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.store.disk_bytes()
    }
}
