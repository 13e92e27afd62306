//! A store with a simulated full disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::{Batch, Durability, Snapshot, Store};
use tokio::sync::watch;

/// A store that rejects commits while its disk is full; reads continue.
pub struct FullDiskStore {
    store: Arc<dyn Store>,
    full: AtomicBool,
    refused: watch::Sender<u64>,
}

impl FullDiskStore {
    /// `store`, with free space.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, full: AtomicBool::new(false), refused: watch::Sender::new(0) }
    }

    /// Fills or frees the disk.
    pub fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// Number of commits rejected because the disk was full.
    pub fn refused(&self) -> watch::Receiver<u64> {
        self.refused.subscribe()
    }
}

impl Store for FullDiskStore {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.store.snapshot()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        if let Err(error) = self.room() {
            self.refused.send_modify(|refused| *refused += 1);
            return Err(error);
        }
        self.store.commit(batch, durability)
    }

    fn sync(&self) -> Result<(), store::Error> {
        self.store.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.store.disk_bytes()
    }

    fn room(&self) -> Result<(), store::Error> {
        if self.full.load(Ordering::SeqCst) {
            return Err(store::Error::NoSpace { path: "the disk".into(), free: 0, reserve: 1 });
        }
        self.store.room()
    }
}
