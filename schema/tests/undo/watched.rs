//! A store whose reads are counted and whose commits end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{Batch, Bounds, COUNT, Durability, MemStore, Order, RANK, Row, Snapshot, Store, TableSpec};

/// A store that counts read rows and held snapshots, and fails permanently after some commits.
pub(crate) struct Watched {
    pub(crate) store: MemStore,
    /// By table; for shared tables, by the first byte of the key too.
    read: Mutex<BTreeMap<(&'static str, u8), u64>>,
    pub(crate) commits_left: AtomicU64,
    held: AtomicU64,
    /// Maximum number of snapshots held during a commit.
    pub(crate) most_held: AtomicU64,
}

struct WatchedSnapshot<'a>(Box<dyn Snapshot + 'a>, &'a Watched);

impl Watched {
    pub(crate) fn new(store: MemStore, commits: u64) -> Self {
        let (commits_left, held, most_held) = (commits.into(), 0.into(), 0.into());
        Self { store, read: Mutex::default(), commits_left, held, most_held }
    }

    fn count(&self, table: &'static TableSpec, key: &[u8]) {
        let shared = [COUNT.tag, RANK.tag].contains(&table.tag);
        let of = if shared { key[0] } else { 0 };
        *self.read.lock().unwrap().entry((table.name, of)).or_default() += 1;
    }

    /// Rows read since the last call.
    pub(crate) fn take_read(&self) -> BTreeMap<(&'static str, u8), u64> {
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

impl Store for Watched {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.held.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(WatchedSnapshot(self.store.snapshot()?, self)))
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        self.most_held.fetch_max(self.held.load(Ordering::Relaxed), Ordering::Relaxed);
        match self.commits_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) {
            Ok(_) => self.store.commit(batch, durability),
            Err(_) => Err(store::Error::ReadOnly { path: "the end".into() }),
        }
    }

    fn sync(&self) -> Result<(), store::Error> {
        self.store.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.store.disk_bytes()
    }
}

impl Drop for WatchedSnapshot<'_> {
    fn drop(&mut self) {
        self.1.held.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshot for WatchedSnapshot<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, store::Error> {
        self.1.count(table, key);
        self.0.get(table, key)
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, store::Error> {
        let rows = self.0.scan(table, bounds, order, limit)?;
        for (key, _) in &rows {
            self.1.count(table, key);
        }
        Ok(rows)
    }
}
