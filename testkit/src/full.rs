//! A store whose disk is full for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use store::{Batch, Durability, Snapshot, Store};

/// A store that takes nothing while it is full; reads go on.
pub struct Filling {
    store: Arc<dyn Store>,
    full: AtomicBool,
    refused: AtomicU64,
}

impl Filling {
    /// `store`, with room.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, full: AtomicBool::new(false), refused: AtomicU64::new(0) }
    }

    /// From now on there is room, or none.
    pub fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// How many commits met a full disk.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }
}

impl Store for Filling {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.store.snapshot()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        if let Err(error) = self.room() {
            self.refused.fetch_add(1, Ordering::SeqCst);
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
