//! The engine contract, tested for every engine: in memory, on disk, and read by a follower.

use std::sync::Arc;

use store::{Batch, CopyOnWrite, Durability, MemStore, RocksOptions, RocksStore, Store};

use crate::demands::{APPEND, Engine, POINT, SCAN, TABLES, engine_tests};

impl Engine for MemStore {
    fn new() -> Self {
        MemStore::new()
    }
    fn writer(&self) -> &dyn Store {
        self
    }
    fn reader(&self) -> &dyn Store {
        self
    }
}

struct OnDisk {
    store: RocksStore,
    _directory: tempfile::TempDir,
}

impl Engine for OnDisk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = RocksStore::open(directory.path(), TABLES, RocksOptions::default()).unwrap();
        Self { store, _directory: directory }
    }
    fn writer(&self) -> &dyn Store {
        &self.store
    }
    fn reader(&self) -> &dyn Store {
        &self.store
    }
}

struct Followed {
    follower: RocksStore,
    owner: OnDisk,
    _own: tempfile::TempDir,
}

impl Engine for Followed {
    fn new() -> Self {
        let owner = OnDisk::new();
        let own = tempfile::tempdir().unwrap();
        let follower =
            RocksStore::follow(owner.store.path(), own.path(), TABLES, RocksOptions::default()).unwrap();
        Self { follower, owner, _own: own }
    }
    fn writer(&self) -> &dyn Store {
        &self.owner.store
    }
    fn reader(&self) -> &dyn Store {
        &self.follower
    }
    fn publish(&self) {
        self.follower.catch_up().unwrap();
    }
}

/// A copy of a store whose rows are all deleted, by key and by range.
struct Copied(CopyOnWrite);

impl Engine for Copied {
    fn new() -> Self {
        let base = MemStore::new();
        for (table, key) in
            [(POINT, "a"), (POINT, "b"), (APPEND, "b1"), (SCAN, "b"), (SCAN, "k"), (SCAN, "z")]
        {
            base.put(table, &[(key.as_bytes(), b"of the base")]);
        }
        let copy = CopyOnWrite::new(Arc::new(base), Arc::new(MemStore::new()));
        let mut batch = Batch::new();
        batch.delete(POINT, b"b".to_vec());
        batch.delete(SCAN, b"k".to_vec());
        for (table, start, end) in [(POINT, "a", "b"), (APPEND, "", "c"), (SCAN, "a", "c"), (SCAN, "z", "zz")]
        {
            batch.delete_range(table, start.into(), end.into());
        }
        copy.commit(batch, Durability::Buffered).unwrap();
        Self(copy)
    }
    fn writer(&self) -> &dyn Store {
        &self.0
    }
    fn reader(&self) -> &dyn Store {
        &self.0
    }
}

engine_tests!(in_memory MemStore);
engine_tests!(on_disk OnDisk);
engine_tests!(followed Followed);
engine_tests!(copied Copied);
