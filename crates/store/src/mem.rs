//! In-memory reference engine: sorted maps, for tests and for small data that needs no disk.
//!
//! # Invariants
//!
//! A snapshot shares the maps; a commit copies a shared map before it changes it (copy-on-write). Commits are therefore
//! slow while a snapshot exists.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    batch::{Batch, Change},
    engine::{Bounds, Durability, Order, Row, Snapshot, Store},
    error::Error,
    spec::TableSpec,
};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Tables by tag.
type Tables = BTreeMap<u8, Arc<Rows>>;

/// A store in memory. Tables need no declaration.
#[derive(Debug, Default)]
pub struct MemStore {
    tables: Mutex<Arc<Tables>>,
}

impl MemStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    // No code that holds the lock can panic with the maps half-changed.
    fn lock(&self) -> MutexGuard<'_, Arc<Tables>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemStore {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error> {
        Ok(Box::new(MemSnapshot(Arc::clone(&self.lock()))))
    }

    fn commit(&self, batch: Batch, _: Durability) -> Result<(), Error> {
        let mut shared = self.lock();
        let tables = Arc::make_mut(&mut shared);
        for writes in batch.into_sorted() {
            let rows = Arc::make_mut(tables.entry(writes.table().tag).or_default());
            for (start, end) in writes.ranges() {
                rows.extract_if(start.clone()..end.clone(), |_, _| true).for_each(drop);
            }
            for (key, change) in writes.iter() {
                match change {
                    Change::Put(value) => drop(rows.insert(key.to_vec(), value.to_vec())),
                    Change::Append(bytes) => rows.entry(key.to_vec()).or_default().extend_from_slice(bytes),
                    Change::Delete => drop(rows.remove(key)),
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Bytes of all keys and values: there is no disk.
    fn disk_bytes(&self) -> Result<u64, Error> {
        let tables = Arc::clone(&self.lock());
        let rows = tables.values().flat_map(|rows| rows.iter());
        let bytes: usize = rows.map(|(key, value)| key.len() + value.len()).sum();
        Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

struct MemSnapshot(Arc<Tables>);

impl Snapshot for MemSnapshot {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.get(&table.tag).and_then(|rows| rows.get(key)).cloned())
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let Some(rows) = self.0.get(&table.tag).filter(|_| !bounds.is_empty()) else { return Ok(Vec::new()) };
        let end = bounds.end.map_or(Bound::Unbounded, Bound::Excluded);
        let range = rows.range::<[u8], _>((Bound::Included(bounds.start), end));
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        Ok(match order {
            Order::Asc => range.take(limit).map(owned).collect(),
            Order::Desc => range.rev().take(limit).map(owned).collect(),
        })
    }
}
